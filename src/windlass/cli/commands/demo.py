"""`windlass demo`: runs windlass commands against its own sandbox and checks that each does what the demo says."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.cli.commands import demo_files
from windlass.cli.commands.demo_files import SPEED, VICTIM
from windlass.errors import ExitCode, WindlassError
from windlass.kube.clocks import Clock
from windlass.settings.variables import PLAIN_CREDENTIALS, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Say = Callable[[str], None]

VARIABLES = {"KUBECONFIG_PATH": "kubeconfig", "ENVIRONMENT": demo_files.NAME}
SHOWN = 14  # the full report is in its file
TABLES = ("components", "failures in full")  # headings at which the excerpt of a report ends
ALWAYS, COUNTED = "  critical path", (" refresh", " refreshes")  # lines that are always part of the excerpt
PATIENCE = 120.0  # seconds for one command, so that a hanging demo ends


class Untrue(WindlassError):
    """A command of the demo did not give the expected result."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One command of the demo and its expected result."""

    title: str
    command: str
    """The command line after `windlass`."""
    report: str
    """Name of the file that stdout is written to."""
    code: int
    expected: tuple[str, ...]
    """Texts that the output must contain; for a JSON report, `path.to.field=value`."""
    before: Callable[[Path], str] | None = None
    """Changes the files in the demo folder before the command runs; returns a description of the change."""


FILES = "--dag dag.yaml --environment-file environment.yaml"
CHAPTERS = (
    Chapter("What would be done? Nothing is written", f"plan {FILES}", "1-plan.txt", 0,
            ("dry run", "43 not started", "0 writes")),
    Chapter("Raise 43 applications in order, each behind its health gate", f"deploy {FILES}", "2-deploy.txt", 0,
            ("success", "43 succeeded")),
    Chapter("Again: what is right is not touched", f"deploy {FILES} --format json", "3-again.json", 0,
            ("summary.verdict=success", "summary.counts.unchanged=43", "metrics.calls.writes=0",
             "metrics.calls.refreshes=1")),
    Chapter("A bad commit: one breaks, and what waits for it is not touched", f"deploy {FILES}", "4-broken.txt", 2,
            ("partial", "1 failed, 26 skipped", "1 root cause", VICTIM), demo_files.break_one),
    Chapter("A good commit: run it again, and it goes on", f"deploy {FILES}", "5-resumed.txt", 0,
            ("success", "43 succeeded"), demo_files.mend),
    Chapter("Does it stand, on evidence? Reads only", "validate --dag dag.yaml", "6-validate.txt", 0,
            ("success", "43 Healthy")),
    Chapter("Lower it? Not without a confirmation", f"teardown {FILES}", "7-unconfirmed.txt", 3,
            ("a teardown must be confirmed",)),
    Chapter("Lower it: in reverse order, each after all that depends on it is gone",
            f"teardown {FILES} --confirm {demo_files.NAME}", "8-teardown.txt", 0, ("success", "43 succeeded")),
)  # fmt: skip


def demonstrate(out: Path, environ: Mapping[str, str], say: Say, chapters: Sequence[Chapter] = CHAPTERS) -> None:
    """Run the demo in folder `out`. Raises DemoFailed if a command does not give the expected result."""
    began = Clock().monotonic()
    demo_files.prepare(out)
    with _sandbox(out, _without_settings(environ), say) as environment:
        for number, chapter in enumerate(chapters, 1):
            say(f"\n━━ {number}. {chapter.title}")
            if chapter.before:
                say(chapter.before(out))
            _play(chapter, out, environment, say)
    say(f"\n━━ That was all, in {Clock().monotonic() - began:.0f} s; nothing of it is running any more")
    say(f"  reports    {out}/reports")
    say(f"  files      {out}/dag.yaml, {out}/environment.yaml; {out}/repository stands in for git")
    say(f"  what next  windlass rehearse --dag {out}/dag.yaml --fail {VICTIM}")


def _without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Drop the settings of the user's environment, which would change what the printed commands do."""
    settings = {setting.variable for setting in SETTINGS} | PLAIN_CREDENTIALS.keys()
    return {name: value for name, value in environ.items() if name not in settings}


@contextmanager
def _sandbox(out: Path, environ: dict[str, str], say: Say) -> Iterator[dict[str, str]]:
    """Run a sandbox for the duration of the context; yields the environment that connects commands to it."""
    words = ["sandbox", "--kubeconfig", VARIABLES["KUBECONFIG_PATH"], "--speed", f"{SPEED:g}"]
    say(f"━━ A cluster: API server, controllers and Argo CD, embedded, {SPEED:g} times as fast as real ones")
    say(f"$ cd {out}")
    say(f"$ windlass {shlex.join(words)} &")
    process = subprocess.Popen(_command(words), env=environ, cwd=out, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our command
    try:
        assert process.stdout is not None
        first = process.stdout.readline().rstrip()
        if not first:
            raise WindlassError("the sandbox did not start")
        say(f"  {first}")
        say("$ export " + " ".join(f"{name}={value}" for name, value in VARIABLES.items()))
        yield {**environ, **VARIABLES}
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def _play(chapter: Chapter, out: Path, environ: dict[str, str], say: Say) -> None:
    file = out / "reports" / chapter.report
    log = out / "logs" / f"{file.stem}.log"
    say(f"$ windlass {chapter.command} > {file.relative_to(out)}")
    began = Clock().monotonic()
    code = _run(chapter, out, environ, (file, log))
    text = file.read_text()
    said = list(_essence(chapter, text)) if text else log.read_text().splitlines()
    for line in said:
        say(f"  {line}".rstrip())
    say(f"  exit code {code}, after {Clock().monotonic() - began:.1f} s")
    missing = [what for what in chapter.expected if not _is_said(what, text or log.read_text())]
    if code != chapter.code or missing:
        rest = f"; it does not say: {', '.join(missing)}" if missing else ""
        told = f"windlass {chapter.command} ended with {code}, wanted was {chapter.code}{rest}"
        raise Untrue(told, where=str(file), hint=f"its log is {log}")


def _run(chapter: Chapter, out: Path, environ: dict[str, str], files: tuple[Path, Path]) -> int:
    """Run the command and return its exit code.

    On a terminal it may draw its live view; otherwise, or if it is expected to be refused, its stderr goes to the log.
    """
    is_drawn = sys.stderr.isatty() and chapter.code != ExitCode.INVALID
    with files[0].open("w") as output, files[1].open("w") as log:
        errors = None if is_drawn else log
        words = _command(shlex.split(chapter.command))
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                words, env=environ, cwd=out, stdout=output, stderr=errors, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            raise Untrue(f"windlass {chapter.command} did not end in {PATIENCE:g} s", where=str(files[1])) from None
    return done.returncode


def _command(words: list[str]) -> list[str]:
    """`-P` keeps Python from importing modules from the demo folder."""
    return [sys.executable, "-P", "-m", "windlass", *words]


def _essence(chapter: Chapter, text: str) -> Iterator[str]:
    if chapter.report.endswith(".json"):
        yield from (f"{what.partition('=')[0]}: {_field(text, what)}" for what in chapter.expected)
        return
    lines = text.splitlines()
    first = next((place for place, line in enumerate(lines) if line.startswith(TABLES)), len(lines))
    shown = "\n".join(lines[: min(SHOWN, first)]).rstrip().splitlines()
    shown += [line for line in lines[len(shown) :] if line.startswith(ALWAYS) or line.endswith(COUNTED)]
    yield from shown
    if len(shown) < len(lines):
        yield f"  ({len(lines) - len(shown)} more lines)"


def _is_said(what: str, text: str) -> bool:
    path, equals, value = what.partition("=")
    return _field(text, path) == value if equals else what in text


def _field(text: str, what: str) -> str:
    try:
        found: Any = json.loads(text)
        for name in what.partition("=")[0].split("."):
            found = found[name]
    except (ValueError, KeyError, TypeError):
        return ""
    return str(found)
