"""Dependencies on the Application itself, beside those of the file."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import platform
from windlass.core.platform.model.annotations import AnnotatedPlatform, merge_annotations, parse_names
from windlass.core.platform.model.applications import ApplicationRef

PLACE = "annotation windlass.dev/depends-on of Application"
IGNORED = "is ignored, because"


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), (" , ", ()), ("a", ("a",)), ("b, a,\n team/c ,b", ("b", "a", "team/c"))],
)
def test_names_stand_between_commas(text: str, names: tuple[str, ...]) -> None:
    assert parse_names(text) == names


@pytest.mark.parametrize(
    ("file", "annotated", "stated", "needs"),
    [
        ("a; b", {"b": ("a",)}, set(), {"a": (), "b": ("a",)}),
        ("a; b", {"b": ("a",)}, {"b"}, {"a": (), "b": ()}),
        ("a; b; c: a", {"c": ("b",)}, {"c"}, {"a": (), "b": (), "c": ("a",)}),
        # What c waits for by its stack stays; the annotation comes to it.
        ("a; b; c: a", {"c": ("b",)}, set(), {"a": (), "b": (), "c": ("a", "b")}),
        ("a; b: a", {"b": ("a", "a"), "a": ()}, set(), {"a": (), "b": ("a",)}),
        ("a; b+", {"a": ("b",)}, set(), {"a": ("b",), "b": ()}),
        # The edge of an annotation that closes a cycle is dropped, the edges of the file stay.
        ("a: b; b", {"b": ("a",)}, set(), {"a": ("b",), "b": ()}),
        ("a: b; b: c; c; d", {"c": ("a", "d")}, set(), {"a": ("b",), "b": ("c",), "c": ("d",), "d": ()}),
        # What does not count is not looked at either.
        ("a: b; b", {"b": ("a", "nobody")}, {"b"}, {"a": ("b",), "b": ()}),
    ],
)
def test_the_file_wins(
    file: str, annotated: dict[str, tuple[str, ...]], stated: set[str], needs: dict[str, tuple[str, ...]]
) -> None:
    before = platform(file)
    after = merge_annotations(before, annotated, stated).platform
    assert after.graph.dependencies == needs
    assert replace(after, graph=before.graph) == before


def test_without_annotations_nothing_is_made_anew() -> None:
    made = platform("b: a")
    assert merge_annotations(made, {}, ()) == AnnotatedPlatform(made)
    assert merge_annotations(made, {"b": ()}, ()).platform is made
    assert merge_annotations(made, {"a": ("b",)}, ()).platform is made


def test_an_application_may_be_named_as_argo_cd_names_it() -> None:
    made = platform("web; db; cache")
    nodes = dict(made.applications)
    nodes["db"] = replace(nodes["db"], target=ApplicationRef("postgres", "team"))
    nodes["cache"] = replace(nodes["cache"], target=ApplicationRef("web", "team"))
    made = replace(made, applications=nodes)
    assert merge_annotations(made, {"web": ("team/postgres",)}, ()).platform.graph.dependencies["web"] == ("db",)
    assert merge_annotations(made, {"db": ("web", "team/web")}, ()).platform.graph.dependencies["db"] == (
        "cache",
        "web",
    )


def test_an_application_may_be_named_with_the_namespace_of_argo_cd() -> None:
    made = platform("web; db")
    merged = merge_annotations(made, {"web": ("argocd/db",)}, (), "argocd")
    assert merged.platform.graph.dependencies["web"] == ("db",)
    assert not merged.notices
    assert merge_annotations(made, {"web": ("team/db",)}, (), "argocd").platform is made


def notices(file: str, annotated: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return merge_annotations(platform(file), annotated, ()).notices


def test_an_unknown_name_is_told_with_its_application() -> None:
    assert notices("postgres; web", {"web": ("postgers",)}) == (
        f"{PLACE} web: 'postgers' {IGNORED} there is no such node (did you mean postgres?)",
    )


def test_a_cycle_is_told_with_its_application_and_its_path() -> None:
    made = "a: b; b: c; c; d; x1; x2; x3; x4; x5; x6; x7; x8; x9; x10"
    unknown = f"'quite-unknown\\n' {IGNORED} there is no such node"
    assert notices(made, {"d": ("d",), "c": ("a", "quite-unknown\n")}) == (
        f"{PLACE} c: 'a' {IGNORED} it would close the cycle c -> a -> b -> c; {unknown}",
        f"{PLACE} d: 'd' {IGNORED} it would close the cycle d -> d",
    )


def test_two_annotations_that_contradict_each_other_are_told_once() -> None:
    assert notices("a; b", {"a": ("b",), "b": ("a",)}) == (
        f"{PLACE} b: 'a' {IGNORED} it would close the cycle b -> a -> b",
    )


def test_an_application_is_named_as_argo_cd_names_it() -> None:
    made = platform("web")
    node = replace(made.applications["web"], target=ApplicationRef("shop", "team"))
    found = merge_annotations(replace(made, applications={"web": node}), {"web": ("team/shop",)}, ())
    assert found.notices == (f"{PLACE} team/shop: 'team/shop' {IGNORED} it would close the cycle web -> web",)


def test_a_long_cycle_is_shown_without_its_middle() -> None:
    file = "; ".join(f"n{i:02}: n{i + 1:02}" for i in range(29)) + "; n29"
    assert notices(file, {"n29": ("n00",)})[0].endswith(
        "the cycle n29 -> n00 -> n01 -> n02 -> ... -> n26 -> n27 -> n28 -> n29"
    )


@pytest.mark.parametrize(
    "names", [("x" * 1_000_000,), tuple(f"nobody-{i}" for i in range(100_000)), ("\x1b[31m" * 1000,) * 50]
)
def test_what_is_told_is_bounded(names: tuple[str, ...]) -> None:
    made = "; ".join(f"n{i}" for i in range(50))
    told = notices(made, {f"n{i}": names for i in range(50)})
    assert len(told) == 21
    assert told[-1] == "names in the annotation windlass.dev/depends-on of 30 more Applications are ignored"
    assert all(len(each) < 1500 and each.isprintable() for each in told)


NAMES = [f"n{i}" for i in range(8)]
EDGES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=30)
REFERENCES = st.one_of(st.sampled_from(NAMES), st.text(max_size=5), st.sampled_from(["n", "argocd/n1", "/", "n1/n2"]))


@given(
    EDGES,
    st.lists(st.tuples(st.sampled_from(NAMES), st.lists(REFERENCES, max_size=10)), unique_by=lambda it: it[0]),
    st.randoms(use_true_random=False),
)
def test_whatever_annotations_say_the_file_stays_and_no_more_is_dropped_than_must_be(
    edges: list[tuple[str, str]], drawn: list[tuple[str, list[str]]], chance: object
) -> None:
    file = {name: {other for this, other in edges if this == name and other > name} for name in NAMES}
    made = platform("; ".join(f"{name}: {' '.join(sorted(needed))}" for name, needed in file.items()))
    annotated = {name: tuple(dict.fromkeys(said)) for name, said in drawn}
    found = merge_annotations(made, annotated, ())
    graph = found.platform.graph
    assert sorted(chain(*graph.waves)) == NAMES  # acyclic: each node is in a wave
    for name in NAMES:
        said = set(annotated.get(name, ())) & set(NAMES)
        kept = set(graph.dependencies[name])
        assert file[name] <= kept <= file[name] | said
        for dropped in said - kept:
            assert name in graph.closure({dropped})
    shuffled = list(annotated.items())
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    reordered = {name: tuple(sorted(said, reverse=True)) for name, said in shuffled}
    assert merge_annotations(made, reordered, ()).platform == found.platform
    assert merge_annotations(made, dict(shuffled), ()) == found


def work(count: int) -> int:
    """Calls that a merge makes if each of so many nodes names the last node of the chain on which all stand."""
    made = platform("; ".join(f"n{i:05}: n{i + 1:05}" for i in range(count)) + f"; n{count:05}")
    annotated = dict.fromkeys(made.applications, (f"n{0:05}", f"n{count // 2:05}", "nobody"))
    calls = 0

    def tally(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(tally)
    try:
        merge_annotations(made, annotated, ())
    finally:
        sys.setprofile(None)
    return calls


def test_twice_as_many_annotations_are_twice_the_work() -> None:
    once = work(500)
    assert once < work(1000) < 2.2 * once
