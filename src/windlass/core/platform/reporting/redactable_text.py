"""Redaction of the texts in reports and events that come from Argo CD, the API server or pods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.core.log_lines import LogLine
from windlass.core.platform.events import NodeFinished, NodeWaiting
from windlass.core.platform.gate_values import Failed
from windlass.core.platform.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Component, Report


def redact_report(report: Report, redact: Callable[[str], str]) -> Report:
    """The report with `redact` applied to every external text; names, revisions and numbers are unchanged."""
    failures = [
        replace(each, detail=redact(each.detail), diagnostics=tuple(map(redact, each.diagnostics)))
        for each in report.failures
    ]
    return replace(
        report,
        components=tuple(_redact_component(each, redact) for each in report.components),
        failures=tuple(failures),
        steps=tuple(replace(step, why=redact(step.why)) for step in report.steps),
        unmet=tuple(replace(each, why=redact(each.why)) for each in report.unmet),
        compliance=tuple(replace(each, what=redact(each.what)) for each in report.compliance),
        notices=tuple(map(redact, report.notices)),
    )


def redact_event(event: Event, redact: Callable[[str], str]) -> Event:
    match event:
        case NodeWaiting():
            return replace(event, detail=redact(event.detail))
        case LogLine():
            return replace(event, message=redact(event.message))
        case NodeFinished(Outcome(decision=Failed() as failed) as outcome):
            return NodeFinished(replace(outcome, decision=replace(failed, detail=redact(failed.detail))))
    return event


def _redact_component(component: Component, redact: Callable[[str], str]) -> Component:
    evidence = component.evidence
    if evidence is None:
        return component
    return replace(component, evidence=replace(evidence, health_message=redact(evidence.health_message)))
