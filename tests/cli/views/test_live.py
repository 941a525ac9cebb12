"""The live view on a terminal: drawn while it runs, gone in order, and never in the way."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.views.live_runs import CHAIN, ended, plan_of, started
from tests.processes import inherited
from tests.settings.setting_files import ENVIRONMENT
from windlass.cli.views.live import LiveView
from windlass.cli.views.live_state import LiveState
from windlass.core.platform.events import PhaseStarted, PlanReady, RunPhase
from windlass.simulation.virtual_time import run, virtual_clock

if TYPE_CHECKING:
    from windlass.core.platform.events import Event

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {token: x}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
"""
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
ENVIRON = {"TERM": "xterm", "COLUMNS": "60", "LINES": "20"}


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class AsciiTerminal(Terminal):
    encoding = "ascii"


class GoneTerminal(Terminal):
    def write(self, text: str) -> int:
        raise OSError("the terminal is gone")


def follow(terminal: Terminal, *events: Event, seconds: float = 60, error: BaseException | None = None) -> str:
    """What was drawn."""

    async def main() -> None:
        clock = virtual_clock()
        state = LiveState("deploy platform in staging", clock.monotonic(), CHAIN.expected_durations, 10)
        async with LiveView(terminal, clock, state, ENVIRON) as view:
            for event in events:
                view.emit(event)
            await clock.sleep(seconds)
            if error:
                raise error

    run(main())
    return terminal.getvalue()


RUNNING = (PlanReady(plan_of(CHAIN)), PhaseStarted(RunPhase.RUN), ended("disk"), started("db"))


def test_it_is_drawn_again_while_nothing_happens() -> None:
    drawn = follow(Terminal(), *RUNNING)
    assert drawn.count("  (age/expected") == 240  # four times a second
    assert "0:10/5:00" in drawn
    assert "0:59/5:00" in drawn
    assert "  api  " in drawn


def test_its_head_stays_and_the_cursor_comes_back() -> None:
    drawn = follow(Terminal(), *RUNNING)
    last = drawn[drawn.rindex("deploy platform in staging") :]
    assert "1 done" in last
    assert "(age/expected" not in last
    assert drawn.startswith(HIDE)
    assert drawn.rindex(SHOW) > drawn.rindex(HIDE)


@pytest.mark.parametrize("error", [ValueError("broken"), asyncio.CancelledError()])
def test_what_the_run_raises_passes_as_it_is(error: BaseException) -> None:
    terminal = Terminal()
    with pytest.raises(type(error)):
        follow(terminal, *RUNNING, error=error)
    assert terminal.getvalue().rstrip().endswith(SHOW)


def test_a_terminal_that_is_gone_does_not_end_the_run() -> None:
    assert follow(GoneTerminal(), *RUNNING) == ""
    assert sys.stderr.write("") == 0  # what was redirected is put back


def test_an_event_that_nobody_understands_does_not_end_the_run() -> None:
    follow(Terminal(), *RUNNING, object())  # type: ignore[arg-type]


def test_a_terminal_without_utf_8_gets_signs_that_it_has() -> None:
    drawn = follow(AsciiTerminal(), *RUNNING)
    assert drawn.isascii()
    assert "####" in drawn
    assert "...." in drawn


def test_ctrl_c_leaves_a_sane_terminal() -> None:
    script = """
        import asyncio, sys
        from windlass.cli.views.live_state import LiveState
        from windlass.cli.views.live import LiveView
        from windlass.kube.clocks import Clock

        async def main():
            clock = Clock()
            async with LiveView(sys.stderr, clock, LiveState("deploy", clock.monotonic(), {}, 1), {"TERM": "xterm"}):
                await clock.sleep(60)

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            sys.exit(130)
    """
    ours, theirs = pty.openpty()
    paths = {"PYTHONPATH": str(Path(__file__).parents[3] / "src"), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stderr=theirs, env=paths) as process:
        os.close(theirs)
        drawn = b""
        while b"deploy" not in drawn:
            drawn += os.read(ours, 10_000)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        while part := _read(ours):
            drawn += part
    os.close(ours)
    assert drawn.rindex(SHOW.encode()) > drawn.rindex(HIDE.encode())
    assert b"Traceback" not in drawn


def test_l8_the_title_names_the_environment_as_the_report_does(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    (tmp_path / "environment.yaml").write_text(ENVIRONMENT.replace("name: staging\n", "name: staging-eu\n"))
    command = [sys.executable, "-m", "windlass", "deploy", "--environment-file", "environment.yaml"]
    environ = {**inherited(), **ENVIRON, "KUBECONFIG_PATH": "kubeconfig", "ENVIRONMENT": "staging"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stderr=theirs, stdout=theirs, env=environ, cwd=tmp_path) as process:
        os.close(theirs)
        drawn = b""
        while part := _read(ours):
            drawn += part
        process.wait(20)
    os.close(ours)
    assert b"deploy platform in staging-eu" in drawn, drawn


def _read(descriptor: int) -> bytes:
    """Empty when the other side is closed."""
    try:
        return os.read(descriptor, 10_000)
    except OSError:
        return b""
