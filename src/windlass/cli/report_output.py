"""Output of a report: text, JSON or JUnit, on stdout and in any number of files."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from windlass import output_files
from windlass.cli.printed_lines import print_text
from windlass.core.platform.reporting import report_documents, report_junit, report_text
from windlass.core.platform.reporting.text_layout import Screen
from windlass.errors import InvalidInput, WindlassError
from windlass.printable_text import printed_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

    from windlass.core.platform.reporting.reports import Report
    from windlass.settings.settings import TerminalSettings

REPORT_FORMATS = ("text", "json", "junit")
DEFAULT_SCREEN = Screen(80, 24)
REPORT_HINT = f"--report FORMAT=FILE, where FORMAT is one of {', '.join(REPORT_FORMATS)} and FILE may be - for stdout"


@dataclass(frozen=True, slots=True)
class ReportOutputs:
    """Where the report of a run goes."""

    stdout_format: str = "text"
    file_formats: Mapping[Path, str] = field(default_factory=dict)
    has_details: bool = False
    """Print all details also on a terminal, where a text report is otherwise one screen."""


def take_outputs(options: dict[str, Any]) -> ReportOutputs:
    """Remove the options of `report_options` from those of a command, and check them."""
    return report_outputs(options.pop("form"), options.pop("report"), has_details=options.pop("details"))


def report_outputs(stdout_format: str | None, reports: Iterable[str], *, has_details: bool) -> ReportOutputs:
    """Check the options of a command. `reports` are the values of `--report`."""
    file_formats: dict[Path, str] = {}
    for value in reports:
        report_format, _, file = value.partition("=")
        if report_format not in REPORT_FORMATS or not file:
            raise InvalidInput(f"{value!r} is not a report", where="--report", hint=REPORT_HINT)
        if file == "-" and stdout_format is not None:
            raise InvalidInput("stdout gets one report only", where="--report", hint="leave out --format or one FILE -")
        if file == "-":
            stdout_format = report_format
            continue
        path = _report_path(file)
        if path in file_formats:
            raise InvalidInput(f"{file} is named twice", where="--report", hint="use a different file for each format")
        file_formats[path] = report_format
    return ReportOutputs(stdout_format or "text", file_formats, has_details)


def _report_path(file: str) -> Path:
    """The path with all links of its directory resolved. Fails now if the file cannot be written after the run."""
    path = Path(file)
    try:
        path = path.parent.resolve(strict=True) / path.name
        output_files.require_regular_file(path)
    except OSError as error:
        raise InvalidInput(f"the report cannot be written: {error.strerror}", where=file) from None
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput("the report cannot be written: no write permission for its directory", where=file)
    return path


def print_report(report: Report, outputs: ReportOutputs, terminal: TerminalSettings) -> int:
    """Write the files, print the report, and return its exit code.

    If stdout is redirected and stderr is a terminal, one screen of text goes there.
    """
    problems = [
        problem
        for path, report_format in outputs.file_formats.items()
        if (problem := _write_report(report, path, report_format))
    ]
    if not sys.stdout.isatty() and sys.stderr.isatty():
        print_text(report_text.summary_text(report, _screen(sys.stderr, terminal)).rstrip("\n"), err=True)
    print_text(_stdout_text(report, outputs, terminal).rstrip("\n"))
    if problems:
        raise WindlassError("; ".join(problems))
    return report.summary.exit_code


def render_report(report: Report, report_format: str) -> str:
    """The report as a file has it: text with all details and without a limited width."""
    if report_format == "json":
        return msgspec.json.format(msgspec.json.encode(report_documents.document(report)), indent=2).decode()
    return report_junit.junit(report) if report_format == "junit" else report_text.text(report)


def _stdout_text(report: Report, outputs: ReportOutputs, terminal: TerminalSettings) -> str:
    if outputs.stdout_format != "text" or not sys.stdout.isatty():
        return render_report(report, outputs.stdout_format)
    screen = _screen(sys.stdout, terminal)
    return report_text.text(report, screen.width) if outputs.has_details else report_text.summary_text(report, screen)


def _write_report(report: Report, path: Path, report_format: str) -> str:
    """Write one file; return what went wrong, so that one file does not keep the other reports from being written."""
    content = printed_text(render_report(report, report_format)).rstrip("\n") + "\n"
    try:
        output_files.write_file(path, content.encode(errors="backslashreplace"))
    except OSError as error:
        return f"the report {path} cannot be written: {error.strerror}"
    return ""


def _screen(stream: TextIO, terminal: TerminalSettings) -> Screen:
    """The size of the terminal; variables override it, as for the live view."""
    try:
        width, height = os.get_terminal_size(stream.fileno())
    except OSError:
        width, height = 0, 0
    return Screen(
        _positive_number(terminal.variables.get("COLUMNS", "")) or width or DEFAULT_SCREEN.width,
        _positive_number(terminal.variables.get("LINES", "")) or height or DEFAULT_SCREEN.height,
    )


def _positive_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
