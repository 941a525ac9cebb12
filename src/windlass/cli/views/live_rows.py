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

from windlass.cli.views.live_state import Lot, expected_of, prospect
from windlass.core.platform.events import RunPhase
from windlass.core.platform.gates import Failed
from windlass.core.platform.reporting.report_text import duration_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from windlass.cli.views.live_state import Prospect, Running, State
    from windlass.core.platform.outcomes import Outcome

MOST_ROWS = 40
HEAD_ROWS = 3
LONGEST_NAME = 32
ROOMY = 100


class Style(StrEnum):
    """Style names of rich."""

    PLAIN = ""
    BOLD = "bold"
    DIM = "dim"
    GOOD = "green"
    BAD = "bold red"
    BUSY = "cyan"
    LATE = "yellow"


class Piece(NamedTuple):
    text: str
    style: Style = Style.PLAIN


Row = tuple[Piece, ...]

_LOOKS: Mapping[Lot, tuple[str, Style]] = {
    Lot.DONE: ("█", Style.GOOD),
    Lot.FAILED: ("X", Style.BAD),
    Lot.SKIPPED: ("▒", Style.LATE),
    Lot.RUNNING: ("▓", Style.BUSY),
    Lot.WAITING: ("░", Style.DIM),
}


class Section(NamedTuple):
    """A titled part of the view. `lines` is lazy: for a large platform only the visible lines are created."""

    title: Row
    size: int
    lines: Iterable[Row]


def rows(state: State, now: float, height: int, width: int) -> tuple[Row, ...]:
    """At most `height` rows and never more than MAX_ROWS, none wider than `width`; failures first, then slow nodes."""
    room = max(0, min(height, MOST_ROWS))
    ahead = prospect(state, now)
    found = _head(state, ahead, now, width)[:room]
    sections = (
        _failures(state, ahead, width),
        _running(state, now, width),
        _waiting(state, ahead, width),
        _notices(state, now),
    )
    shown = [section for section in sections if section.size]
    for section, share in zip(shown, shares(room - len(found), [each.size + 1 for each in shown]), strict=True):
        found += _shortened(section, share)
    return tuple(_cut(tuple(Piece(_printable(text), style) for text, style in row), width) for row in found)


def shares(room: int, sizes: Sequence[int]) -> list[int]:
    """Rows for each section: first a title and one row each, then one more row each in turn. The first sections win."""
    given = [0] * len(sizes)
    for step in (2, *[1] * max(sizes, default=0)):
        for place, size in enumerate(sizes):
            if given[place] < size and step <= room:
                given[place] += step
                room -= step
    return given


def _shortened(section: Section, share: int) -> list[Row]:
    """The title and as many lines as fit.

    A line "and N more" is added only if at least one other line fits: the title already has the total.
    """
    is_whole = section.size < share
    kept = share - 1 if share < 3 or is_whole else share - 2
    lines = [section.title, *islice(section.lines, max(0, kept))][:share]
    return lines if len(lines) == share or is_whole else [*lines, (_dim(f"  … and {section.size - kept} more"),)]


def _head(state: State, ahead: Prospect, now: float, width: int) -> list[Row]:
    phase = f"  {state.phase}" if state.phase else ""
    first = (Piece(state.title, Style.BOLD), Piece(f"{phase}  {_span(now - state.began)}"), *_left(state, ahead))
    counts = Counter(ahead.lots.values())
    if not counts:
        return [first]
    told = [Piece(f"{counts[lot]} {lot}  ", _LOOKS[lot][1]) for lot in Lot if counts[lot]]
    return [first, _bar(counts, width), (*told, Piece(f"of {counts.total()}"))]


def _left(state: State, ahead: Prospect) -> Iterator[Piece]:
    if state.phase is RunPhase.REPORT:
        return  # nothing starts any more
    if ahead.left:
        step = 60 if ahead.left >= 300 else 10  # rounded: a number that changes with every redraw is hard to read
        yield Piece(f"  about {duration_words(timedelta(seconds=ceil(ahead.left / step) * step))} left", Style.BUSY)
    elif state.running:
        yield Piece("  longer than expected", Style.LATE)


def _bar(counts: Mapping[Lot, int], width: int) -> Row:
    """The progress bar. Every status that occurs gets at least one cell, if the width allows."""
    total = sum(counts.values())
    sizes = {lot: max(1, counts[lot] * width // total) for lot in Lot if counts[lot]}
    widest = max(sizes, key=lambda lot: sizes[lot])
    sizes[widest] += width - sum(sizes.values())
    return tuple(Piece(_LOOKS[lot][0] * size, _LOOKS[lot][1]) for lot, size in sizes.items())


def _failures(state: State, ahead: Prospect, width: int) -> Section:
    behind = ahead.blocked
    names = sorted(behind, key=lambda name: (-len(behind[name]), name))
    column = _column(names, width)
    counts = {name: f"blocks {len(behind[name])}  " if behind[name] else "" for name in names}
    lines = (
        (_name(name, column, Style.BAD), Piece(f"  {counts[name]}{_why(state.ended[name], width)}")) for name in names
    )
    return Section((Piece(f"failed {len(names)}", Style.BAD),), len(names), lines)


def _why(outcome: Outcome, width: int) -> str:
    if isinstance(outcome.judgement, Failed):
        return _told(outcome.judgement.reason, outcome.judgement.detail, width)
    return str(outcome.result)


def _told(reason: str, detail: str, width: int) -> str:
    """Reason and detail; only the detail on a narrow terminal, because it says more than the reason."""
    return f"{reason}: {detail}" if detail and width >= ROOMY else detail or reason


def _running(state: State, now: float, width: int) -> Section:
    """Running nodes, oldest first: rows keep their order, and slow nodes move to the top."""
    ordered = sorted(state.running.values(), key=lambda each: (each.since, each.name))
    title = (Piece(f"running {len(ordered)}", Style.BUSY), _dim("  (age/expected, what it waits for)"))
    return Section(title, len(ordered), _running_lines(state, ordered, now, width))


def _running_lines(state: State, ordered: Sequence[Running], now: float, width: int) -> Iterator[Row]:
    column = _column([each.name for each in ordered], width)
    ages = {each.name: f"{_span(now - each.since)}/{_span(expected_of(state, each.name))}" for each in ordered}
    widest = max(map(len, ages.values()))
    for each in ordered:
        is_late = now - each.tried_since > expected_of(state, each.name)
        age = Piece(f"  {ages[each.name]:>{widest}}  ", Style.LATE if is_late else Style.PLAIN)
        told = _told(each.reason or "started", each.detail, width)
        yield (_name(each.name, column), age, *_attempt(each), Piece(told))


def _attempt(running: Running) -> Iterator[Piece]:
    if running.attempt > 1:
        yield Piece(f"try {running.attempt}  ", Style.LATE)


def _waiting(state: State, ahead: Prospect, width: int) -> Section:
    """Waiting nodes in the order in which they are likely to start.

    Nodes that wait only for running nodes come first, then those with fewer missing dependencies, then those with the
    longest chain of dependents.
    """
    lots = ahead.lots
    names = [name for name in ahead.chains if lots[name] is Lot.WAITING]
    needs = state.plan.graph.needs if state.plan else {}
    missing = {name: [each for each in needs[name] if lots[each] is not Lot.DONE] for name in names}

    def place(name: str) -> tuple[bool, int, float, str]:
        is_later = any(lots[each] is Lot.WAITING for each in missing[name])
        return is_later, len(missing[name]), -ahead.chains[name], name

    first = nsmallest(MOST_ROWS, names, key=place)
    column = _column(first, width)
    awaited = (
        ", ".join(sorted(missing[name], key=lambda each: (lots[each] is not Lot.RUNNING, each))) for name in first
    )
    lines = ((_name(name, column), _dim(f"  {whom or 'its turn'}")) for name, whom in zip(first, awaited, strict=True))
    return Section(
        (Piece(f"waiting {len(names)}", Style.BOLD), _dim("  (next first, and for whom)")), len(names), lines
    )


def _notices(state: State, now: float) -> Section:
    lines = (
        (
            Piece(f"  {_span(now - when)} ago  "),
            Piece(f"{notice.name}: {notice.message}" if notice.name else notice.message, Style.LATE),
        )
        for when, notice in reversed(state.notices)
    )
    return Section((Piece("noticed", Style.LATE),), len(state.notices), lines)


def _dim(text: str) -> Piece:
    return Piece(text, Style.DIM)


def _column(names: Sequence[str], width: int) -> int:
    return min(max(map(len, names), default=0), LONGEST_NAME, max(8, width // 3))


def _name(name: str, column: int, style: Style = Style.PLAIN) -> Piece:
    shown = name if len(name) <= column else f"{name[: column - 1]}…"
    return Piece(f"  {shown:<{column}}", style)


def _span(seconds: float) -> str:
    """`0:07`, `12:40`, `1:02:03`."""
    whole = max(0, int(seconds))
    minutes = f"{whole // 60 % 60:02}" if whole >= 3600 else str(whole // 60)
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{minutes}:{whole % 60:02}"


def _printable(text: str) -> str:
    """Replace control characters: texts of other programs must not move the cursor."""
    return "".join(each if each.isprintable() else " " for each in text)


def _cells(text: str) -> int:
    return sum(_cell(each) for each in text)


def _cell(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _cut(row: Row, width: int) -> Row:
    """Cut the row to the width; an ellipsis marks the cut."""
    room = width if _cells("".join(piece.text for piece in row)) <= width else width - 1
    found: list[Piece] = []
    for text, style in row:
        kept = text
        while _cells(kept) > room:
            kept = kept[:-1]
        found.append(Piece(kept, style))
        room -= _cells(kept)
        if kept != text:
            return (*found, Piece("…"[:width]))
    return tuple(found)
