"""Scopes, stacks, health words, revisions, retries, suggestions: the small rules, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import NEW, OLD, platform, seconds, source, state
from windlass.core.platform.model.applications import ApplicationRef, ResourceRef, Retries, Stack, stack_dependencies
from windlass.core.platform.model.health import Health, group_health, parse_health, worst_health
from windlass.core.platform.model.scopes import Scope, ScopeKind, known_nodes, parse_scope, selected_nodes
from windlass.core.platform.model.snapshots import ResourceKind, desired_revisions
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput

PLATFORM = platform("keycloak: postgres vault")


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("platform", Scope()),
        ("stack:storage", Scope(ScopeKind.STACK, "storage")),
        ("app:vault", Scope(ScopeKind.APP, "vault")),
    ],
)
def test_a_scope_reads_as_it_is_written(text: str, scope: Scope) -> None:
    assert parse_scope(text) == scope
    assert str(scope) == text
    assert scope.is_platform == (text == "platform")


@pytest.mark.parametrize("text", ["", "all", "stack", "stack:", "app:", "application:vault", "platform:x", "Platform"])
def test_anything_else_is_no_scope(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not a scope .*platform, stack:NAME or app:NAME"):
        parse_scope(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [("platform", "keycloak postgres vault"), ("stack:all", "keycloak postgres vault"), ("app:vault", "vault")],
)
def test_what_a_scope_selects(text: str, names: str) -> None:
    assert selected_nodes(PLATFORM, parse_scope(text)) == set(names.split())


def test_an_empty_stack_selects_nothing() -> None:
    assert selected_nodes(PLATFORM, parse_scope("stack:empty")) == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stack:al", r"there is no stack al \(did you mean all\?\)"),
        ("app:valut", r"there is no application valut \(did you mean vault\?\)"),
        ("app:xyz", r"there is no application xyz \(possible: keycloak, postgres, vault\)"),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        selected_nodes(PLATFORM, parse_scope(text))


def test_a_scope_stays_within_the_subset() -> None:
    part = replace(PLATFORM, managed_nodes=frozenset({"vault"}))
    assert selected_nodes(part, Scope()) == {"vault"}
    assert selected_nodes(part, parse_scope("stack:all")) == {"vault"}
    with pytest.raises(InvalidInput, match="app:keycloak is outside the part that the platform file selects"):
        selected_nodes(part, parse_scope("app:keycloak"))


def test_a_stack_waits_through_an_empty_one() -> None:
    stacks = (
        Stack("a", ("a1", "a2")),
        Stack("hollow", (), ("a",)),
        Stack("b", ("b1",), ("hollow",)),
        Stack("c", ("c1",)),
    )
    assert stack_dependencies(stacks) == {"a": (), "hollow": ("a1", "a2"), "b": ("a1", "a2"), "c": ()}


def test_stacks_do_not_go_round_in_a_circle() -> None:
    with pytest.raises(InvalidInput, match="a -> b -> a"):
        stack_dependencies((Stack("a", (), ("b",)), Stack("b", (), ("a",))))


@pytest.mark.parametrize(
    ("words", "worst", "group"),
    [
        ("", "Healthy", "Healthy"),
        ("Healthy Healthy", "Healthy", "Healthy"),
        ("Healthy Suspended", "Suspended", "Suspended"),
        ("Suspended Progressing", "Progressing", "Progressing"),
        ("Progressing Missing", "Missing", "Degraded"),
        ("Missing Degraded", "Degraded", "Degraded"),
        ("Degraded Unknown", "Unknown", "Unknown"),
        ("Unknown Failed Healthy", "Failed", "Failed"),
    ],
)
def test_the_worst_decides(words: str, worst: str, group: str) -> None:
    healths = [Health(word) for word in words.split()]
    assert worst_health(healths) == worst
    assert group_health(healths) == group


@pytest.mark.parametrize(
    ("word", "health"), [("Healthy", Health.HEALTHY), ("Fine", Health.UNKNOWN), (None, Health.UNKNOWN)]
)
def test_a_word_nobody_knows_is_unknown(word: str | None, health: Health) -> None:
    assert parse_health(word) is health


@pytest.mark.parametrize(
    ("revision", "is_chart", "is_moving"),
    [
        ("main", False, True),
        ("", False, True),
        ("HEAD", False, True),
        ("v1.2.3", False, True),
        (NEW, False, False),
        (NEW[:39], False, True),
        ("a" * 64, False, False),
        ("1.2.3", True, False),
        ("v1.2.3-rc.1", True, False),
        ("1.2", True, False),
        ("v1.2", True, False),
        ("1", True, False),
        ("1.2-rc.1+build", True, False),
        ("1.2.3.4", True, True),
        ("1.2 - 1.4", True, True),
        ("1.2.x", True, True),
        ("^1.2.3", True, True),
        ("*", True, True),
    ],
)
def test_what_may_mean_something_else_tomorrow(revision: str, is_chart: bool, is_moving: bool) -> None:
    assert source(revision, is_chart=is_chart).has_mutable_revision == is_moving


@pytest.mark.parametrize(
    ("sources", "revisions", "wanted"),
    [
        ((source(NEW),), (OLD,), (NEW,)),
        ((source(NEW),), (), (NEW,)),
        ((source("main"),), (OLD,), (OLD,)),
        ((source("main"), source(NEW)), (OLD, OLD), (OLD, NEW)),
        ((source("main"),), (), ()),
    ],
    ids=["fixed", "fixed, never compared", "moving", "one of each", "moving, never compared"],
)
def test_what_an_application_should_be_at(
    sources: tuple[object, ...], revisions: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    assert desired_revisions(state(sources=sources, revisions=revisions)) == wanted


def test_retries_double_and_end() -> None:
    retries = Retries(3, seconds(10))
    assert [retries.pause_after(attempt) for attempt in (1, 2, 3)] == [seconds(10), seconds(20), None]


def test_suggestions() -> None:
    assert did_you_mean("Valut", ["vault", "velero"]) == "did you mean vault?"
    assert did_you_mean("zzz", ["b", "a"]) == "possible: a, b"
    assert did_you_mean("zzz", map(str, range(13))) == ""
    assert did_you_mean("zzz", []) == ""


def test_references_read_well() -> None:
    assert str(ApplicationRef("vault")) == "vault"
    assert str(ApplicationRef("vault", "team-a")) == "team-a/vault"
    assert str(ResourceRef("v1", "Node", "n1")) == "Node n1 (v1)"
    assert str(ResourceRef("v1", "Pod", "p", "ns")) == "Pod ns/p (v1)"
    assert str(ResourceKind("", "Pod")) == "Pod"
    assert str(ResourceKind("ceph.rook.io", "CephCluster")) == "ceph.rook.io/CephCluster"


def test_names_of_nodes_must_be_nodes_of_the_platform() -> None:
    assert known_nodes(PLATFORM, ("vault", "vault")) == {"vault"}
    with pytest.raises(InvalidInput, match="there is no application 'vautl'"):
        known_nodes(PLATFORM, ("vautl",))
