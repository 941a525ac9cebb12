"""Redaction of the texts in reports and events that come from Argo CD, the API server or pods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.core.platform.events import NodeEnded, NodeWaits, Noticed
from windlass.core.platform.gates import Failed
from windlass.core.platform.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Component, Report


def changed(report: Report, change: Callable[[str], str]) -> Report:
    """The report with `redact` applied to every external text; names, revisions and numbers are unchanged."""
    failures = [
        replace(each, detail=change(each.detail), diagnostics=tuple(map(change, each.diagnostics)))
        for each in report.failures
    ]
    return replace(
        report,
        components=tuple(_component(each, change) for each in report.components),
        failures=tuple(failures),
        steps=tuple(replace(step, why=change(step.why)) for step in report.steps),
        unmet=tuple(replace(each, why=change(each.why)) for each in report.unmet),
        compliance=tuple(replace(each, what=change(each.what)) for each in report.compliance),
        notices=tuple(map(change, report.notices)),
    )


def changed_event(event: Event, change: Callable[[str], str]) -> Event:
    match event:
        case NodeWaits():
            return replace(event, detail=change(event.detail))
        case Noticed():
            return replace(event, message=change(event.message))
        case NodeEnded(Outcome(judgement=Failed() as failed) as outcome):
            return NodeEnded(replace(outcome, judgement=replace(failed, detail=change(failed.detail))))
    return event


def _component(component: Component, change: Callable[[str], str]) -> Component:
    evidence = component.evidence
    if evidence is None:
        return component
    return replace(component, evidence=replace(evidence, health_message=change(evidence.health_message)))
