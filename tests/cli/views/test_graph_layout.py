"""Drawings of any graph: every box has its own place, every dependency that is not implied a way to it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given, settings

from tests.builders import graph, platform
from tests.core.platform.strategies import graphs
from windlass.cli.views.graph_layout import BOX_HEIGHT, LANE_HEIGHT, SLOT_GAP, compute_layout
from windlass.cli.views.graph_svg import svg

if TYPE_CHECKING:
    from windlass.cli.views.graph_layout import Slot
    from windlass.core.platform.model.graphs import Graph


@given(graphs())
@settings(deadline=None)
def test_boxes_and_lanes_never_touch(made: Graph) -> None:
    found = compute_layout(made)
    boxes = {(name, number) for number, wave in enumerate(made.waves) for name in wave}
    assert boxes <= {slot for column in found.columns for slot in column}
    for column in found.columns:
        for above, below in pairwise(column):
            needed = sum(BOX_HEIGHT if slot in boxes else LANE_HEIGHT for slot in (above, below)) / 2 + SLOT_GAP
            assert found.centers[below] - found.centers[above] >= needed - 1e-6
    assert all(0 <= place <= found.total_height for place in found.centers.values())


@given(graphs())
@settings(deadline=None)
def test_every_dependency_that_is_not_implied_has_a_way(made: Graph) -> None:
    found = compute_layout(made)
    wave_of = {name: number for number, wave in enumerate(made.waves) for name in wave}

    def reached(slot: Slot) -> set[str]:
        names = set()
        for name, column in found.links.get(slot, ()):
            names |= {name} if wave_of[name] == column else reached((name, column))
        return names

    implied = set(made.implied_edges())
    for name in made.names:
        direct = {other for other in made.dependents[name] if (other, name) not in implied}
        assert reached((name, wave_of[name])) == direct


def test_a_better_order_is_found() -> None:
    found = compute_layout(graph("a2: b1; b2: a1"))
    assert [[name for name, _ in column] for column in found.columns] in (
        [["a1", "b1"], ["b2", "a2"]],
        [["b1", "a1"], ["a2", "b2"]],
    )


def test_a_drawing_has_a_title() -> None:
    made = platform("a")
    assert "<title>platform test: 1 applications</title>" in svg(made, made.graph)
