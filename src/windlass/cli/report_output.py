"""Output of a report: text, JSON or JUnit, on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windlass.cli.printed_lines import print_text
from windlass.core.platform.reporting import report_documents, report_junit, report_text

if TYPE_CHECKING:
    from windlass.core.platform.reporting.reports import Report


def print_report(report: Report, report_format: str) -> int:
    """Print the report and return its exit code."""
    print_text(render_report(report, report_format))
    return report.summary.exit_code


def render_report(report: Report, report_format: str) -> str:
    if report_format == "json":
        return msgspec.json.format(msgspec.json.encode(report_documents.document(report)), indent=2).decode()
    text = report_junit.junit(report) if report_format == "junit" else report_text.text(report)
    return text.rstrip("\n")
