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
BOX_HEIGHT, LANE_HEIGHT, SLOT_GAP = 26.0, 4.0, 10.0


@dataclass(frozen=True, slots=True)
class Layout:
    columns: Sequence[Sequence[Slot]]
    """The slots of each column, from top to bottom."""
    centers: Mapping[Slot, float]
    """Vertical center of each slot; the top edge of the topmost slot is at zero."""
    total_height: float
    links: Mapping[Slot, Sequence[Slot]]
    """By slot: the slots in the next column that it is connected to."""


def compute_layout(graph: Graph) -> Layout:
    """Lay out the graph. Dependencies that others imply are left out, to keep the drawing readable."""
    wave_of = {name: number for number, wave in enumerate(graph.waves) for name in wave}
    links = _links(graph, wave_of)
    columns = _reduce_crossings(_columns(graph, wave_of, links), links)
    centers = _slot_centers(columns, links, wave_of)
    top = min((centers[slot] - _slot_height(slot, wave_of) / 2 for slot in centers), default=0.0)
    shifted = {slot: center - top for slot, center in centers.items()}
    total_height = max((shifted[slot] + _slot_height(slot, wave_of) / 2 for slot in shifted), default=0.0)
    return Layout(columns, shifted, total_height, links)


def _links(graph: Graph, wave_of: Mapping[str, int]) -> dict[Slot, list[Slot]]:
    """Connections between adjacent columns. All dependents of a node share its lane."""
    implied = set(graph.implied_edges())
    links: dict[Slot, set[Slot]] = {}
    for name in graph.names:
        for dependency in graph.dependencies[name]:
            if (name, dependency) in implied:
                continue
            lane = [(dependency, column) for column in range(wave_of[dependency], wave_of[name])]
            for here, there in pairwise([*lane, (name, wave_of[name])]):
                links.setdefault(here, set()).add(there)
    return {slot: sorted(targets) for slot, targets in links.items()}


def _columns(graph: Graph, wave_of: Mapping[str, int], links: Mapping[Slot, Sequence[Slot]]) -> list[list[Slot]]:
    slots = {(name, wave_of[name]) for name in graph.names} | links.keys()
    columns: list[list[Slot]] = [[] for _ in graph.waves]
    for slot in sorted(slots):
        columns[slot[1]].append(slot)
    return columns


def _reduce_crossings(columns: list[list[Slot]], links: Mapping[Slot, Sequence[Slot]]) -> list[list[Slot]]:
    """Order each column by the mean row of its neighbours, sweeping in both directions; the fewest crossings win."""
    incoming = _reverse_links(links)
    best, fewest = columns, _count_crossings(columns, links)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        numbers = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        neighbours = incoming if forward else links
        columns = [list(column) for column in columns]
        for number in numbers:
            row_by_slot = {slot: row for row, slot in enumerate(columns[number - 1 if forward else number + 1])}
            columns[number] = _sort_by_neighbours(columns[number], neighbours, row_by_slot)
        if (crossings := _count_crossings(columns, links)) < fewest:
            best, fewest = columns, crossings
    return best


def _sort_by_neighbours(
    column: Sequence[Slot], neighbours: Mapping[Slot, Sequence[Slot]], row_by_slot: Mapping[Slot, int]
) -> list[Slot]:
    def mean_row(row_and_slot: tuple[int, Slot]) -> float:
        rows = [row_by_slot[other] for other in neighbours.get(row_and_slot[1], ())]
        return sum(rows) / len(rows) if rows else row_and_slot[0]

    return [slot for _, slot in sorted(enumerate(column), key=mean_row)]


def _count_crossings(columns: Sequence[Sequence[Slot]], links: Mapping[Slot, Sequence[Slot]]) -> int:
    total = 0
    for column, next_column in pairwise(columns):
        row_by_slot = {slot: row for row, slot in enumerate(next_column)}
        earlier_rows: list[int] = []
        for slot in column:
            rows = [row_by_slot[other] for other in links.get(slot, ())]
            total += sum(len(earlier_rows) - bisect_right(earlier_rows, row) for row in rows)
            for row in rows:
                insort(earlier_rows, row)
    return total


def _reverse_links(links: Mapping[Slot, Sequence[Slot]]) -> dict[Slot, list[Slot]]:
    reverse: dict[Slot, list[Slot]] = {}
    for slot, targets in links.items():
        for target in targets:
            reverse.setdefault(target, []).append(slot)
    return reverse


def _slot_height(slot: Slot, wave_of: Mapping[str, int]) -> float:
    return BOX_HEIGHT if wave_of[slot[0]] == slot[1] else LANE_HEIGHT


def _slot_centers(
    columns: Sequence[Sequence[Slot]], links: Mapping[Slot, Sequence[Slot]], wave_of: Mapping[str, int]
) -> dict[Slot, float]:
    """Centers as near as possible to the mean of their neighbours', keeping order and distance in a column."""
    incoming = _reverse_links(links)
    centers: dict[Slot, float] = {}
    for column in columns:
        centers.update(_spread_column(column, dict.fromkeys(column, 0.0), wave_of))
    for sweep in range(SWEEPS):
        order = columns if sweep % 2 == 0 else list(reversed(columns))
        for column in order:
            preferred = {}
            for slot in column:
                neighbour_centers = [centers[other] for other in (*links.get(slot, ()), *incoming.get(slot, ()))]
                preferred[slot] = (
                    sum(neighbour_centers) / len(neighbour_centers) if neighbour_centers else centers[slot]
                )
            centers.update(_spread_column(column, preferred, wave_of))
    return centers


def _spread_column(
    column: Sequence[Slot], preferred: Mapping[Slot, float], wave_of: Mapping[str, int]
) -> dict[Slot, float]:
    """The centers nearest to the preferred ones that keep order and distance; slots that overlap move as a block."""
    offsets = [0.0]
    for above, below in pairwise(column):
        offsets.append(offsets[-1] + (_slot_height(above, wave_of) + _slot_height(below, wave_of)) / 2 + SLOT_GAP)
    blocks: list[tuple[float, int]] = []
    for slot, offset in zip(column, offsets, strict=False):
        mean, count = preferred[slot] - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, number = blocks.pop()
            mean, count = (mean * count + other * number) / (count + number), count + number
        blocks.append((mean, count))
    starts = [mean for mean, count in blocks for _ in range(count)]
    return {slot: start + offset for slot, start, offset in zip(column, starts, offsets, strict=False)}
