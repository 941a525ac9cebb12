"""The steps of `windlass demo`: runs windlass commands on its own sandbox and checks that each does what it says."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.cli import demo_files
from windlass.cli.demo_files import FAILING_APPLICATION, SPEED
from windlass.errors import ExitCode, WindlassError
from windlass.kube.clocks import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    PrintLine = Callable[[str], None]

ENVIRONMENT_VARIABLES = {
    "KUBECONFIG_PATH": "kubeconfig",
    "ENVIRONMENT": demo_files.ENVIRONMENT_NAME,
    "ARGOCD_AUTH_TOKEN_PATH": demo_files.TOKEN_FILE,
}
MAX_EXCERPT_LINES = 14  # the full report is in its file
EXCERPT_END_HEADINGS = ("components", "failures in full")  # headings at which the excerpt of a report ends
ALWAYS_SHOWN_PREFIX, ALWAYS_SHOWN_SUFFIXES = (
    "  critical path",
    (" refresh", " refreshes"),
)  # lines that are always part of the excerpt
COMMAND_TIMEOUT = 120.0  # seconds for one command, so that a hanging demo ends


class DemoFailed(WindlassError):
    """A command of the demo did not give the expected result."""


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One command of the demo and its expected result."""

    title: str
    command: str
    """The command line after `windlass`."""
    report_file: str
    """Name of the file that stdout is written to."""
    exit_code: int
    expected: tuple[str, ...]
    """Texts that the output must contain; for a JSON report, `path.to.field=value`."""
    change_files: Callable[[Path], str] | None = None
    """Changes the files in the demo folder before the command runs; returns a description of the change."""


FILE_OPTIONS = "--dag dag.yaml --environment-file environment.yaml"
DEMO_STEPS = (
    DemoStep("Plan: show what deploy would do; nothing is written", f"plan {FILE_OPTIONS}", "1-plan.txt", 0,
            ("dry run", "43 to sync", "0 writes")),
    DemoStep("Deploy 43 applications in order, behind health gates", f"deploy {FILE_OPTIONS}", "2-deploy.txt", 0,
            ("success", "43 succeeded")),
    DemoStep("Rerun: finished applications are skipped", f"deploy {FILE_OPTIONS} --format json", "3-again.json", 0,
            ("summary.verdict=success", "summary.counts.unchanged=43", "metrics.calls.writes=0",
             "metrics.calls.refreshes=1")),
    DemoStep("Plan of a commit: all pins move, and one application changes", f"plan {FILE_OPTIONS} --refresh --diff",
             "4-changes.txt", 0, ("43 to sync (1 changes, 42 only move their pin)", "containers[main].image: "),
             demo_files.break_application),
    DemoStep("It is a bad commit: one application fails, its dependents are skipped", f"deploy {FILE_OPTIONS}",
             "5-broken.txt", 2, ("partial", "1 failed, 26 skipped", "1 root cause", FAILING_APPLICATION)),
    DemoStep("A good commit: rerun, and the deploy continues", f"deploy {FILE_OPTIONS}", "6-resumed.txt", 0,
            ("success", "43 succeeded"), demo_files.fix_application),
    DemoStep("Validate: check the health of all applications", "validate --dag dag.yaml", "7-validate.txt", 0,
            ("success", "43 Healthy")),
    DemoStep("Teardown without a confirmation is rejected", f"teardown {FILE_OPTIONS}", "8-unconfirmed.txt", 3,
            ("the teardown of development is not confirmed",)),
    DemoStep("Teardown in reverse order, each application after its dependents",
            f"teardown {FILE_OPTIONS} --confirm {demo_files.ENVIRONMENT_NAME}", "9-teardown.txt", 0,
             ("success", "43 succeeded")),
)  # fmt: skip


def run_demo(out: Path, environ: dict[str, str], print_line: PrintLine, steps: Sequence[DemoStep] = DEMO_STEPS) -> None:
    """Run the demo in folder `out`. Raises DemoFailed if a command does not give the expected result.

    `environ` is the environment of the commands. It must contain no settings: they would change what the printed
    commands do.
    """
    started = Clock().monotonic()
    demo_files.prepare_folder(out)
    with _run_sandbox(out, environ, print_line) as environment:
        for number, step in enumerate(steps, 1):
            print_line(f"\n━━ {number}. {step.title}")
            if step.change_files:
                print_line(step.change_files(out))
            _run_step(step, out, environment, print_line)
    print_line(f"\n━━ The demo took {Clock().monotonic() - started:.0f} s; the sandbox is stopped")
    print_line(f"  reports    {out}/reports")
    print_line(f"  files      {out}/dag.yaml, {out}/environment.yaml; {out}/repository replaces Git")
    print_line(f"  what next  windlass rehearse --dag {out}/dag.yaml --fail {FAILING_APPLICATION}")


@contextmanager
def _run_sandbox(out: Path, environ: dict[str, str], print_line: PrintLine) -> Iterator[dict[str, str]]:
    """Run a sandbox for the duration of the context; yields the environment that connects commands to it."""
    arguments = ["sandbox", "--kubeconfig", ENVIRONMENT_VARIABLES["KUBECONFIG_PATH"], "--speed", f"{SPEED:g}"]
    print_line(f"━━ Start a sandbox: API server, controllers and Argo CD, {SPEED:g} times as fast as a real cluster")
    print_line(f"$ cd {out}")
    print_line(f"$ windlass {shlex.join(arguments)} &")
    process = subprocess.Popen(_command_line(arguments), env=environ, cwd=out, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our command
    try:
        assert process.stdout is not None
        first_line = process.stdout.readline().rstrip()
        if not first_line:
            raise WindlassError("the sandbox did not start")
        print_line(f"  {first_line}")
        demo_files.write_token(out, out / ENVIRONMENT_VARIABLES["KUBECONFIG_PATH"])
        print_line("$ export " + " ".join(f"{name}={value}" for name, value in ENVIRONMENT_VARIABLES.items()))
        yield {**environ, **ENVIRONMENT_VARIABLES}
    finally:
        process.terminate()
        process.communicate(timeout=COMMAND_TIMEOUT)


def _run_step(step: DemoStep, out: Path, environ: dict[str, str], print_line: PrintLine) -> None:
    file = out / "reports" / step.report_file
    log = out / "logs" / f"{file.stem}.log"
    print_line(f"$ windlass {step.command} > {file.relative_to(out)}")
    started = Clock().monotonic()
    code = _run_command(step, out, environ, (file, log))
    text = file.read_text()
    lines = list(_excerpt(step, text)) if text else log.read_text().splitlines()
    for line in lines if not _has_live_view(step) else []:  # the command itself has shown one screen of its report
        print_line(f"  {line}".rstrip())
    print_line(f"  exit code {code}, after {Clock().monotonic() - started:.1f} s")
    missing = [expectation for expectation in step.expected if not _is_satisfied(expectation, text or log.read_text())]
    if code != step.exit_code or missing:
        missing_text = f"; it does not say: {', '.join(missing)}" if missing else ""
        message = f"windlass {step.command} ended with {code}, wanted was {step.exit_code}{missing_text}"
        raise DemoFailed(message, where=str(file), hint=f"its log is {log}")


def _run_command(step: DemoStep, out: Path, environ: dict[str, str], files: tuple[Path, Path]) -> int:
    """Run the command and return its exit code.

    On a terminal it may draw its live view; otherwise, or if it is expected to be refused, its stderr goes to the log.
    """
    with files[0].open("xb") as output, files[1].open("xb") as log:
        errors = None if _has_live_view(step) else log
        command = _command_line(shlex.split(step.command))
        try:
            completed = subprocess.run(  # noqa: S603 - our own command
                command, env=environ, cwd=out, stdout=output, stderr=errors, timeout=COMMAND_TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired:
            raise DemoFailed(
                f"windlass {step.command} did not end in {COMMAND_TIMEOUT:g} s", where=str(files[1])
            ) from None
    return completed.returncode


def _has_live_view(step: DemoStep) -> bool:
    return sys.stderr.isatty() and step.exit_code != ExitCode.INVALID


def _command_line(arguments: list[str]) -> list[str]:
    """`-P` keeps Python from importing modules from the demo folder."""
    return [sys.executable, "-P", "-m", "windlass", *arguments]


def _excerpt(step: DemoStep, text: str) -> Iterator[str]:
    if step.report_file.endswith(".json"):
        yield from (
            f"{expectation.partition('=')[0]}: {_json_field(text, expectation)}" for expectation in step.expected
        )
        return
    lines = text.splitlines()
    end = next((index for index, line in enumerate(lines) if line.startswith(EXCERPT_END_HEADINGS)), len(lines))
    shown = "\n".join(lines[: min(MAX_EXCERPT_LINES, end)]).rstrip().splitlines()
    shown += [
        line
        for line in lines[len(shown) :]
        if line.startswith(ALWAYS_SHOWN_PREFIX) or line.endswith(ALWAYS_SHOWN_SUFFIXES)
    ]
    yield from shown
    if len(shown) < len(lines):
        yield f"  ({len(lines) - len(shown)} more lines)"


def _is_satisfied(expectation: str, text: str) -> bool:
    path, equals, value = expectation.partition("=")
    return _json_field(text, path) == value if equals else expectation in text


def _json_field(text: str, expectation: str) -> str:
    try:
        value: Any = json.loads(text)
        for name in expectation.partition("=")[0].split("."):
            value = value[name]
    except (ValueError, KeyError, TypeError):
        return ""
    return str(value)
