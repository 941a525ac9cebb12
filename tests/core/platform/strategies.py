"""Random graphs that have no circle: each name waits only for names before it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from windlass.core.platform.model.graphs import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping


@st.composite
def graphs(draw: st.DrawFn, most: int = 12) -> Graph:
    """One number for each name, a bit for each name before it; in the alphabet they run up or down."""
    size = draw(st.integers(0, most))
    names = [f"n{number:02}" for number in range(size)]
    if draw(st.booleans()):
        names.reverse()
    chosen = draw(st.tuples(*(st.integers(0, 2**place - 1) for place in range(size))))
    return Graph.build(
        {
            name: [names[other] for other in range(place) if chosen[place] >> other & 1]
            for place, name in enumerate(names)
        }
    )


@st.composite
def timed_graphs(draw: st.DrawFn, most: int = 12) -> tuple[Graph, Mapping[str, timedelta]]:
    graph = draw(graphs(most))
    numbers = draw(st.lists(st.integers(0, 9), min_size=len(graph.names), max_size=len(graph.names)))
    return graph, {name: timedelta(seconds=number) for name, number in zip(graph.names, numbers, strict=True)}
