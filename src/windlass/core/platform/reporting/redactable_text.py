"""Redaction of reports and events: every text in them, because any may come from Argo CD, the API server or pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from windlass.core.platform.model.graphs import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.platform.cluster_status import ClusterStatus
    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Report


def redact_report(report: Report, redact: Callable[[str], str]) -> Report:
    redacted: Report = _redact_texts(report, redact)
    return redacted


def redact_event(event: Event, redact: Callable[[str], str]) -> Event:
    redacted: Event = _redact_texts(event, redact)
    return redacted


def redact_status(status: ClusterStatus, redact: Callable[[str], str]) -> ClusterStatus:
    redacted: ClusterStatus = _redact_texts(status, redact)
    return redacted


def _redact_texts(value: Any, redact: Callable[[str], str]) -> Any:
    """A copy of the value with `redact` applied to every text in it.

    Members of enumerations are fixed words, and the names in a graph must stay equal to those of the platform.
    """
    if isinstance(value, Enum | Graph):
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, tuple):
        return tuple(_redact_texts(each, redact) for each in value)
    if isinstance(value, Mapping):
        return {key: _redact_texts(each, redact) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _redact_texts(getattr(value, each.name), redact) for each in fields(value)})
    return value
