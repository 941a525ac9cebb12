"""Every exit code of every action, on the real process; and the page that tells them, in step with the table."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from tests.processes import Ended, inherited
from tests.scenarios.exit_codes.rows import ACTIONS, ROWS, Row
from tests.scenarios.exit_codes.situations import World, running_platform
from windlass.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark import ParameterSet

    from tests.scenarios.clusters import Running

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/exit-codes.md").read_text()
DAG, ENVIRONMENT = "--dag {folder}/dag.yaml", "--environment-file {folder}/environment.yaml"
WITH_ENVIRONMENT = {"deploy", "plan", "lint"}
DEMONSTRATED = {("demo", 0)}
"""By `make demo`: it is that process, and takes a minute."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_platform(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def begun(row: Row, world: World, stdout: IO[str] | int) -> subprocess.Popen[str]:
    files = f"{DAG} {ENVIRONMENT if row.action in WITH_ENVIRONMENT else ''}" if row.platform else ""
    words = f"{files} {row.arguments}".format(folder=world.folder, port=world.port).split()
    usual = {"ENVIRONMENT": "staging", "TEARDOWN_CONFIRM": "staging"}
    return subprocess.Popen(
        [sys.executable, "-m", "windlass", *([] if row.action == "windlass" else [row.action]), *words],
        env={**inherited(), **usual, **world.environ, **row.environ},
        cwd=world.folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(process: subprocess.Popen[str], row: Row, world: World) -> str:
    """What was said until then."""
    assert row.signal is not None
    if not row.once:
        assert world.listening is not None
        connection, _ = world.listening.accept()
        with connection:
            process.send_signal(row.signal)
            process.wait()
        return ""
    seen = ""
    stream = process.stdout if row.action in {"sandbox", "status"} else process.stderr
    assert stream is not None
    for line in stream:
        seen += line
        if row.once in line:
            process.send_signal(row.signal)
            return seen
    raise AssertionError(f"never said {row.once!r}:\n{seen}")


def marked() -> Iterator[ParameterSet]:
    """The quick suite has one row for each code of each action."""
    shown: set[tuple[str, int]] = set()
    for row in ROWS:
        pair = (row.action, row.code)
        yield pytest.param(row, id=str(row), marks=[pytest.mark.slow] if pair in shown else [])
        shown.add(pair)


@pytest.mark.parametrize("row", list(marked()))
def test_it_ends_with_this_code(row: Row, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    world = World(request, tmp_path)
    if row.platform:
        world.write(row.platform)
    with row.given(world), Path("/dev/full").open("w") as full:
        process = begun(row, world, full if row.is_output_full else subprocess.PIPE)
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            said = interrupt(process, row, world) if row.signal else ""
            stdout, stderr = process.communicate()
        finally:
            watchdog.cancel()
            process.kill()
    ended = Ended(process.returncode, said + (stdout or ""), stderr)
    assert ended.code == row.code, ended.output
    assert row.says in ended.output
    assert "Traceback" not in ended.output
    if row.code == ExitCode.INVALID and row.action != "config":  # which shows the values that are valid
        assert not ended.stdout
    if row.code == ExitCode.INVALID or row.writes_nothing:
        assert not [entry for entry in world.asked() if entry.is_write]


def documented() -> list[tuple[str, int]]:
    return [(name, int(code)) for name, code in re.findall(r"^\| `([a-z]+)` \| (\d) \| .+ \| .+ \|$", PAGE, re.M)]


def test_the_page_and_the_table_tell_the_same() -> None:
    pairs = documented()
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {(row.action, row.code) for row in ROWS} | DEMONSTRATED
    assert {name for name, _ in pairs} == {"windlass", *ACTIONS}


def test_every_code_there_is_stands_on_the_page() -> None:
    told = re.findall(r"^\| (\d) \| ([a-z]+) \| .+ \|$", PAGE, re.M)
    assert [(int(code), name) for code, name in told] == [(int(code), code.name.lower()) for code in ExitCode]
    assert {code for _, code in documented()} == set(ExitCode)


def test_no_situation_stands_twice() -> None:
    assert len({str(row) for row in ROWS}) == len(ROWS)


def test_the_demonstration_is_part_of_what_every_change_must_pass() -> None:
    assert re.search(r"^run \d+ demo$", (ROOT / ".ci/run").read_text(), re.M)
