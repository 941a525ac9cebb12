"""Dependencies on the Application itself, beside those of the file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import platform
from windlass.core.platform.model.annotations import merge_annotations, parse_names
from windlass.core.platform.model.applications import ApplicationRef
from windlass.errors import InvalidInput

PLACE = "annotation windlass.dev/depends-on of Application"
REMEDY = "(remove a name there, or give dependsOn in the platform file)"


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
        # What does not count is not looked at either.
        ("a: b; b", {"b": ("a", "nobody")}, {"b"}, {"a": ("b",), "b": ()}),
    ],
)
def test_the_file_wins(
    file: str, annotated: dict[str, tuple[str, ...]], stated: set[str], needs: dict[str, tuple[str, ...]]
) -> None:
    before = platform(file)
    after = merge_annotations(before, annotated, stated)
    assert after.graph.dependencies == needs
    assert replace(after, graph=before.graph) == before


def test_without_annotations_nothing_is_made_anew() -> None:
    made = platform("b: a")
    assert merge_annotations(made, {}, ()) is made
    assert merge_annotations(made, {"b": ()}, ()) is made


def test_an_application_may_be_named_as_argo_cd_names_it() -> None:
    made = platform("web; db; cache")
    nodes = dict(made.applications)
    nodes["db"] = replace(nodes["db"], target=ApplicationRef("postgres", "team"))
    nodes["cache"] = replace(nodes["cache"], target=ApplicationRef("web", "team"))
    made = replace(made, applications=nodes)
    assert merge_annotations(made, {"web": ("team/postgres",)}, ()).graph.dependencies["web"] == ("db",)
    assert merge_annotations(made, {"db": ("web", "team/web")}, ()).graph.dependencies["db"] == ("cache", "web")


def test_one_mistake_reads_like_any_error() -> None:
    with pytest.raises(InvalidInput) as refused:
        merge_annotations(platform("postgres; web"), {"web": ("postgers",)}, ())
    assert refused.value.exit_code == 3
    assert refused.value.what == f"{PLACE} web: there is no node 'postgers'"
    assert refused.value.hint == "did you mean postgres?"


def test_all_mistakes_are_told_at_once() -> None:
    made = platform("a: b; b: c; c; d; x1; x2; x3; x4; x5; x6; x7; x8; x9; x10")
    with pytest.raises(InvalidInput) as refused:
        merge_annotations(made, {"c": ("a", "quite-unknown\n"), "d": ("d",)}, ())
    assert refused.value.what.splitlines() == [
        "3 mistakes in annotations of Applications",
        f"  {PLACE} c: there is no node 'quite-unknown\\n'",
        f"  {PLACE} c: dependencies go round in a circle: a -> b -> c -> a {REMEDY}",
        f"  {PLACE} d: dependencies go round in a circle: d -> d {REMEDY}",
    ]
