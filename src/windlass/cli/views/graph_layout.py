"""Layout of a layered graph drawing: waves are columns; a long dependency has a lane through the columns it crosses."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.core.platform.model.graphs import Graph

Slot = tuple[str, int]
"""A node name and a column: the box of the node in the column of its wave, a lane from that box in later columns."""
SWEEPS = 24
BOX, LANE, GAP = 26.0, 4.0, 10.0


@dataclass(frozen=True, slots=True)
class Layout:
    columns: Sequence[Sequence[Slot]]
    """The slots of each column, from top to bottom."""
    height: Mapping[Slot, float]
    """Vertical center of each slot; the top edge of the topmost slot is at zero."""
    total: float
    links: Mapping[Slot, Sequence[Slot]]
    """By slot: the slots in the next column that it is connected to."""


def layout(graph: Graph) -> Layout:
    """Lay out the graph. Dependencies that others imply are left out, to keep the drawing readable."""
    wave_of = {name: number for number, wave in enumerate(graph.waves) for name in wave}
    links = _links(graph, wave_of)
    columns = _ordered(_columns(graph, wave_of, links), links)
    height = _heights(columns, links, wave_of)
    top = min((height[slot] - _size(slot, wave_of) / 2 for slot in height), default=0.0)
    moved = {slot: place - top for slot, place in height.items()}
    total = max((moved[slot] + _size(slot, wave_of) / 2 for slot in moved), default=0.0)
    return Layout(columns, moved, total, links)


def _links(graph: Graph, wave_of: Mapping[str, int]) -> dict[Slot, list[Slot]]:
    """Connections between adjacent columns. All dependents of a node share its lane."""
    implied = set(graph.implied_edges())
    found: dict[Slot, set[Slot]] = {}
    for name in graph.names:
        for dependency in graph.needs[name]:
            if (name, dependency) in implied:
                continue
            lane = [(dependency, column) for column in range(wave_of[dependency], wave_of[name])]
            for here, there in pairwise([*lane, (name, wave_of[name])]):
                found.setdefault(here, set()).add(there)
    return {slot: sorted(targets) for slot, targets in found.items()}


def _columns(graph: Graph, wave_of: Mapping[str, int], links: Mapping[Slot, Sequence[Slot]]) -> list[list[Slot]]:
    slots = {(name, wave_of[name]) for name in graph.names} | links.keys()
    columns: list[list[Slot]] = [[] for _ in graph.waves]
    for slot in sorted(slots):
        columns[slot[1]].append(slot)
    return columns


def _ordered(columns: list[list[Slot]], links: Mapping[Slot, Sequence[Slot]]) -> list[list[Slot]]:
    """Order each column by the mean row of its neighbours, sweeping in both directions; the fewest crossings win."""
    back = _reversed(links)
    best, fewest = columns, _crossings(columns, links)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        numbers = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        neighbours = back if forward else links
        columns = [list(column) for column in columns]
        for number in numbers:
            place = {slot: row for row, slot in enumerate(columns[number - 1 if forward else number + 1])}
            columns[number] = _sorted_by_neighbours(columns[number], neighbours, place)
        if (crossings := _crossings(columns, links)) < fewest:
            best, fewest = columns, crossings
    return best


def _sorted_by_neighbours(
    column: Sequence[Slot], neighbours: Mapping[Slot, Sequence[Slot]], place: Mapping[Slot, int]
) -> list[Slot]:
    def middle(row_and_slot: tuple[int, Slot]) -> float:
        rows = [place[other] for other in neighbours.get(row_and_slot[1], ())]
        return sum(rows) / len(rows) if rows else row_and_slot[0]

    return [slot for _, slot in sorted(enumerate(column), key=middle)]


def _crossings(columns: Sequence[Sequence[Slot]], links: Mapping[Slot, Sequence[Slot]]) -> int:
    total = 0
    for column, following in pairwise(columns):
        place = {slot: row for row, slot in enumerate(following)}
        seen: list[int] = []
        for slot in column:
            rows = [place[other] for other in links.get(slot, ())]
            total += sum(len(seen) - bisect_right(seen, row) for row in rows)
            for row in rows:
                insort(seen, row)
    return total


def _reversed(links: Mapping[Slot, Sequence[Slot]]) -> dict[Slot, list[Slot]]:
    found: dict[Slot, list[Slot]] = {}
    for slot, targets in links.items():
        for target in targets:
            found.setdefault(target, []).append(slot)
    return found


def _size(slot: Slot, wave_of: Mapping[str, int]) -> float:
    return BOX if wave_of[slot[0]] == slot[1] else LANE


def _heights(
    columns: Sequence[Sequence[Slot]], links: Mapping[Slot, Sequence[Slot]], wave_of: Mapping[str, int]
) -> dict[Slot, float]:
    """Centers as near as possible to the mean of their neighbours', keeping order and distance in a column."""
    back = _reversed(links)
    height: dict[Slot, float] = {}
    for column in columns:
        height.update(_spread(column, dict.fromkeys(column, 0.0), wave_of))
    for sweep in range(SWEEPS):
        order = columns if sweep % 2 == 0 else list(reversed(columns))
        for column in order:
            wanted = {}
            for slot in column:
                near = [height[other] for other in (*links.get(slot, ()), *back.get(slot, ()))]
                wanted[slot] = sum(near) / len(near) if near else height[slot]
            height.update(_spread(column, wanted, wave_of))
    return height


def _spread(column: Sequence[Slot], wanted: Mapping[Slot, float], wave_of: Mapping[str, int]) -> dict[Slot, float]:
    """The centers nearest to the preferred ones that keep order and distance; slots that overlap move as a block."""
    offsets = [0.0]
    for above, below in pairwise(column):
        offsets.append(offsets[-1] + (_size(above, wave_of) + _size(below, wave_of)) / 2 + GAP)
    blocks: list[tuple[float, int]] = []
    for slot, offset in zip(column, offsets, strict=False):
        mean, count = wanted[slot] - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, number = blocks.pop()
            mean, count = (mean * count + other * number) / (count + number), count + number
        blocks.append((mean, count))
    starts = [mean for mean, count in blocks for _ in range(count)]
    return {slot: start + offset for slot, start, offset in zip(column, starts, offsets, strict=False)}
