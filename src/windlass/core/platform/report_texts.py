"""A report for people: the verdict first, then what needs attention, then the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.outcomes import Result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from windlass.core.platform.reports import Component, Failure, Report, Summary


def text(report: Report) -> str:
    blocks = [
        list(_summary(report.summary)),
        ["failures", *(line for failure in report.failures for line in _failure(failure))],
        ["in the way", *(f"  {each.name}: {each.why}; needed by {_list(each.needed_by)}" for each in report.unmet)],
        ["notices", *(f"  {notice}" for notice in report.notices)],
        ["steps", *_steps(report)],
        ["components", *map(_component, report.components)],
        [
            "compliance",
            *(f"  {each.rule} {each.application}: {each.what} ({each.remedy})" for each in report.compliance),
        ],
        ["retained", *(f"  {name}" for name in report.removal.retained)],
        ["orphans", *(f"  {name}" for name in report.removal.orphans)],
        ["timeline", *_timeline(report)],
        ["calls", *_calls(report)],
        ["next", *(f"  {each.sentence}\n    $ {each.command}" for each in report.recommendations)],
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


def _summary(summary: Summary) -> Iterator[str]:
    dry = ", dry run" if summary.is_dry_run else ""
    stopped = ", interrupted" if summary.was_interrupted else ""
    yield f"{summary.action} of {summary.scope} in {summary.environment}: {summary.verdict}{dry}{stopped}"
    counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items()) or "nothing in scope"
    yield f"  {counts}; {duration_words(summary.duration)}; exit code {summary.exit_code}"


def _failure(failure: Failure) -> Iterator[str]:
    yield f"  {failure.name}  {failure.reason}: {failure.detail}"
    if failure.blocks:
        yield f"    blocks {len(failure.blocks)}: {_list(failure.blocks)}"
    yield from (f"    | {line}" for line in failure.diagnostics)


def _steps(report: Report) -> Iterator[str]:
    """Only of what was not carried out: afterwards the components say more."""
    if all(component.result in {Result.NOT_STARTED, Result.UNCHANGED} for component in report.components):
        for step in report.steps:
            after = f" after {_list(step.after)}" if step.after else ""
            yield f"  {step.verb} {step.name}{after}: {step.why}"


def _component(component: Component) -> str:
    words = [component.name, component.stack, str(component.health)]
    if component.result:
        words.append(str(component.result))
    if component.causes:
        words.append(f"because of {_list(component.causes)}")
    if component.duration is not None:
        words.append(duration_words(component.duration))
    if component.evidence and component.evidence.proof:
        words.append(f"({component.evidence.proof})")
    if component.evidence and component.evidence.is_drifting:
        words.append("drifting")
    if component.evidence and not component.evidence.is_directly_verified:
        words.append("not directly verified")
    return "  " + "  ".join(words)


def _timeline(report: Report) -> Iterator[str]:
    path = report.timeline.critical_path
    begin = report.summary.started
    for name, started, finished in report.timeline.spans:
        yield f"  {duration_words(started - begin):>12}  {name}  {duration_words(finished - started)}"
    if path.names:
        yield f"  critical path {duration_words(path.duration)}: {' -> '.join(path.names)}"


def _calls(report: Report) -> Iterator[str]:
    calls = report.metrics.calls
    yield f"  {calls.reads} reads, {calls.writes} writes, {calls.refreshes} refreshes"
    if report.metrics.estimated is not None:
        yield f"  estimated {duration_words(report.metrics.estimated)}"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
