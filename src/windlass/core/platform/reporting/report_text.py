"""A report as text: the verdict, the root causes and the next command on one screen, then the details in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import abbreviate
from windlass.core.platform.model.graphs import ZERO
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import timedelta

    from windlass.core.platform.planning.plans import Step
    from windlass.core.platform.reporting.failures import Failure
    from windlass.core.platform.reporting.reports import Component, Report, Span

MAX_ROOT_CAUSES = 3
ROOT_CAUSE_LINES = 9
MAX_NAMES = 5
MAX_LINE_WIDTH = 110
BAR_WIDTH = 40
_RESULT_ORDER = (
    Result.FAILED, Result.INTERRUPTED, Result.SKIPPED, Result.NOT_STARTED, Result.SUCCEEDED, Result.UNCHANGED,
)  # fmt: skip


def text(report: Report) -> str:
    blocks = [
        list(_summary_lines(report)),
        list(_root_cause_lines(report)),
        [
            "in the way",
            *(f"  {each.name}: {each.why}; needed by {_join_names(each.needed_by)}" for each in report.unmet),
        ],
        ["next", *_next_command_lines(report)],
        ["notices", *(f"  {notice}" for notice in report.notices)],
        ["orphans: left behind, and nobody's", *(f"  {name}" for name in report.removal.orphans)],
        ["retained on purpose", *(f"  {name}" for name in report.removal.retained)],
        ["destroyed with their data", *(f"  {name}" for name in report.removal.destroyed)],
        ["steps", *_step_lines(report)],
        ["failures in full", *_all_failure_lines(report)],
        [
            "compliance",
            *(f"  {each.rule} {each.application}: {each.what} ({each.remedy})" for each in report.compliance),
        ],
        ["components (* critical)", *_component_lines(report)],
        ["timeline (# on the critical path)", *_timeline_lines(report)],
        ["calls", *_call_lines(report)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if len(block) > 1) + "\n"


def format_duration(duration: timedelta) -> str:
    """`4 s`, `3 min 20 s`, `1 h 5 min`."""
    seconds = round(duration.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s" if seconds % 60 else f"{seconds // 60} min"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def root_causes(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Failures that no other failure blocks; the one that blocks the most components comes first."""
    every = tuple(failures)
    explained = {name for failure in every for name in failure.blocks}
    roots = [failure for failure in every if failure.name not in explained]
    return tuple(sorted(roots, key=lambda failure: (-len(failure.blocks), failure.name)))


def table(rows: Sequence[Sequence[str]], indent: str = "  ") -> Iterator[str]:
    """Aligned lines; each column is as wide as its widest cell, and a column without text is omitted."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width]
        yield (indent + "  ".join(cells)).rstrip()


def _summary_lines(report: Report) -> Iterator[str]:
    summary = report.summary
    dry = ", dry run" if summary.is_dry_run else ""
    stopped = ", interrupted" if summary.was_interrupted else ""
    yield f"{summary.action} of {summary.scope} in {summary.environment}: {summary.verdict}{dry}{stopped}"
    counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items()) or "nothing in scope"
    yield f"  {counts}; {_duration_text(report)}; exit code {summary.exit_code}"
    if target := _target_text(report):
        yield f"  {target}"
    if under_way := _interrupted_names(report):
        yield f"  under way when it ended: {_join_names(under_way, MAX_NAMES)}"


def _target_text(report: Report) -> str:
    """The platform and the server; a rehearsal has no server, `validate --all` no platform."""
    summary = report.summary
    platform = f"platform {summary.platform} ({summary.platform_file})" if summary.platform else ""
    return ", ".join(filter(None, (platform, f"server {summary.server}" if summary.server else "")))


def _duration_text(report: Report) -> str:
    estimated = report.metrics.estimated
    if estimated is None:
        return format_duration(report.summary.duration)
    if _is_plan_only(report):
        return f"estimated {format_duration(estimated)}"
    return f"{format_duration(report.summary.duration)}, estimated {format_duration(estimated)}"


def _is_plan_only(report: Report) -> bool:
    """Whether no step was started, as in a dry run: then the steps are shown instead of their components."""
    results = {Result.NOT_STARTED, Result.UNCHANGED, Result.FAILED, Result.SKIPPED}
    return all(each.result in results and not each.attempts for each in report.components)


def _interrupted_names(report: Report) -> tuple[str, ...]:
    """Components that were in progress when the run ended; these are never root causes."""
    return tuple(component.name for component in report.components if component.result is Result.INTERRUPTED)


def _report_root_causes(report: Report) -> tuple[Failure, ...]:
    return root_causes(failure for failure in report.failures if failure.name not in _interrupted_names(report))


def _root_cause_lines(report: Report) -> Iterator[str]:
    """The root causes with their commands, short enough for the first screen."""
    roots = _report_root_causes(report)
    if not roots:
        return
    blocked = {name for failure in roots for name in failure.blocks}
    yield f"{_pluralize(len(roots), 'root cause')}, {_pluralize(len(blocked), 'component')} blocked"
    for failure in roots[:MAX_ROOT_CAUSES]:
        yield _truncate(f"  {failure.name}  {failure.reason}: {failure.detail}")
        if failure.blocks:
            yield f"    blocks {len(failure.blocks)}: {_join_names(failure.blocks, MAX_NAMES)}"
        yield from (_truncate(f"    | {line}") for line in failure.diagnostics[: _diagnostics_limit(len(roots))])
        yield from (f"    $ {command}" for command in _commands(report, failure.name))
    if roots[MAX_ROOT_CAUSES:]:
        yield f"  and {_join_names(tuple(failure.name for failure in roots[MAX_ROOT_CAUSES:]), MAX_NAMES)}"


def _diagnostics_limit(root_cause_count: int) -> int:
    """Diagnostic lines to show per root cause, so that all root causes fit on the first screen."""
    return ROOT_CAUSE_LINES // min(root_cause_count, MAX_ROOT_CAUSES) - 3


def _commands(report: Report, name: str) -> Iterator[str]:
    general = {each.command for each in report.recommendations if not each.application}
    for each in report.recommendations:
        if each.application == name and each.command not in general:
            yield each.command


def _next_command_lines(report: Report) -> Iterator[str]:
    """Recommendations that belong to no failure; the others are shown with their failure."""
    failed = {failure.name for failure in report.failures}
    for each in report.recommendations:
        if each.application not in failed:
            yield f"  {each.sentence}"
            yield f"    $ {each.command}"


def _all_failure_lines(report: Report) -> Iterator[str]:
    """All failures in full: root causes first, interrupted components last. Empty if the first screen shows it all."""
    roots = _report_root_causes(report)
    shown, interrupted = roots[:MAX_ROOT_CAUSES], _interrupted_names(report)
    rest = [failure for failure in report.failures if failure not in shown]
    is_fully_shown = not any(_is_truncated(failure, _diagnostics_limit(len(roots))) for failure in shown)
    if is_fully_shown and not any(failure.name not in interrupted or failure.diagnostics for failure in rest):
        return
    for failure in (*shown, *sorted(rest, key=lambda each: (each.name in interrupted, -len(each.blocks), each.name))):
        yield from _failure_lines(failure, report)


def _is_truncated(failure: Failure, max_diagnostics: int) -> bool:
    lines = [
        f"  {failure.name}  {failure.reason}: {failure.detail}",
        *(f"    | {line}" for line in failure.diagnostics),
    ]
    is_cut = any(line != _truncate(line) for line in lines)
    return is_cut or len(failure.blocks) > MAX_NAMES + 1 or len(failure.diagnostics) > max_diagnostics


def _failure_lines(failure: Failure, report: Report) -> Iterator[str]:
    first, *more = failure.detail.splitlines() or [""]
    yield f"  {failure.name}  {failure.reason}: {first}"
    yield from (f"    {line}" for line in more)
    if failure.blocks:
        yield f"    blocks {len(failure.blocks)}: {_join_names(failure.blocks)}"
    yield from (f"    | {line}" for line in failure.diagnostics)
    for each in report.recommendations:
        if each.application == failure.name:
            yield f"    {each.sentence}"
            yield f"      $ {each.command}"


def _step_lines(report: Report) -> Iterator[str]:
    if _is_plan_only(report) and report.steps:
        expected = {each.name: each.expected for each in report.components}
        yield from table([_step_row(step, expected.get(step.name)) for step in report.steps])


def _step_row(step: Step, expected: timedelta | None) -> tuple[str, ...]:
    return (
        step.verb,
        step.name,
        f"about {format_duration(expected)}" if expected else "",
        f"to {abbreviate(step.revisions)}" if step.revisions else "",
        step.why,
        f"after {_join_names(step.after, MAX_NAMES)}" if step.after else "",
    )


def _component_lines(report: Report) -> Iterator[str]:
    """The table of components; if only a plan is shown, without the components of its steps."""
    step_names = {step.name for step in report.steps} if _is_plan_only(report) else set()
    shown = [component for component in report.components if component.name not in step_names]
    if shown:
        header = ("name", "stack", "health", "result", "took", "expected", "at", "proof", "")
        rows = [
            _component_row(component) for component in sorted(shown, key=lambda each: (_sort_rank(each), each.name))
        ]
        yield from table([_header_row(header, rows), *rows])


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
        f"because of {_join_names(component.causes)}" if component.causes else "",
        f"{component.attempts} attempts" if component.attempts > 1 else "",
        "drifting" if evidence and evidence.is_drifting else "",
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


def _timeline_lines(report: Report) -> Iterator[str]:
    """One bar per started component, drawn with # if it is on the critical path."""
    path, spans = report.timeline.critical_path, report.timeline.spans
    if spans:
        yield from table(
            [(each.name, _bar(each, report), format_duration(each.finished - each.started)) for each in spans]
        )
    if path.names:
        started_names = {span.name for span in spans}
        names = [name for name in path.names if name in started_names or not spans]
        yield f"  critical path {format_duration(path.duration)}{_critical_path_share(report)}: {' -> '.join(names)}"


def _bar(span: Span, report: Report) -> str:
    """The span on a scale from the start of the run to the end of the last span; at least one character long."""
    run_start = report.summary.started
    total = max(each.finished for each in report.timeline.spans) - run_start
    start, end = (
        round((when - run_start) / total * BAR_WIDTH) if total else 0 for when in (span.started, span.finished)
    )
    start = min(start, BAR_WIDTH - 1)
    mark = "#" if span.name in report.timeline.critical_path.names else "-"
    return "|" + f"{' ' * start}{mark * max(1, end - start)}".ljust(BAR_WIDTH) + "|"


def _critical_path_share(report: Report) -> str:
    """The critical path as a share of the run; the rest is waiting for a free slot, and the work of Windlass itself."""
    if not report.timeline.spans or report.summary.duration <= ZERO:
        return ""
    return f", {report.timeline.critical_path.duration / report.summary.duration:.0%} of the run"


def _call_lines(report: Report) -> Iterator[str]:
    calls = report.metrics.calls
    yield f"  {calls.reads} reads, {calls.writes} writes, {_pluralize(calls.refreshes, 'refresh', 'refreshes')}"


def _pluralize(number: int, word: str, plural: str = "") -> str:
    return f"{number} {word if number == 1 else plural or f'{word}s'}"


def _join_names(names: Sequence[str], limit: int | None = None) -> str:
    rest = len(names) - limit if limit else 0
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:limit])} and {rest} more"


def _truncate(line: str) -> str:
    """The first line of the text, cut to the maximum width; `failures in full` shows the whole text."""
    first = line.split("\n", 1)[0]
    return first if len(first) <= MAX_LINE_WIDTH else f"{first[: MAX_LINE_WIDTH - 3]}..."
