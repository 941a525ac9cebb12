"""Events and reports as log lines: level, message and component. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.events import (
    Event,
    Level,
    NodeEnded,
    NodeStarted,
    NodeWaits,
    Noticed,
    PhaseBegan,
    Planned,
)
from windlass.core.platform.gates import Failed, Open, short
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.reporting.report_text import duration_words
from windlass.core.platform.reporting.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report


@dataclass(frozen=True, slots=True)
class Line:
    level: Level
    message: str
    component: str = ""


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


def of_event(event: Event) -> Iterator[Line]:
    match event:
        case PhaseBegan(phase):
            yield Line(Level.INFO, f"{phase} begins")
        case Planned(plan):
            yield from _of_plan(plan)
        case NodeStarted(name, verb, attempt):
            again = f", attempt {attempt}" if attempt > 1 else ""
            yield Line(Level.WARN if again else Level.INFO, f"{verb} begins{again}", name)
        case NodeWaits(name, reason, detail):
            yield Line(Level.DEBUG, f"waits: {reason}: {detail}", name)
        case NodeEnded(outcome):
            yield Line(_RESULT_LEVELS[outcome.result], _ending(outcome), outcome.name)
        case Noticed(level, message, name):
            yield Line(level, message, name)


def of_report(report: Report) -> Iterator[Line]:
    """The verdict, and the diagnostics of failures, which the events did not contain."""
    summary, calls = report.summary, report.metrics.calls
    for failure in report.failures:
        for diagnostic in failure.diagnostics:
            yield Line(Level.DEBUG, diagnostic, failure.name)
    counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items())
    interrupted = ", interrupted" if summary.was_interrupted else ""
    yield Line(
        _VERDICT_LEVELS[summary.verdict],
        f"{summary.verdict}{interrupted} after {duration_words(summary.duration)}: {counts or 'nothing to do'}; "
        f"{calls.reads} reads, {calls.writes} writes, {calls.refreshes} refreshes; exit code {summary.exit_code}",
    )


def _of_plan(plan: Plan) -> Iterator[Line]:
    for unmet in plan.unmet:
        yield Line(Level.ERROR, f"needed by {', '.join(unmet.needed_by)} and out of scope: {unmet.why}", unmet.name)
    for step in plan.steps:
        yield Line(Level.DEBUG, f"planned: {step.verb}: {step.why}", step.name)
    estimate = f", estimated {duration_words(plan.makespan)}" if plan.steps else ""
    yield Line(Level.INFO, f"{len(plan.steps)} steps, {len(plan.unchanged)} unchanged{estimate}")


def _ending(outcome: Outcome) -> str:
    words = str(outcome.result)
    if outcome.duration is not None:
        words += f" after {duration_words(outcome.duration)}"
    if outcome.attempts > 1:
        words += f" and {outcome.attempts} attempts"
    if outcome.causes:
        words += f" because of {', '.join(outcome.causes)}"
    match outcome.judgement:
        case Open(evidence):
            shown = f" at {short(evidence.shown)}" if evidence.shown else ""
            return f"{words}: {evidence.health}{shown}" + (f" ({evidence.proof})" if evidence.proof else "")
        case Failed(reason, detail):
            return f"{words}: {reason}: {detail}"
        case None:
            return words
