"""A report as text: the verdict, the root causes and the next command on one screen, then the details in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.gates import short
from windlass.core.platform.model.graphs import ZERO
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import timedelta

    from windlass.core.platform.planning.plans import Step
    from windlass.core.platform.reporting.reports import Component, Failure, Report, Span

ROOTS_SHOWN = 3
LINES_FOR_ROOTS = 9
NAMES_SHOWN = 5
LINE = 110
BAR = 40
_PLACES = (
    Result.FAILED, Result.INTERRUPTED, Result.SKIPPED, Result.NOT_STARTED, Result.SUCCEEDED, Result.UNCHANGED,
)  # fmt: skip


def text(report: Report) -> str:
    blocks = [
        list(_summary(report)),
        list(_root_causes(report)),
        ["in the way", *(f"  {each.name}: {each.why}; needed by {_list(each.needed_by)}" for each in report.unmet)],
        ["next", *_next(report)],
        ["notices", *(f"  {notice}" for notice in report.notices)],
        ["orphans: left behind, and nobody's", *(f"  {name}" for name in report.removal.orphans)],
        ["retained on purpose", *(f"  {name}" for name in report.removal.retained)],
        ["steps", *_steps(report)],
        ["failures in full", *_failures(report)],
        [
            "compliance",
            *(f"  {each.rule} {each.application}: {each.what} ({each.remedy})" for each in report.compliance),
        ],
        ["components (* critical)", *_components(report)],
        ["timeline (# on the critical path)", *_timeline(report)],
        ["calls", *_calls(report)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if len(block) > 1) + "\n"


def duration_words(span: timedelta) -> str:
    """`4 s`, `3 min 20 s`, `1 h 5 min`."""
    seconds = round(span.total_seconds())
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


def _summary(report: Report) -> Iterator[str]:
    summary = report.summary
    dry = ", dry run" if summary.is_dry_run else ""
    stopped = ", interrupted" if summary.was_interrupted else ""
    yield f"{summary.action} of {summary.scope} in {summary.environment}: {summary.verdict}{dry}{stopped}"
    counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items()) or "nothing in scope"
    yield f"  {counts}; {_time(report)}; exit code {summary.exit_code}"
    if under_way := _stopped(report):
        yield f"  under way when it ended: {_list(under_way, NAMES_SHOWN)}"


def _time(report: Report) -> str:
    estimated = report.metrics.estimated
    if estimated is None:
        return duration_words(report.summary.duration)
    if _is_ahead(report):
        return f"estimated {duration_words(estimated)}"
    return f"{duration_words(report.summary.duration)}, estimated {duration_words(estimated)}"


def _is_ahead(report: Report) -> bool:
    """Whether no step was started, as in a dry run: then the steps are shown instead of their components."""
    return all(component.result in {Result.NOT_STARTED, Result.UNCHANGED} for component in report.components)


def _stopped(report: Report) -> tuple[str, ...]:
    """Components that were in progress when the run ended; these are never root causes."""
    return tuple(component.name for component in report.components if component.result is Result.INTERRUPTED)


def _roots(report: Report) -> tuple[Failure, ...]:
    return root_causes(failure for failure in report.failures if failure.name not in _stopped(report))


def _root_causes(report: Report) -> Iterator[str]:
    """The root causes with their commands, short enough for the first screen."""
    roots = _roots(report)
    if not roots:
        return
    blocked = {name for failure in roots for name in failure.blocks}
    yield f"{_counted(len(roots), 'root cause')}, {_counted(len(blocked), 'component')} blocked"
    for failure in roots[:ROOTS_SHOWN]:
        yield _cut(f"  {failure.name}  {failure.reason}: {failure.detail}")
        if failure.blocks:
            yield f"    blocks {len(failure.blocks)}: {_list(failure.blocks, NAMES_SHOWN)}"
        yield from (_cut(f"    | {line}") for line in failure.diagnostics[: _room(len(roots))])
        yield from (f"    $ {command}" for command in _commands(report, failure.name))
    if roots[ROOTS_SHOWN:]:
        yield f"  and {_list(tuple(failure.name for failure in roots[ROOTS_SHOWN:]), NAMES_SHOWN)}"


def _room(roots: int) -> int:
    """Diagnostic lines to show per root cause, so that all root causes fit on the first screen."""
    return LINES_FOR_ROOTS // min(roots, ROOTS_SHOWN) - 3


def _commands(report: Report, name: str) -> Iterator[str]:
    general = {each.command for each in report.recommendations if not each.application}
    for each in report.recommendations:
        if each.application == name and each.command not in general:
            yield each.command


def _next(report: Report) -> Iterator[str]:
    """Recommendations that belong to no failure; the others are shown with their failure."""
    failed = {failure.name for failure in report.failures}
    for each in report.recommendations:
        if each.application not in failed:
            yield f"  {each.sentence}"
            yield f"    $ {each.command}"


def _failures(report: Report) -> Iterator[str]:
    """All failures in full: root causes first, interrupted components last. Empty if the first screen shows it all."""
    roots = _roots(report)
    shown, stopped = roots[:ROOTS_SHOWN], _stopped(report)
    rest = [failure for failure in report.failures if failure not in shown]
    is_told = not any(_is_long(failure, _room(len(roots))) for failure in shown)
    if is_told and not any(failure.name not in stopped or failure.diagnostics for failure in rest):
        return
    for failure in (*shown, *sorted(rest, key=lambda each: (each.name in stopped, -len(each.blocks), each.name))):
        yield from _failure(failure, report)


def _is_long(failure: Failure, room: int) -> bool:
    lines = [
        f"  {failure.name}  {failure.reason}: {failure.detail}",
        *(f"    | {line}" for line in failure.diagnostics),
    ]
    is_cut = any(line != _cut(line) for line in lines)
    return is_cut or len(failure.blocks) > NAMES_SHOWN + 1 or len(failure.diagnostics) > room


def _failure(failure: Failure, report: Report) -> Iterator[str]:
    first, *more = failure.detail.splitlines() or [""]
    yield f"  {failure.name}  {failure.reason}: {first}"
    yield from (f"    {line}" for line in more)
    if failure.blocks:
        yield f"    blocks {len(failure.blocks)}: {_list(failure.blocks)}"
    yield from (f"    | {line}" for line in failure.diagnostics)
    for each in report.recommendations:
        if each.application == failure.name:
            yield f"    {each.sentence}"
            yield f"      $ {each.command}"


def _steps(report: Report) -> Iterator[str]:
    if _is_ahead(report) and report.steps:
        expected = {each.name: each.expected for each in report.components}
        yield from table([_step(step, expected.get(step.name)) for step in report.steps])


def _step(step: Step, expected: timedelta | None) -> tuple[str, ...]:
    return (
        step.verb,
        step.name,
        f"about {duration_words(expected)}" if expected else "",
        f"to {short(step.revisions)}" if step.revisions else "",
        step.why,
        f"after {_list(step.after, NAMES_SHOWN)}" if step.after else "",
    )


def _components(report: Report) -> Iterator[str]:
    """The table of components; if only a plan is shown, without the components of its steps."""
    told = {step.name for step in report.steps} if _is_ahead(report) else set()
    shown = [component for component in report.components if component.name not in told]
    if shown:
        head = ("name", "stack", "health", "result", "took", "expected", "at", "proof", "")
        rows = [_component(component) for component in sorted(shown, key=lambda each: (_place(each), each.name))]
        yield from table([_without_empty(head, rows), *rows])


def _without_empty(head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The header, without the titles of empty columns, so that `table` omits those columns."""
    return tuple(word if any(row[place] for row in rows) else "" for place, word in enumerate(head))


def _place(component: Component) -> int:
    """Sort key: components that need attention come first."""
    if component.result is None:
        return component.health is Health.HEALTHY
    return _PLACES.index(component.result)


def _component(component: Component) -> tuple[str, ...]:
    evidence = component.evidence
    marks = [
        f"because of {_list(component.causes)}" if component.causes else "",
        f"{component.attempts} attempts" if component.attempts > 1 else "",
        "drifting" if evidence and evidence.is_drifting else "",
        "not directly verified" if evidence and not evidence.is_directly_verified else "",
    ]
    return (
        component.name + ("*" if component.is_critical else ""),
        component.stack,
        str(component.health),
        str(component.result or ""),
        "" if component.duration is None else duration_words(component.duration),
        "" if component.duration is None or component.expected is None else duration_words(component.expected),
        short(component.revisions) if component.revisions else "",
        evidence.proof.name.lower().replace("_", " ") if evidence and evidence.proof else "",
        ", ".join(filter(None, marks)),
    )


def _timeline(report: Report) -> Iterator[str]:
    """One bar per started component, drawn with # if it is on the critical path."""
    path, spans = report.timeline.critical_path, report.timeline.spans
    if spans:
        yield from table(
            [(each.name, _bar(each, report), duration_words(each.finished - each.started)) for each in spans]
        )
    if path.names:
        ran = {span.name for span in spans}
        names = [name for name in path.names if name in ran or not spans]
        yield f"  critical path {duration_words(path.duration)}{_share(report)}: {' -> '.join(names)}"


def _bar(span: Span, report: Report) -> str:
    """The span on a scale from the start of the run to the end of the last span; at least one character long."""
    begin = report.summary.started
    whole = max(each.finished for each in report.timeline.spans) - begin
    start, end = (round((when - begin) / whole * BAR) if whole else 0 for when in (span.started, span.finished))
    start = min(start, BAR - 1)
    mark = "#" if span.name in report.timeline.critical_path.names else "-"
    return "|" + f"{' ' * start}{mark * max(1, end - start)}".ljust(BAR) + "|"


def _share(report: Report) -> str:
    """The critical path as a share of the run; the rest is waiting for a free slot, and the work of Windlass itself."""
    if not report.timeline.spans or report.summary.duration <= ZERO:
        return ""
    return f", {report.timeline.critical_path.duration / report.summary.duration:.0%} of the run"


def _calls(report: Report) -> Iterator[str]:
    calls = report.metrics.calls
    yield f"  {calls.reads} reads, {calls.writes} writes, {_counted(calls.refreshes, 'refresh', 'refreshes')}"


def _counted(number: int, word: str, many: str = "") -> str:
    return f"{number} {word if number == 1 else many or f'{word}s'}"


def _list(names: Sequence[str], most: int | None = None) -> str:
    rest = len(names) - most if most else 0
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:most])} and {rest} more"


def _cut(line: str) -> str:
    """The first line of the text, cut to the maximum width; `failures in full` shows the whole text."""
    first = line.split("\n", 1)[0]
    return first if len(first) <= LINE else f"{first[: LINE - 3]}..."
