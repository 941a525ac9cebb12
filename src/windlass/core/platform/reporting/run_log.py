"""The log of a run: its events and its report as log lines, without phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import (
    Event,
    NodeFinished,
    NodeStarted,
    NodeWaiting,
    PhaseStarted,
    PlanReady,
)
from windlass.core.platform.gate_values import Failed, Open, abbreviate
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.reporting.text_layout import format_duration
from windlass.core.platform.reporting.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report


_RESULT_LEVELS = {
    Result.UNCHANGED: Level.DEBUG,
    Result.SUCCEEDED: Level.INFO,
    Result.FAILED: Level.ERROR,
    Result.SKIPPED: Level.WARN,
    Result.INTERRUPTED: Level.WARN,
    Result.NOT_STARTED: Level.WARN,
}
_VERDICT_LEVELS = {
    Verdict.SUCCESS: Level.INFO,
    Verdict.PARTIAL: Level.WARN,
    Verdict.FAILURE: Level.ERROR,
    Verdict.TIMEOUT: Level.ERROR,
}


def event_lines(event: Event) -> Iterator[LogLine]:
    match event:
        case PhaseStarted(phase):
            yield LogLine(Level.INFO, f"{phase} begins")
        case PlanReady(plan):
            yield from _plan_lines(plan)
        case NodeStarted(name, verb, attempt):
            attempt_suffix = f", attempt {attempt}" if attempt > 1 else ""
            yield LogLine(Level.WARN if attempt_suffix else Level.INFO, f"{verb} begins{attempt_suffix}", name)
        case NodeWaiting(name, reason, detail):
            yield LogLine(Level.DEBUG, f"waits: {reason}: {detail}", name)
        case NodeFinished(outcome):
            yield LogLine(_RESULT_LEVELS[outcome.result], _outcome_message(outcome), outcome.name)
        case _:
            yield event


def report_lines(report: Report) -> Iterator[LogLine]:
    """The verdict, and the diagnostics of failures, which the events did not contain."""
    summary, calls = report.summary, report.metrics.calls
    for failure in report.failures:
        for diagnostic in failure.diagnostics:
            yield LogLine(Level.DEBUG, diagnostic, failure.name)
    counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items())
    interrupted = ", interrupted" if summary.was_interrupted else ""
    yield LogLine(
        _VERDICT_LEVELS[summary.verdict],
        f"{summary.verdict}{interrupted} after {format_duration(summary.duration)}: {counts or 'nothing to do'}; "
        f"{calls.reads} reads, {calls.writes} writes, {calls.refreshes} refreshes; exit code {summary.exit_code}",
    )


def _plan_lines(plan: Plan) -> Iterator[LogLine]:
    for unmet in plan.unmet:
        yield LogLine(Level.ERROR, f"needed by {', '.join(unmet.needed_by)} and out of scope: {unmet.why}", unmet.name)
    for step in plan.steps:
        yield LogLine(Level.DEBUG, f"planned: {step.verb}: {step.why}", step.name)
    estimate = f", estimated {format_duration(plan.makespan)}" if plan.steps else ""
    yield LogLine(Level.INFO, f"{len(plan.steps)} steps, {len(plan.unchanged)} unchanged{estimate}")


def _outcome_message(outcome: Outcome) -> str:
    message = str(outcome.result)
    if outcome.duration is not None:
        message += f" after {format_duration(outcome.duration)}"
    if outcome.attempts > 1:
        message += f" and {outcome.attempts} attempts"
    if outcome.causes:
        message += f" because of {', '.join(outcome.causes)}"
    match outcome.decision:
        case Open(evidence):
            revisions = f" at {abbreviate(evidence.shown)}" if evidence.shown else ""
            return f"{message}: {evidence.health}{revisions}" + (f" ({evidence.proof})" if evidence.proof else "")
        case Failed(reason, detail):
            return f"{message}: {reason}: {detail}"
    return message
