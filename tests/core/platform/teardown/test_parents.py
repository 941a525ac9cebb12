"""Who would make again what is removed goes first, is left alone, or stands in the way."""

from __future__ import annotations

import pytest

from tests.builders import graph, needs
from windlass.core.platform.teardown.inventory import ResourceKey
from windlass.core.platform.teardown.parents import (
    ParentObject,
    ParentRemovalPlan,
    TeardownSelection,
    plan_parent_removal,
    with_parent_dependencies,
)


def app(name: str) -> ResourceKey:
    return ResourceKey("argoproj.io", "ApplicationSet" if name.startswith("set") else "Application", "argocd", name)


def makers(text: str) -> list[ParentObject]:
    """`root: web api`; one with a star makes again what is gone."""
    found = needs(text)
    return [
        ParentObject(
            app(name.strip("*")), frozenset(app(other.strip("*")) for other in made), recreates_children="*" in name
        )
        for name, made in found.items()
        if made
    ]


@pytest.mark.parametrize(
    ("made", "scope", "is_whole", "first", "refused"),
    [
        ("root*: a b c", "a b c", True, "root", ""),
        ("root: a b c", "a b c", True, "root", ""),
        ("root: a b c", "a b c", False, "", ""),
        ("root*: a b c", "a b c", False, "root", ""),
        ("root*: a b", "a", False, "", "root"),
        ("root: a b", "a", False, "", ""),
        ("root*: b c", "a", False, "", ""),
        ("root*: a stranger", "a", False, "", "root"),
        ("root: a stranger", "a", True, "", ""),
        ("set*: a b", "a b", False, "set", ""),
        ("set*: a b", "b", False, "", "set"),
        ("root*: set; set*: a b", "a b", False, "root set", ""),
        ("root*: set x; set*: a b", "a b", False, "set", "root"),
        ("zroot*: middle; middle*: a b", "a b", False, "zroot middle", ""),
        ("c: a b", "a b c", False, "", ""),
        ("c*: a b", "a b c", False, "c", ""),
        ("c*: stranger", "c", False, "", ""),
        ("c: a stranger", "a c", False, "", ""),
        ("b: c", "b c", False, "b", ""),
        ("c: a b", "a c", False, "", "c"),
        ("c: b", "c", False, "", "c"),
        ("c: gone", "c", False, "", ""),
        ("c*: a b", "a b", False, "", "c"),
        ("root*: gone other", "gone", False, "", ""),
        ("one*: two a; two*: one a", "a", False, "two one", ""),
    ],
)
def test_makers(made: str, scope: str, is_whole: bool, first: str, refused: str) -> None:
    """The platform is a, b, which waits for c, and gone, which is not there."""
    assert told(detached(made, scope, is_whole=is_whole)) == (first, refused)


NODES = {app(name): name for name in ("a", "b", "c", "gone")}


def detached(made: str, scope: str, *, is_whole: bool = False) -> ParentRemovalPlan:
    found = makers(made)
    order = with_parent_dependencies(graph("a; b: c; gone"), found, NODES)
    return plan_parent_removal(
        found, TeardownSelection(NODES, order, frozenset(scope.split()), frozenset("abc"), is_whole)
    )


def told(found: ParentRemovalPlan) -> tuple[str, str]:
    first = " ".join(maker.key.name for maker in found.delete_first)
    return first, " ".join(unmet.name.split()[1].removeprefix("argocd/") for unmet in found.refused)


@pytest.mark.parametrize(
    ("made", "order"),
    [
        ("a: b c", "a: ; b: a c; c: a; gone"),
        ("a*: b c", "a: ; b: c; c: ; gone"),
        ("b: a c", "a: b; b: c; c: ; gone"),
        ("c: b", "a: ; b: c; c: ; gone"),
        ("a: set; set*: b", "a: ; b: a c; c: ; gone"),
        ("a: c; c: gone a", "a: ; b: c; c: a; gone: a c"),
        ("root: a b", "a: ; b: c; c: ; gone"),
    ],
)
def test_what_defines_nodes_when_asked_goes_after_them_unless_it_needs_them(made: str, order: str) -> None:
    assert with_parent_dependencies(graph("a; b: c; gone"), makers(made), NODES) == graph(order)


@pytest.mark.parametrize(
    ("made", "scope", "why"),
    [
        ("root*: a b", "a", "because it also defines Application argocd/b (argoproj.io)"),
        ("c*: a", "a", "because it is outside the scope"),
        ("c: a b", "a c", "would also delete Application argocd/b (argoproj.io)"),
    ],
)
def test_a_refusal_says_why(made: str, scope: str, why: str) -> None:
    (unmet,) = detached(made, scope).refused
    assert why in unmet.why
    assert "widen the scope" in unmet.why
