"""The details of a report as text: steps, failures in full, components, timeline and API calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import abbreviate
from windlass.core.platform.model.graphs import ZERO
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Result
from windlass.core.platform.reporting.text_layout import format_duration, join_names, pluralize, table, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from windlass.core.platform.planning.plans import Step
    from windlass.core.platform.reporting.failures import Failure
    from windlass.core.platform.reporting.reports import Component, Report, Span

MAX_NAMES = 5
BAR_WIDTH = 40
NARROW_BAR_WIDTH = 20  # on a screen of less than 100 columns
_COLUMNS = ("name", "stack", "health", "result", "took", "expected", "compared with", "proof", "")
_OPTIONAL_COLUMNS = (7, 5, 1, 6, 4)  # of a table that is too wide: proof, expected, stack, at, took
_RESULT_ORDER = (
    Result.FAILED, Result.INTERRUPTED, Result.SKIPPED, Result.NOT_STARTED, Result.SUCCEEDED, Result.UNCHANGED,
)  # fmt: skip


def is_plan_only(report: Report) -> bool:
    """Whether no step was started, as in a dry run: then the steps are shown instead of their components."""
    results = {Result.NOT_STARTED, Result.UNCHANGED, Result.FAILED, Result.SKIPPED}
    return all(each.result in results and not each.attempts for each in report.components)


def step_lines(report: Report, width: int | None) -> Iterator[str]:
    if is_plan_only(report) and report.steps:
        expected = {each.name: each.expected for each in report.components}
        rows = [_step_row(step, expected.get(step.name)) for step in report.steps]
        yield from table(rows, width=width, optional=(5, 2))


def _step_row(step: Step, expected: timedelta | None) -> tuple[str, ...]:
    return (
        step.verb,
        step.name,
        f"about {format_duration(expected)}" if expected else "",
        f"to {abbreviate(step.revisions)}" if step.revisions else "",
        step.why,
        f"after {join_names(step.after, MAX_NAMES)}" if step.after else "",
    )


def failure_lines(failure: Failure, report: Report, width: int | None) -> Iterator[str]:
    yield from headline(failure, width)
    if failure.blocks:
        yield from wrap(f"    {blocks_text(failure, report)}: {join_names(failure.blocks)}", width)
    for line in failure.diagnostics:
        yield from wrap(f"    | {line}", width)
    for each in report.recommendations:
        if each.application == failure.name:
            yield from wrap(f"    {each.sentence}", width)
            yield from wrap(f"      $ {each.command}", width)


def headline(failure: Failure, width: int | None) -> Iterator[str]:
    """Name, reason and detail; further lines of the detail are indented."""
    first, *more = failure.detail.splitlines() or [""]
    yield from wrap(f"  {failure.name}  {failure.reason}: {first}", width)
    for line in more:
        yield from wrap(f"    {line}", width)


def blocks_text(failure: Failure, report: Report) -> str:
    """`blocks 3`; a validation blocks nothing, so there it is `3 depend on it`."""
    number = len(failure.blocks)
    if report.summary.action != "validate":
        return f"blocks {number}"
    return f"{number} {'depends' if number == 1 else 'depend'} on it"


def component_lines(report: Report, width: int | None) -> Iterator[str]:
    """The table of components; if only a plan is shown, without the components of its steps."""
    step_names = {step.name for step in report.steps} if is_plan_only(report) else set()
    shown = [component for component in report.components if component.name not in step_names]
    if shown:
        rows = [
            _component_row(component) for component in sorted(shown, key=lambda each: (_sort_rank(each), each.name))
        ]
        yield from table([_header_row(_COLUMNS, rows), *rows], width=width, optional=_OPTIONAL_COLUMNS)


def _header_row(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The header, without the titles of empty columns, so that `table` omits those columns."""
    return tuple(word if any(row[column] for row in rows) else "" for column, word in enumerate(header))


def _sort_rank(component: Component) -> int:
    """Sort key: components that need attention come first."""
    if component.result is None:
        return component.health is Health.HEALTHY
    return _RESULT_ORDER.index(component.result)


def _component_row(component: Component) -> tuple[str, ...]:
    evidence = component.evidence
    notes = [
        f"because of {join_names(component.causes)}" if component.causes else "",
        f"{component.attempts} attempts" if component.attempts > 1 else "",
        _sync_note(component),
        "not directly verified" if evidence and not evidence.is_directly_verified else "",
    ]
    return (
        component.name + ("*" if component.is_critical else ""),
        component.stack,
        str(component.health),
        str(component.result or ""),
        "" if component.duration is None else format_duration(component.duration),
        "" if component.duration is None or component.expected is None else format_duration(component.expected),
        abbreviate(component.revisions) if component.revisions else "",
        evidence.proof.name.lower().replace("_", " ") if evidence and evidence.proof else "",
        ", ".join(filter(None, notes)),
    )


def _sync_note(component: Component) -> str:
    if component.evidence and component.evidence.is_drifting:
        return "drifting"
    return "out of sync" if component.sync == "OutOfSync" else ""


def timeline_lines(report: Report, width: int | None) -> Iterator[str]:
    """One bar per started component, drawn with # if it is on the critical path."""
    path, spans = report.timeline.critical_path, report.timeline.spans
    if spans:
        bar_width = BAR_WIDTH if width is None or width >= 100 else NARROW_BAR_WIDTH
        yield from table(
            [
                (each.name, _bar(each, report, bar_width), format_duration(each.finished - each.started))
                for each in spans
            ]
        )
    if path.names:
        started_names = {span.name for span in spans}
        names = [name for name in path.names if name in started_names or not spans]
        line = f"  critical path {format_duration(path.duration)}{_critical_path_share(report)}: {' -> '.join(names)}"
        yield from wrap(line, width)


def _bar(span: Span, report: Report, width: int) -> str:
    """The span on a scale from the start of the run to the end of the last span; at least one character long."""
    run_start = report.summary.started
    total = max(each.finished for each in report.timeline.spans) - run_start
    start, end = (round((when - run_start) / total * width) if total else 0 for when in (span.started, span.finished))
    start = min(start, width - 1)
    mark = "#" if span.name in report.timeline.critical_path.names else "-"
    return "|" + f"{' ' * start}{mark * max(1, end - start)}".ljust(width) + "|"


def _critical_path_share(report: Report) -> str:
    """The critical path as a share of the run; the rest is waiting for a free slot, and the work of Windlass itself.

    Times below a second are not shown, and neither is their share.
    """
    path, duration = report.timeline.critical_path.duration, report.summary.duration
    if not report.timeline.spans or duration <= ZERO or path.total_seconds() < 0.5:
        return ""
    return f", {path / duration:.0%} of the run"


def call_lines(report: Report) -> Iterator[str]:
    calls = report.metrics.calls
    yield f"  {calls.reads} reads, {calls.writes} writes, {pluralize(calls.refreshes, 'refresh', 'refreshes')}"
