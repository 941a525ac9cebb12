"""The live view as rows of styled text that fit a terminal. Pure: `live` prints the rows as they are."""

from __future__ import annotations

import unicodedata
from collections import Counter
from datetime import timedelta
from enum import StrEnum
from heapq import nsmallest
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from windlass.cli.views.live_state import NodeStatus, compute_forecast, expected_seconds
from windlass.core.platform.events import RunPhase
from windlass.core.platform.gate_values import Failed
from windlass.core.platform.reporting.text_layout import format_duration
from windlass.printable_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from windlass.cli.views.live_state import Forecast, LiveState, RunningNode
    from windlass.core.platform.outcomes import Outcome

MAX_ROWS = 40
HEAD_ROWS = 3
MAX_NAME_WIDTH = 32
WIDE_TERMINAL = 100


class Style(StrEnum):
    """Style names of rich."""

    PLAIN = ""
    BOLD = "bold"
    DIM = "dim"
    GOOD = "green"
    BAD = "bold red"
    BUSY = "cyan"
    LATE = "yellow"


class StyledText(NamedTuple):
    text: str
    style: Style = Style.PLAIN


Row = tuple[StyledText, ...]

_STATUS_STYLES: Mapping[NodeStatus, tuple[str, Style]] = {
    NodeStatus.DONE: ("█", Style.GOOD),
    NodeStatus.FAILED: ("X", Style.BAD),
    NodeStatus.SKIPPED: ("▒", Style.LATE),
    NodeStatus.RUNNING: ("▓", Style.BUSY),
    NodeStatus.WAITING: ("░", Style.DIM),
}


class Section(NamedTuple):
    """A titled part of the view. `lines` is lazy: for a large platform only the visible lines are created."""

    title: Row
    size: int
    lines: Iterable[Row]


def render_rows(state: LiveState, now: float, height: int, width: int) -> tuple[Row, ...]:
    """At most `height` rows and never more than MAX_ROWS, none wider than `width`; failures first, then slow nodes."""
    available = max(0, min(height, MAX_ROWS))
    forecast = compute_forecast(state, now)
    lines = _header_rows(state, forecast, now, width)[:available]
    sections = (
        _failure_section(state, forecast, width),
        _running_section(state, now, width),
        _waiting_section(state, forecast, width),
        _notice_section(state, now),
    )
    shown = [section for section in sections if section.size]
    for section, share in zip(
        shown, row_shares(available - len(lines), [each.size + 1 for each in shown]), strict=True
    ):
        lines += _section_rows(section, share)
    return tuple(
        _truncate_row(tuple(StyledText(printable(text[: width + 1]), style) for text, style in row), width)
        for row in lines  # of each text no more than could fit
    )


def row_shares(available: int, sizes: Sequence[int]) -> list[int]:
    """Rows for each section: first a title and one row each, then one more row each in turn. The first sections win."""
    allocated = [0] * len(sizes)
    for step in (2, *[1] * max(sizes, default=0)):
        for index, size in enumerate(sizes):
            if allocated[index] < size and step <= available:
                allocated[index] += step
                available -= step
    return allocated


def _section_rows(section: Section, share: int) -> list[Row]:
    """The title and as many lines as fit.

    A line "and N more" is added only if at least one other line fits: the title already has the total.
    """
    is_whole = section.size < share
    kept = share - 1 if share < 3 or is_whole else share - 2
    lines = [section.title, *islice(section.lines, max(0, kept))][:share]
    return lines if len(lines) == share or is_whole else [*lines, (_dim(f"  … and {section.size - kept} more"),)]


def _header_rows(state: LiveState, forecast: Forecast, now: float, width: int) -> list[Row]:
    phase = f"  {state.phase}" if state.phase else ""
    first = (
        StyledText(state.title, Style.BOLD),
        StyledText(f"{phase}  {_elapsed_text(now - state.started)}"),
        *_remaining_time(state, forecast),
    )
    counts = Counter(forecast.statuses.values())
    if not counts:
        return [first]
    count_texts = [
        StyledText(f"{counts[status]} {status}  ", _STATUS_STYLES[status][1]) for status in NodeStatus if counts[status]
    ]
    return [first, _bar(counts, width), (*count_texts, StyledText(f"of {counts.total()}"))]


def _remaining_time(state: LiveState, forecast: Forecast) -> Iterator[StyledText]:
    if state.phase is RunPhase.REPORT:
        return  # nothing starts any more
    if forecast.remaining_seconds:
        step = (
            60 if forecast.remaining_seconds >= 300 else 10
        )  # rounded: a number that changes with every redraw is hard to read
        yield StyledText(
            f"  about {format_duration(timedelta(seconds=ceil(forecast.remaining_seconds / step) * step))} left",
            Style.BUSY,
        )
    elif state.running:
        yield StyledText("  longer than expected", Style.LATE)


def _bar(counts: Mapping[NodeStatus, int], width: int) -> Row:
    """The progress bar. Every status that occurs gets at least one cell, if the width allows."""
    total = sum(counts.values())
    sizes = {status: max(1, counts[status] * width // total) for status in NodeStatus if counts[status]}
    widest = max(sizes, key=lambda lot: sizes[lot])
    sizes[widest] += width - sum(sizes.values())
    return tuple(StyledText(_STATUS_STYLES[lot][0] * size, _STATUS_STYLES[lot][1]) for lot, size in sizes.items())


def _failure_section(state: LiveState, forecast: Forecast, width: int) -> Section:
    blocked = forecast.blocked
    names = sorted(blocked, key=lambda name: (-len(blocked[name]), name))
    name_width = _name_width(names, width)
    counts = {name: f"blocks {len(blocked[name])}  " if blocked[name] else "" for name in names}
    lines = (
        (
            _name_cell(name, name_width, Style.BAD),
            StyledText(f"  {counts[name]}{_failure_text(state.outcomes[name], width)}"),
        )
        for name in names
    )
    return Section((StyledText(f"failed {len(names)}", Style.BAD),), len(names), lines)


def _failure_text(outcome: Outcome, width: int) -> str:
    if isinstance(outcome.decision, Failed):
        return _reason_text(outcome.decision.reason, outcome.decision.detail, width)
    return str(outcome.result)


def _reason_text(reason: str, detail: str, width: int) -> str:
    """Reason and detail; only the detail on a narrow terminal, because it says more than the reason."""
    return f"{reason}: {detail}" if detail and width >= WIDE_TERMINAL else detail or reason


def _running_section(state: LiveState, now: float, width: int) -> Section:
    """Running nodes, oldest first: rows keep their order, and slow nodes move to the top."""
    ordered = sorted(state.running.values(), key=lambda each: (each.started, each.name))
    title = (StyledText(f"running {len(ordered)}", Style.BUSY), _dim("  (age/expected, what it waits for)"))
    return Section(title, len(ordered), _running_lines(state, ordered, now, width))


def _running_lines(state: LiveState, ordered: Sequence[RunningNode], now: float, width: int) -> Iterator[Row]:
    name_width = _name_width([each.name for each in ordered], width)
    ages = {
        each.name: f"{_elapsed_text(now - each.started)}/{_elapsed_text(expected_seconds(state, each.name))}"
        for each in ordered
    }
    widest = max(map(len, ages.values()))
    for each in ordered:
        is_late = now - each.attempt_started > expected_seconds(state, each.name)
        age = StyledText(f"  {ages[each.name]:>{widest}}  ", Style.LATE if is_late else Style.PLAIN)
        reason = _reason_text(each.reason or "started", each.detail, width)
        yield (_name_cell(each.name, name_width), age, *_attempt(each), StyledText(reason))


def _attempt(running: RunningNode) -> Iterator[StyledText]:
    if running.attempt > 1:
        yield StyledText(f"try {running.attempt}  ", Style.LATE)


def _waiting_section(state: LiveState, forecast: Forecast, width: int) -> Section:
    """Waiting nodes in the order in which they are likely to start.

    A node comes after all nodes that it waits for; then those with fewer missing dependencies come first, then those
    with the longest chain of dependents.
    """
    statuses = forecast.statuses
    names = [name for name in forecast.chain_seconds if statuses[name] is NodeStatus.WAITING]
    needs = state.plan.graph.dependencies if state.plan else {}
    missing = {name: [each for each in needs[name] if statuses[each] is not NodeStatus.DONE] for name in names}

    depths: dict[str, int] = {}
    for name in state.plan.graph.order if state.plan else ():
        if name in missing:
            depths[name] = 1 + max((depths[each] for each in missing[name] if each in depths), default=0)

    def sort_key(name: str) -> tuple[int, int, float, str]:
        return depths[name], len(missing[name]), -forecast.chain_seconds[name], name

    first = nsmallest(MAX_ROWS, names, key=sort_key)
    name_width = _name_width(first, width)
    dependencies = (
        ", ".join(sorted(missing[name], key=lambda each: (statuses[each] is not NodeStatus.RUNNING, each)))
        for name in first
    )
    lines = (
        (_name_cell(name, name_width), _dim(f"  {waits_for or 'a free slot'}"))
        for name, waits_for in zip(first, dependencies, strict=True)
    )
    return Section(
        (StyledText(f"waiting {len(names)}", Style.BOLD), _dim("  (next first, and what each waits for)")),
        len(names),
        lines,
    )


def _notice_section(state: LiveState, now: float) -> Section:
    lines = (
        (
            StyledText(f"  {_elapsed_text(now - when)} ago  "),
            StyledText(f"{notice.component}: {notice.message}" if notice.component else notice.message, Style.LATE),
        )
        for when, notice in reversed(state.notices)
    )
    return Section((StyledText("noticed", Style.LATE),), len(state.notices), lines)


def _dim(text: str) -> StyledText:
    return StyledText(text, Style.DIM)


def _name_width(names: Sequence[str], width: int) -> int:
    return min(max(map(len, names), default=0), MAX_NAME_WIDTH, max(8, width // 3))


def _name_cell(name: str, width: int, style: Style = Style.PLAIN) -> StyledText:
    shown = name if len(name) <= width else f"{name[: width - 1]}…"
    return StyledText(f"  {shown:<{width}}", style)


def _elapsed_text(seconds: float) -> str:
    """`0:07`, `12:40`, `1:02:03`."""
    whole = max(0, int(seconds))
    minutes = f"{whole // 60 % 60:02}" if whole >= 3600 else str(whole // 60)
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{minutes}:{whole % 60:02}"


def _text_width(text: str) -> int:
    return sum(_character_width(each) for each in text)


def _character_width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _truncate_row(row: Row, width: int) -> Row:
    """Cut the row to the width; an ellipsis marks the cut."""
    available = width if _text_width("".join(piece.text for piece in row)) <= width else width - 1
    pieces: list[StyledText] = []
    for text, style in row:
        for index, character in enumerate(text):
            available -= _character_width(character)
            if available < 0:
                return (*pieces, StyledText(text[:index], style), StyledText("…"[:width]))
        pieces.append(StyledText(text, style))
    return tuple(pieces)
