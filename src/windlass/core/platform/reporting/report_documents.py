"""A report as a JSON document. Its version changes when a reader would have to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.platform.documents import API_VERSION, plain

if TYPE_CHECKING:
    from windlass.core.platform.reporting.reports import Report

KIND = "Report"


def document(report: Report) -> dict[str, Any]:
    """Names in camel case, times as RFC 3339 in UTC, spans in seconds; nothing is left out."""
    return {"apiVersion": API_VERSION, "kind": KIND, **plain(report)}
