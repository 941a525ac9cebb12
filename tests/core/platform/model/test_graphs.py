"""Order, circles, restriction and paths: tables for the shapes people draw, properties for all others."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import graph, needs
from tests.core.platform.strategies import graphs, timed_graphs
from windlass.core.platform.model.graphs import Cycle, Graph, UnknownDependency, graph_problems
from windlass.errors import ExitCode, InvalidInput

DIAMOND = "d: b c; b: a; c: a"


@pytest.mark.parametrize(
    ("text", "waves"),
    [
        ("", []),
        ("a", ["a"]),
        ("b: a; c: b", ["a", "b", "c"]),
        (DIAMOND, ["a", "b c", "d"]),
        ("keycloak: postgres vault; postgres: ceph; vault: ceph; solo", ["ceph solo", "postgres vault", "keycloak"]),
    ],
)
def test_waves(text: str, waves: list[str]) -> None:
    assert [" ".join(wave) for wave in graph(text).waves] == waves


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: a", "a -> a"),
        ("a: b; b: a", "a -> b -> a"),
        ("c: a; a: b; b: c", "a -> b -> c -> a"),
        ("z: y; y: x; x: z; top: z bottom; x: bottom", "x -> z -> y -> x"),
        ("a: b c; b: a; c: d; d: a", "a -> b -> a"),
    ],
    ids=["itself", "two", "three", "with a tail on both sides", "the shortest of two"],
)
def test_a_circle_is_shown_as_a_path(text: str, path: str) -> None:
    assert graph_problems(needs(text)) == (Cycle(tuple(path.split(" -> "))),)
    with pytest.raises(InvalidInput, match=rf"circle: {path} \(") as refused:
        graph(text)
    assert refused.value.exit_code is ExitCode.INVALID


def test_each_knot_is_shown_once_and_what_lies_between_is_not() -> None:
    found = graph_problems(needs("b: a c; a: b; c: d; d: e; e: d; f: f"))
    assert [str(problem).partition(": ")[2] for problem in found] == ["a -> b -> a", "d -> e -> d", "f -> f"]


def test_unknown_names_are_all_named_with_the_nearest_that_exists() -> None:
    found = graph_problems({"vault": ["postgras"], "postgres": [], "keycloak": ["zzz"]})
    assert found == (
        UnknownDependency("keycloak", "zzz", "possible: postgres, vault"),
        UnknownDependency("vault", "postgras", "did you mean postgres?"),
    )
    with pytest.raises(InvalidInput, match="keycloak depends on zzz, which does not exist; vault depends on postgras"):
        Graph.build({"vault": ["postgras"], "postgres": [], "keycloak": ["zzz"]})


def test_unknown_names_and_circles_come_together() -> None:
    assert len(graph_problems({"a": ["b", "x"], "b": ["a"]})) == 2


@given(graphs())
def test_dependencies_come_first(made: Graph) -> None:
    place = {name: number for number, name in enumerate(made.order)}
    assert sorted(place) == list(made.names)
    assert all(place[dependency] < place[name] for name in made.names for dependency in made.dependencies[name])


@given(graphs())
def test_reversing_twice_gives_the_same_graph(made: Graph) -> None:
    backwards = made.reversed()
    assert backwards.reversed() == made
    place = {name: number for number, name in enumerate(backwards.order)}
    assert all(place[name] < place[dependency] for name in made.names for dependency in made.dependencies[name])


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_writing_changes_nothing(made: Graph, chance: object) -> None:
    items = [(name, list(needed)) for name, needed in made.dependencies.items()]
    shuffle = getattr(chance, "shuffle")  # noqa: B009 - Hypothesis hands in a random.Random, which is banned by name
    shuffle(items)
    for _, needed in items:
        shuffle(needed)
    again = Graph.build(dict(items))
    assert (again, again.waves, again.order) == (made, made.waves, made.order)


@given(graphs(), st.data())
def test_the_closure_is_all_that_can_be_reached(made: Graph, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(made.names))) if made.names else set()
    found = set(chosen)
    for _ in made.names:
        found |= {dependency for name in found for dependency in made.dependencies[name]}
    assert made.closure(chosen) == found


@given(graphs(), st.data())
def test_a_restriction_keeps_the_order_between_what_is_left(made: Graph, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(made.names))) if made.names else set()
    restricted = made.subgraph(chosen)
    assert set(restricted.names) == chosen
    for name in chosen:
        assert restricted.closure([name]) == made.closure([name]) & chosen


def test_a_restriction_names_what_is_needed_from_outside() -> None:
    made = graph("keycloak: postgres vault; grafana: postgres; postgres: ceph; vault")
    assert made.external_dependencies({"keycloak", "grafana", "ceph"}) == {
        "postgres": ("grafana", "keycloak"),
        "vault": ("keycloak",),
    }
    assert made.subgraph({"keycloak", "ceph"}).dependencies == {"ceph": (), "keycloak": ("ceph",)}


@given(timed_graphs(most=5))
def test_the_critical_path_is_the_longest_of_all_paths(made: tuple[Graph, dict[str, timedelta]]) -> None:
    graph, durations = made
    paths = [
        path
        for length in range(len(graph.names) + 1)
        for path in itertools.permutations(graph.names, length)
        if all(before in graph.dependencies[after] for before, after in itertools.pairwise(path))
    ]
    longest = max(sum((durations[name] for name in path), timedelta()) for path in paths)
    found = graph.critical_path(durations)
    assert found.duration == longest
    assert found.names in paths
    assert sum((durations[name] for name in found.names), timedelta()) == longest


@given(graphs())
def test_an_implied_edge_can_go_without_changing_what_waits_for_what(made: Graph) -> None:
    implied = set(made.implied_edges())
    slim = Graph.build(
        {name: [other for other in made.dependencies[name] if (name, other) not in implied] for name in made.names}
    )
    assert all(slim.closure([name]) == made.closure([name]) for name in made.names)
    assert not slim.implied_edges()


def test_implied_edges_by_name() -> None:
    assert graph("c: a b; b: a").implied_edges() == (("c", "a"),)
    assert graph(DIAMOND).implied_edges() == ()
