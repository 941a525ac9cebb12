"""A report as a JSON document; `apiVersion` changes with every change that breaks existing readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.core.platform.documents import API_VERSION, to_json

if TYPE_CHECKING:
    from windlass.core.platform.reporting.reports import Report

KIND = "Report"


def document(report: Report) -> dict[str, Any]:
    """Keys in camel case, times as RFC 3339 in UTC, durations in seconds; empty fields are included."""
    return {"apiVersion": API_VERSION, "kind": KIND, **to_json(report)}
