"""What an import makes of an Argo CD: stacks, names, dependencies; and that the file it writes says just that."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.platform.drafting.inventories import app, appset, inventory, step
from windlass.core.platform.drafting.drafts import draft_platform
from windlass.core.platform.drafting.ownership import (
    ArgoInventory,
    LabelExpression,
    ObservedApplication,
    ObservedApplicationSet,
    build_ownership,
)
from windlass.core.platform.drafting.platform_yaml import render_platform
from windlass.settings.platform_files import PlatformFile
from windlass.settings.platforms import PlatformDefinition, assemble_platform
from windlass.settings.yaml_positions import ParsedFile, parse_file

if TYPE_CHECKING:
    from windlass.core.platform.drafting.drafts import Draft

STEPS = ObservedApplicationSet(appset("tenants"), steps=(step("dev"), step("test", "stage"), step("prod")))


def loaded(draft: Draft) -> PlatformDefinition:
    """As settings read what was written."""
    document = parse_file(render_platform(draft, ["Heading\n# of two lines"]).encode(), "dag.yaml", PlatformFile)
    assert isinstance(document, ParsedFile), document
    found = assemble_platform(document)
    assert isinstance(found, PlatformDefinition), found
    assert found.platform.graph == draft.graph
    assert not found.without_profile
    implied = set(found.platform.graph.implied_edges()) & found.edge_locations.keys()
    assert not implied, "what a node says itself is needed"
    return found


def stacks_of(found: ArgoInventory) -> dict[str, str]:
    return {stack.name: " ".join(each.name for each in stack.nodes) for stack in draft_platform(found).stacks}


def needs_of(found: ArgoInventory) -> dict[str, str]:
    """What stands in the file, stacks in brackets."""
    rows: dict[str, str] = {}
    draft = draft_platform(found)
    loaded(draft)
    for stack in draft.stacks:
        if stack.dependencies:
            rows[f"[{stack.name}]"] = " ".join(name for name, _ in stack.dependencies)
        rows |= {
            entry.name: " ".join(n for n, _ in entry.dependencies)
            for entry in stack.nodes
            if entry.dependencies is not None
        }
    return rows


WAVES = """
root lists=a,b,c,d
a
b
c wave=5
d wave=-1
"""
NESTED = """
root lists=infra,apps,solo
infra lists=x,y
apps wave=1 lists=z
solo wave=1
x
y
z
"""
SETS = """
root lists=*tenants,base
base wave=-1
one of=tenants env=dev
two of=tenants env=stage
three of=tenants env=prod
four of=tenants
"""


@pytest.mark.parametrize(
    ("found", "stacks"),
    [
        (inventory("a\nb project=Team_A"), {"default": "a", "team-a": "b"}),
        (inventory("root lists=a,b\na\nb\nc"), {"root": "root a b", "default": "c"}),
        (inventory("a of=s\nb of=s\nc of=team/s"), {"s": "a b", "s-applicationset": "c"}),
        (
            inventory("s lists=x\nx\na of=s\nb project=s"),
            {"s": "s x", "s-applicationset": "a", "s-project": "b"},
        ),
        (inventory(WAVES), {"root": "root", "root-wave-minus-1": "d", "root-wave-0": "a b", "root-wave-5": "c"}),
        (inventory(NESTED), {"root": "root", "infra": "infra x y", "apps": "apps z", "root-wave-1": "solo"}),
        (
            inventory(SETS, STEPS),
            {
                "root": "root",
                "root-wave-minus-1": "base",
                "tenants": "four",
                "tenants-step-1": "one",
                "tenants-step-2": "two",
                "tenants-step-3": "three",
            },
        ),
        (
            inventory(SETS, ObservedApplicationSet(appset("tenants"), steps=(step("dev"),))),
            {"root": "root", "root-wave-minus-1": "base", "tenants": "four one three two"},
        ),
    ],
)
def test_stacks_come_from_who_made_what(found: ArgoInventory, stacks: dict[str, str]) -> None:
    assert stacks_of(found) == stacks


@pytest.mark.parametrize(
    ("found", "needs"),
    [
        (inventory("root lists=a,b\na\nb"), {"a": "root", "b": "root"}),
        (inventory("root lists=a,b\na\nb", parent_health_includes_children=True), {}),
        (
            inventory(WAVES),
            {"[root-wave-minus-1]": "root", "[root-wave-0]": "root-wave-minus-1", "[root-wave-5]": "root-wave-0"},
        ),
        (
            inventory(WAVES, parent_health_includes_children=True),
            {"[root-wave-0]": "root-wave-minus-1", "[root-wave-5]": "root-wave-0"},
        ),
        (
            inventory(NESTED),
            {"[infra]": "root", "[apps]": "infra", "[root-wave-1]": "infra", "x": "infra", "y": "infra", "z": "apps"},
        ),
        (inventory(NESTED, parent_health_includes_children=True), {"[apps]": "infra", "[root-wave-1]": "infra"}),
        (
            inventory(SETS, STEPS),
            {
                "[root-wave-minus-1]": "root",
                "[tenants]": "root-wave-minus-1",
                "[tenants-step-1]": "root-wave-minus-1",
                "[tenants-step-2]": "tenants-step-1",
                "[tenants-step-3]": "tenants-step-2",
            },
        ),
        (inventory("root lists=a,*s\na\nb of=s"), {"a": "root", "b": "root"}),
        (
            inventory("root lists=a,*s,b\na\nb wave=2", ObservedApplicationSet(appset("s"), sync_wave=1)),
            {"[root-wave-0]": "root", "[root-wave-2]": "root-wave-0"},
        ),
        (
            inventory("root lists=a,*s\na", ObservedApplicationSet(appset("s"), sync_wave=-1)),
            {"[root-wave-0]": "root"},
        ),
        (inventory("a\nb says=a\nc says=a,b"), {"b": "a", "c": "b"}),
        (inventory("a\nb says="), {"b": ""}),
        (
            inventory("root lists=a,b\na\nb wave=1 says=a"),
            {"[root-wave-0]": "root", "[root-wave-1]": "root-wave-0", "b": ""},
        ),
        (inventory("root lists=a,b\na says=b\nb"), {"a": "b", "b": "root"}),
    ],
)
def test_order_comes_from_parents_waves_steps_and_annotations(found: ArgoInventory, needs: dict[str, str]) -> None:
    assert needs_of(found) == needs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("team/a says=b\nteam/b\nb", {"a": "team-b", "b": None, "team-b": None}),
        ("team/a says=b\nb", {"a": "b", "b": None}),
        ("team/a says=argocd/b\nteam/b\nb", {"a": "b", "b": None, "team-b": None}),
    ],
)
def test_an_annotation_means_the_neighbour_first(text: str, expected: dict[str, str | None]) -> None:
    draft = draft_platform(inventory(text))
    entries = {entry.name: entry.dependencies for stack in draft.stacks for entry in stack.nodes}
    assert {name: needs[0][0] if needs else None for name, needs in entries.items()} == expected


def test_names_are_given_once_and_lead_to_their_application() -> None:
    found = inventory("web\nx/web\ny/web\nx-web\napi\nz/solo\nz/null\nz/7e7\ny-web-2\nx-web-2")
    nodes = loaded(draft_platform(found)).platform.applications
    targets = {name: str(node.target) for name, node in nodes.items()}
    assert targets == {
        "web": "web",
        "x-web": "x-web",
        "x-web-2": "x-web-2",
        "x-web-3": "x/web",
        "y-web": "y/web",
        "y-web-2": "y-web-2",
        "api": "api",
        "solo": "z/solo",
        "null": "z/null",
        "7e7": "z/7e7",
    }


def test_an_argo_cd_that_is_elsewhere_is_named_each_time() -> None:
    found = inventory("gitops/root lists=gitops/a\ngitops/a\ngitops/b by=root", argocd_namespace="gitops")
    platform = loaded(draft_platform(found)).platform
    assert {str(node.target) for node in platform.applications.values()} == {"gitops/root", "gitops/a", "gitops/b"}
    assert platform.graph.dependencies == {"a": ("root",), "b": ("root",), "root": ()}


@pytest.mark.parametrize(
    ("text", "makers"),
    [
        ("root lists=root,a\na", {"a": "root"}),
        ("root lists=a\nother lists=a\na by=root", {"a": "root"}),
        ("one lists=a\ntwo lists=a\na by=three\nthree", {"a": "one"}),
        ("root\na by=root", {"a": "root"}),
        ("root\na by=gone\nb by=b", {}),
        ("team/root\na by=team_root", {"a": "root"}),
        ("team/root\na by=root", {}),
        ("root lists=a\na of=s", {"a": "s"}),
        ("root lists=*s,gone\na of=s", {"a": "s", "s": "root"}),
        ("a lists=b\nb lists=a", {"a": "b"}),
    ],
)
def test_who_made_what(text: str, makers: dict[str, str]) -> None:
    lineage, _ = build_ownership(inventory(text))
    assert {thing.name: maker.name for thing, maker in lineage.parents.items()} == makers


def test_a_circle_of_parents_is_told() -> None:
    draft = draft_platform(inventory("a lists=b\nb lists=a"))
    assert draft.notices == (
        "Application argocd/b and Application argocd/a list each other: that one is its parent is left out",
    )
    assert draft.graph.dependencies == {"a": ("b",), "b": ()}


def test_what_would_close_a_circle_is_left_out_and_told() -> None:
    draft = draft_platform(inventory("root lists=a,b\na says=b,c\nb wave=1\nc"))
    words = "windlass.dev/depends-on names b, but dependencies go round in a circle: a -> b -> a"
    assert draft.notices == (f"a: {words}",)
    text = render_platform(draft, [])
    assert f"        # left out: {words}\n        - {{name: a, profile: simple, dependsOn: [c]}}" in text
    assert loaded(draft).platform.graph.dependencies == {"a": ("c", "root"), "b": ("a",), "c": (), "root": ()}


def test_of_two_annotations_that_contradict_each_other_one_counts() -> None:
    draft = draft_platform(inventory("a says=b\nb says=a,b\nc says=c"))
    assert draft.graph.dependencies == {"a": ("b",), "b": (), "c": ()}
    assert len(draft.notices) == 3
    assert {"a", "b", "c"} == loaded(draft).explicit_dependencies


def test_an_annotation_that_names_nobody_is_told_on_one_line() -> None:
    only = ObservedApplication(app("a"), depends_on=("evil\n- name: x", "z" * 1000))
    draft = draft_platform(ArgoInventory((only,)))
    assert draft.notices[0] == r"a: windlass.dev/depends-on names 'evil\n- name: x', which is no Application here"
    assert len(draft.notices[1]) < 400
    assert loaded(draft).platform.graph.dependencies == {"a": ()}


ANNOTATED = """
last says=one,two,base,a-very-long-name-indeed,another-very-long-name
a-very-long-name-indeed
another-very-long-name project=x
sub by=last says=another-very-long-name
"""


def test_every_dependency_says_where_it_came_from() -> None:
    draft = draft_platform(inventory(SETS + ANNOTATED.lstrip(), STEPS))
    text = render_platform(draft, ["one", "two"])
    assert text.startswith("# one\n# two\napiVersion: windlass.dev/v1alpha1\nkind: Platform\n")
    for line in (
        "        - root  # root makes these",
        "        - root-wave-minus-1  # sync wave -1 before 0 in Application argocd/root",
        "        - tenants-step-2  # step 2 before 3 in ApplicationSet argocd/tenants",
        "    # made by ApplicationSet argocd/tenants, step 3",
        "    # made by ApplicationSet argocd/tenants",
        "    # project x",
        "        - {name: sub, profile: simple, dependsOn: [last]}  # made by Application argocd/last",
        "            - two  # annotation windlass.dev/depends-on",
    ):
        assert line in text.splitlines()
    loaded(draft)


def test_a_node_with_two_reasons_names_each() -> None:
    draft = draft_platform(inventory("root lists=a\na says=b\nb"))
    assert render_platform(draft, []).endswith(
        """\
        - name: a
          profile: simple
          dependsOn:
            - b  # annotation windlass.dev/depends-on
            - root  # made by Application argocd/root
"""
    )


@pytest.mark.parametrize(
    ("match", "labels", "fits"),
    [
        (LabelExpression("env", frozenset({"dev"})), {"env": "dev"}, True),
        (LabelExpression("env", frozenset({"dev"})), {"env": "prod"}, False),
        (LabelExpression("env", frozenset({"dev"})), {}, False),
        (LabelExpression("env", frozenset({"dev"}), is_negated=True), {"env": "dev"}, False),
        (LabelExpression("env", frozenset({"dev"}), is_negated=True), {}, True),
    ],
)
def test_matches(match: LabelExpression, labels: dict[str, str], fits: bool) -> None:
    assert match.matches(labels) is fits


NAMES = ["a", "b", "c", "d", "e", "null", "7"]
THINGS = st.builds(
    lambda space, name: app(f"{space}/{name}"), st.sampled_from(["argocd", "team"]), st.sampled_from(NAMES)
)
SET_THINGS = st.sampled_from([appset("a"), appset("s"), appset("team/s")])


@st.composite
def inventories(draw: st.DrawFn) -> ArgoInventory:
    applications = draw(
        st.lists(
            st.builds(
                ObservedApplication,
                THINGS,
                project=st.sampled_from(["default", "a", "Team A", ""]),
                labels=st.sampled_from([{}, {"env": "dev"}, {"env": "prod"}]),
                sync_wave=st.integers(-1, 2),
                owner=st.none() | SET_THINGS,
                tracked_by=st.sampled_from(["", "a", "team_b"]),
                listed_children=st.frozensets(THINGS | SET_THINGS, max_size=4),
                depends_on=st.none() | st.lists(st.sampled_from([*NAMES, "team/a", "x"]), max_size=3).map(tuple),
            ),
            min_size=1,
            max_size=12,
            unique_by=lambda each: each.ref,
        )
    )
    steps = st.sampled_from([(), (step("dev"), step("prod"))])
    sets = draw(
        st.lists(st.builds(ObservedApplicationSet, SET_THINGS, sync_wave=st.integers(0, 1), steps=steps), max_size=3)
    )
    unique = {each.ref: each for each in sets}
    return ArgoInventory(
        tuple(applications), tuple(unique.values()), parent_health_includes_children=draw(st.booleans())
    )


@given(inventories())
def test_whatever_there_is_the_file_loads_and_keeps_every_order(found: ArgoInventory) -> None:
    draft = draft_platform(found)
    platform = loaded(draft).platform
    assert len(platform.applications) == len(found.applications)
    by_target = {str(node.target): name for name, node in platform.applications.items()}
    names = {
        each.ref: by_target[f"{each.ref.namespace}/{each.ref.name}".removeprefix("argocd/")]
        for each in found.applications
    }
    lineage, _ = build_ownership(found)
    for maker, made in lineage.children.items():
        if maker not in names:
            continue
        waves = sorted({found.by_ref[thing].sync_wave for thing in made})
        for early, late in combinations(waves, 2):
            before = {
                names[e] for t in made if found.by_ref[t].sync_wave == early for e in lineage.applications_below(t)
            }
            for thing in made:
                if found.by_ref[thing].sync_wave == late:
                    assert all(before <= platform.graph.closure({names[e]}) for e in lineage.applications_below(thing))
        if not found.parent_health_includes_children:
            assert all(
                names[maker] in platform.graph.closure({names[e]}) for t in made for e in lineage.applications_below(t)
            )
    for each in found.applications:
        node = names[each.ref]
        for said in each.depends_on or ():
            space, _, short = said.rpartition("/")
            places = (space,) if space else (each.ref.namespace, "argocd")
            meant = next((names[it] for place in places if (it := app(f"{place}/{short}")) in names), None)
            is_kept = meant in platform.graph.closure({node}) - {node}
            assert is_kept or any(
                f"{node}: windlass.dev/depends-on names {word}," in line
                for word in (meant, repr(said))
                for line in draft.notices
            )
