"""A report as text.

`summary_text` fits on one screen: the verdict, the root causes and the next command. `text` adds the details.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from windlass.core.platform.outcomes import Result
from windlass.core.platform.planning.object_changes import changes_summary
from windlass.core.platform.reporting import report_details
from windlass.core.platform.reporting.failures import CAUSE_MARKS, root_causes
from windlass.core.platform.reporting.report_changes import change_items, change_lines
from windlass.core.platform.reporting.report_details import MAX_NAMES, blocks_text, headline, is_plan_only
from windlass.core.platform.reporting.text_layout import (
    Screen,
    format_duration,
    join_names,
    limit_items,
    pluralize,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from windlass.core.platform.reporting.failures import Failure
    from windlass.core.platform.reporting.reports import Report

MAX_ROOT_CAUSES = 3  # shown at the top of a report that is not limited to a screen
MAX_DIAGNOSTICS = 6  # lines shown with a root cause, if there is room for them
ROWS_AROUND = 4  # on a screen: the last rows of the live view above the report, the prompt of the shell below it
SCREEN_RECOMMENDATIONS = 2  # about the run, shown on a screen
FOOTER = "--details shows components and timeline; --report text=FILE saves them."
_PLAN_VERBS = {"deploy": "deploy", "teardown": "remove"}
_STEP_WORDS = {"sync": "to sync", "await": "to wait for", "recheck": "to check again", "remove": "to remove",
               "fail": "cannot be done"}  # fmt: skip


def text(report: Report, width: int | None = None) -> str:
    """The report with all details; lines are wrapped to the width, if one is given."""
    details = report_details
    blocks = [
        list(_summary_lines(report, width)),
        list(_root_cause_lines(report, width)),
        ["cannot start", *_wrapped(_unmet_items(report), width)],
        ["next", *_next_command_lines(report, width)],
        ["notices", *_wrapped(report.notices, width)],
        *([title, *_wrapped(items, width)] for title, items in _removal_sections(report)),
        ["changes", *change_lines(report, width)],
        ["steps", *details.step_lines(report, width)],
        ["failures in full", *_all_failure_lines(report, width)],
        ["compliance", *_wrapped(_compliance_items(report), width)],
        ["components (* critical)", *details.component_lines(report, width)],
        ["timeline (# on the critical path)", *details.timeline_lines(report, width)],
        ["calls", *details.call_lines(report)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if len(block) > 1) + "\n"


def summary_text(report: Report, screen: Screen) -> str:
    """The report on one screen. What does not fit is counted."""
    width = screen.width
    head = list(_summary_lines(report, width))
    following = list(_next_command_lines(report, width, SCREEN_RECOMMENDATIONS))
    footer = list(wrap(FOOTER, width, indent=""))
    sections = [(title, [list(wrap(f"  {item}", width)) for item in items]) for title, items in _sections(report)]
    sections = [(title, items) for title, items in sections if items]
    reserved = len(head) + (len(following) + 2 if following else 0) + len(footer) + 1 + 2 * len(sections)
    available = screen.height - ROWS_AROUND - reserved
    causes = _fitting_root_cause_lines(report, width, available - 1)
    available -= len(causes) + 1 if causes else 0
    blocks = [head, causes]
    for title, items in sections:
        blocks.append(_fitting_section(title, items, available))
        available -= len(blocks[-1]) - 1
    if following:
        blocks.insert(3 if report.unmet else 2, ["next", *following])  # after the reasons not to start
    return "\n\n".join("\n".join(block) for block in [*blocks, footer] if block) + "\n"


def _fitting_section(title: str, items: Sequence[Sequence[str]], max_lines: int) -> list[str]:
    """The title and as many items as fit; if none does, only the title with their number."""
    lines = limit_items(items, max_lines)
    if len(lines) > max_lines or lines == [f"  and {len(items)} more"]:
        return [f"{title}: {len(items)}"]
    return [title, *lines]


def _sections(report: Report) -> Iterator[tuple[str, Sequence[str]]]:
    """The sections of one screen besides verdict, root causes and next command, in the order of their importance."""
    yield "cannot start", _unmet_items(report)
    yield from _removal_sections(report)
    yield "notices", report.notices
    yield "compliance", _compliance_items(report)
    yield "changes", change_items(report)
    yield "steps", [line.strip() for line in report_details.step_lines(report, None)]


def _removal_sections(report: Report) -> Iterator[tuple[str, Sequence[str]]]:
    yield "orphans: objects of removed applications that still exist", report.removal.orphans
    yield "retained, as the volume policy says", report.removal.retained
    yield "destroyed with their data", report.removal.destroyed


def _unmet_items(report: Report) -> list[str]:
    """Why the run cannot begin, from the point of view of what is in the scope."""
    items = []
    for each in report.unmet:
        outside = "" if "/" in each.name else " (outside the scope)"  # a parent has a namespace in its name
        if report.summary.action == "teardown":
            items.append(f"{join_names(each.needed_by)} cannot be removed: {each.name}{outside} {each.why}")
        else:
            needs = "needs" if len(each.needed_by) == 1 else "need"
            items.append(f"{join_names(each.needed_by)} {needs} {each.name}{outside}: {each.why}")
    return items


def _compliance_items(report: Report) -> list[str]:
    return [f"{each.rule} {each.application}: {each.what} ({each.remedy})" for each in report.compliance]


def _wrapped(items: Iterable[str], width: int | None) -> Iterator[str]:
    for item in items:
        yield from wrap(f"  {item}", width)


def _summary_lines(report: Report, width: int | None) -> Iterator[str]:
    summary = report.summary
    if summary.is_dry_run:
        what = f"plan to {_PLAN_VERBS[summary.action]} {summary.scope} in {summary.environment}"
        yield from wrap(f"{what}: {_planned_steps_text(report)}", width)
        yield f"  {summary.verdict}, dry run: nothing was changed; exit code {summary.exit_code}"
    else:
        stopped = ", interrupted" if summary.was_interrupted else ""
        yield f"{summary.action} of {summary.scope} in {summary.environment}: {summary.verdict}{stopped}"
        counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items()) or "nothing in scope"
        yield from wrap(f"  {counts}; {_duration_text(report)}; exit code {summary.exit_code}", width)
    if target := _target_text(report):
        yield from wrap(f"  {target}", width)
    if under_way := _interrupted_names(report):
        yield from wrap(f"  in progress when it ended: {join_names(under_way, MAX_NAMES)}", width)


def _planned_steps_text(report: Report) -> str:
    """`13 to sync (1 changes, 12 only move their pin), 1 unchanged, about 16 s`."""
    numbers: dict[str, int] = {}
    for step in report.steps:
        numbers[_STEP_WORDS[step.verb]] = numbers.get(_STEP_WORDS[step.verb], 0) + 1
    unchanged = report.summary.counts.get(str(Result.UNCHANGED), 0)
    parts = [f"{number} {words}" for words, number in (*numbers.items(), ("unchanged", unchanged)) if number]
    synced = {step.name for step in report.steps if step.verb == "sync"}
    if changes := changes_summary(each for each in report.changes if each.name in synced):
        parts = [f"{part} ({changes})" if part.endswith(_STEP_WORDS["sync"]) else part for part in parts]
    if changes := changes_summary(each for each in report.changes if each.name not in synced):
        parts.append(f"after the root is written: {changes}")
    if report.steps and report.metrics.estimated is not None:
        parts.append(f"about {format_duration(report.metrics.estimated)}")
    return ", ".join(parts) or "nothing in scope"


def _target_text(report: Report) -> str:
    """The platform and the server; a rehearsal has no server, `validate --all` no platform."""
    summary = report.summary
    platform = f"platform {summary.platform} ({summary.platform_file})" if summary.platform else ""
    return ", ".join(filter(None, (platform, f"server {summary.server}" if summary.server else "")))


def _duration_text(report: Report) -> str:
    duration, estimated = format_duration(report.summary.duration), report.metrics.estimated
    return duration if not estimated or is_plan_only(report) else f"{duration}, estimated {format_duration(estimated)}"


def _interrupted_names(report: Report) -> tuple[str, ...]:
    """Components that were in progress when the run ended; these are never root causes."""
    return tuple(component.name for component in report.components if component.result is Result.INTERRUPTED)


def _report_root_causes(report: Report) -> tuple[Failure, ...]:
    return root_causes(failure for failure in report.failures if failure.name not in _interrupted_names(report))


def _root_cause_lines(report: Report, width: int | None) -> Iterator[str]:
    """The first root causes, with those diagnostics that name a cause."""
    roots = _report_root_causes(report)
    if not roots:
        return
    yield _root_cause_title(report, roots)
    limit = _diagnostics_limit(roots)
    for failure in roots[:MAX_ROOT_CAUSES]:
        yield from _root_cause_item(report, failure, width, limit)
    if rest := roots[MAX_ROOT_CAUSES:]:
        yield f"  and {join_names(tuple(failure.name for failure in rest), MAX_NAMES)}"


def _diagnostics_limit(roots: Sequence[Failure]) -> int:
    return MAX_DIAGNOSTICS // min(len(roots), MAX_ROOT_CAUSES)


def _fitting_root_cause_lines(report: Report, width: int, max_lines: int) -> list[str]:
    """As many root causes as fit, at least one, with fewer diagnostics if there are many. No cause is cut."""
    roots = _report_root_causes(report)
    if not roots:
        return []
    for limit in range(MAX_DIAGNOSTICS, -1, -1):
        items = [list(_root_cause_item(report, failure, width, limit)) for failure in roots]
        if sum(map(len, items)) < max_lines:
            return [_root_cause_title(report, roots), *chain.from_iterable(items)]
    items = [list(_short_root_cause_item(report, failure, width)) for failure in roots]
    shown, count = list(items[0]), 1
    while count < len(items) and len(shown) + len(items[count]) + (count + 1 < len(items)) < max_lines:
        shown += items[count]
        count += 1
    if rest := roots[count:]:
        names = ", ".join(failure.name for failure in rest[:MAX_NAMES])
        shown += list(wrap(f"  and {len(rest)} more (--details): {names}{', ...' if rest[MAX_NAMES:] else ''}", width))
    return [_root_cause_title(report, roots), *shown]


def _root_cause_title(report: Report, roots: Sequence[Failure]) -> str:
    blocked = {name for failure in roots for name in failure.blocks}
    causes = pluralize(len(roots), "root cause")
    if report.summary.action == "validate":
        return f"{causes}; {pluralize(len(blocked), 'component')} depend{'s' if len(blocked) == 1 else ''} on " + (
            "it" if len(roots) == 1 else "them"
        )
    return f"{causes}, {pluralize(len(blocked), 'component')} blocked"


def _root_cause_item(report: Report, failure: Failure, width: int | None, max_diagnostics: int) -> Iterator[str]:
    yield from headline(failure, width)
    if failure.blocks:
        yield from wrap(f"    {blocks_text(failure, report)}: {join_names(failure.blocks, MAX_NAMES)}", width)
    for line in _chosen_diagnostics(failure, max_diagnostics):
        yield from wrap(f"    | {line}", width, indent="  ")
    for command in _commands(report, failure.name):
        yield from wrap(f"    $ {command}", width)


def _short_root_cause_item(report: Report, failure: Failure, width: int) -> Iterator[str]:
    """The cause, without diagnostics and commands, and one line for what it blocks."""
    yield from headline(failure, width)
    if failure.blocks:
        yield from list(wrap(f"    {blocks_text(failure, report)}: {join_names(failure.blocks, 3)}", width))[:1]


def _chosen_diagnostics(failure: Failure, limit: int) -> list[str]:
    """At most `limit` lines in their order: those that name a cause before those that only tell where it is."""
    lines = [line for line in failure.diagnostics if failure.detail not in line or not failure.detail]
    ranked = sorted(range(len(lines)), key=lambda index: (not lines[index].startswith(CAUSE_MARKS), index))
    return [lines[index] for index in sorted(ranked[:limit])]


def _commands(report: Report, name: str) -> Iterator[str]:
    general = {each.command for each in report.recommendations if not each.application}
    for each in report.recommendations:
        if each.application == name and each.command not in general:
            yield each.command


def _next_command_lines(report: Report, width: int | None, limit: int | None = None) -> Iterator[str]:
    """Recommendations that belong to no failure; the others are shown with their failure."""
    failed = {failure.name for failure in report.failures}
    for each in [each for each in report.recommendations if each.application not in failed][:limit]:
        yield from wrap(f"  {each.sentence}", width)
        yield from wrap(f"    $ {each.command}", width)


def _all_failure_lines(report: Report, width: int | None) -> Iterator[str]:
    """The failures that the first lines do not show in full: root causes first, interrupted components last."""
    roots = _report_root_causes(report)
    shown, interrupted = roots[:MAX_ROOT_CAUSES], _interrupted_names(report)
    shortened_roots = [failure for failure in shown if _is_shortened(failure, _diagnostics_limit(roots))]
    rest = [failure for failure in report.failures if failure not in shown]
    if not any(failure.name not in interrupted or failure.diagnostics for failure in rest):
        rest = []
    rest.sort(key=lambda each: (each.name in interrupted, -len(each.blocks), each.name))
    for failure in (*shortened_roots, *rest):
        yield from report_details.failure_lines(failure, report, width)


def _is_shortened(failure: Failure, max_diagnostics: int) -> bool:
    return len(failure.blocks) > MAX_NAMES + 1 or len(failure.diagnostics) > max_diagnostics
