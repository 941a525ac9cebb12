"""The process from outside: exit codes, one clear error, no traceback."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest

from windlass.cli import session
from windlass.cli.main import COMMANDS, NonEmptyText, load_command, main
from windlass.kube.redactions import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

HEAVY = [
    "aiohttp", "msgspec", "pydantic", "yaml", "asyncio", "ssl", "structlog", "prometheus_client", "rich", "lupa",
]  # fmt: skip


def test_help_loads_nothing_heavy() -> None:
    program = f"""
import sys
from windlass.cli.main import main
main(["--help"], {{}})
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_loads_nothing_heavy(name: str) -> None:
    program = f"""
import sys
from windlass.cli.main import main
main(["{name}", "--help"], {{}})
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


TEXT_OPTIONS = [
    (name, parameter.opts[0])
    for name in COMMANDS
    for parameter in load_command(name).params
    if isinstance(parameter, click.Option) and isinstance(parameter.type, NonEmptyText)
]


@pytest.mark.parametrize(("command", "option"), TEXT_OPTIONS)
def test_an_option_that_is_given_empty_is_refused(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["web"] if command == "wait" else []
    assert main([command, *arguments, option, ""], {}) == 3
    assert f"Invalid value for '{option}': must not be empty" in capsys.readouterr().err


def test_every_command_with_a_scope_or_a_plan_is_among_them() -> None:
    assert {("deploy", "--plan"), ("deploy", "--scope"), ("teardown", "--scope"), ("lint", "--dag")} <= {*TEXT_OPTIONS}


def test_the_list_of_commands_imports_none() -> None:
    program = """
import sys
from windlass.cli.main import main
main(["--help"], {})
print([name for name in sys.modules if name.startswith("windlass.cli.commands.")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_has_the_first_line_of_each_command(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert command.help
    assert COMMANDS[name][1] == command.help.splitlines()[0]


def test_a_bug_is_told_in_one_line_without_what_it_carried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from windlass.cli import cluster_summary

    def broken(*_: object) -> list[str]:
        raise KeyError("hunter2")

    monkeypatch.setattr(cluster_summary, "describe", broken)
    assert main(["cluster", "--kubeconfig", "x"], {}) == 1
    plain = capsys.readouterr().err
    assert "this is a bug in windlass: KeyError in broken" in plain
    assert "hunter2" not in plain
    assert "Traceback" not in plain
    assert main(["cluster", "--kubeconfig", "x"], {"LOG_LEVEL": "debug"}) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "streams", "code", "said"),
    [
        ("graph", ">/dev/full", 1, "error: the output cannot be written: No space left on device\n"),
        ("graph", "2>&-", 0, ""),
        ("graph", ">&-", 1, "error: the output cannot be written: Bad file descriptor\n"),
        ("graph --scope x", "2>&-", 3, ""),
        ("graph --scope x", "2>/dev/full", 3, ""),
    ],
)
def test_streams_that_take_nothing_change_no_exit_code_into_another(
    arguments: str, streams: str, code: int, said: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m windlass {arguments} {streams}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, said)


def test_a_reader_that_goes_away_is_told_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "windlass", "graph"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


@pytest.mark.parametrize("error", [RuntimeError("correct horse"), OSError(28, "full"), KeyboardInterrupt()], ids=repr)
def test_what_fails_after_the_report_does_not_lose_it(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    async def work(keep: Callable[[str], None]) -> None:
        keep("the report")
        raise error

    assert session.run_to_report(work, Redactor()) == "the report"
    assert capsys.readouterr().err == f"warning: after the report was complete: {type(error).__name__}\n"


def test_what_fails_before_the_report_is_raised() -> None:
    async def work(_: Callable[[str], None]) -> None:
        raise RuntimeError("early")

    with pytest.raises(RuntimeError, match="early"):
        session.run_to_report(work, Redactor())


def test_l12_every_summary_fits_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"], {}) == 0
    lines = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    assert len(lines) == len(COMMANDS)
    for line, (name, (_, summary)) in zip(lines, COMMANDS.items(), strict=True):
        assert line.split(maxsplit=1) == [name, summary]
        first, _, _ = (load_command(name).help or "").partition("\n")
        assert first == summary
