"""Plans that are approved: what of them must still hold, and how a difference is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import NEW, NOW, OLD, platform, snapshot, source, state
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.model.snapshots import ParentApplication, Snapshot
from windlass.core.platform.planning import plan_documents, plans
from windlass.core.platform.planning.plan_documents import differences, summarize_plan

CHAIN = platform("keycloak: postgres vault; postgres: ceph; vault: ceph")


def plan(found: Snapshot) -> plans.Plan:
    return plans.plan_deploy(CHAIN, found, parse_scope("platform"))


BEFORE = snapshot("ceph=healthy vault=healthy postgres=progressing")


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (BEFORE, []),
        (snapshot("ceph=healthy vault=healthy postgres=healthy"), []),
        (snapshot("ceph=healthy vault=progressing postgres=progressing"), ["vault would now be awaited"]),
        (
            snapshot("ceph=healthy vault=healthy postgres=healthy keycloak=healthy"),
            ["keycloak would not be synced any more"],
        ),
        (
            snapshot("ceph=healthy vault=healthy", postgres=state(revisions=(OLD,))),
            [
                "keycloak would be synced otherwise: after postgres, not nothing",
                "postgres would be synced otherwise: it was awaited",
            ],
        ),
        (
            snapshot("ceph=healthy postgres=progressing"),
            ["keycloak would be synced otherwise: after vault, not nothing", "vault would now be synced"],
        ),
        (
            replace(BEFORE, parents={"keycloak": ParentApplication("argocd", "root", (NEW,))}),
            [f"keycloak would be synced otherwise: at {NEW}, not nothing known"],
        ),
    ],
)
def test_what_would_be_done_otherwise_is_told(now: Snapshot, told: list[str]) -> None:
    approved = summarize_plan(plan(BEFORE), "")
    assert list(differences(approved, summarize_plan(plan(now), ""))) == told


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("main", "main", []),
        ("main", "", ["the root would not be written any more"]),
        ("", "main", ["the root would now be written"]),
        ("main", "next", ["the root would follow next, not main"]),
    ],
)
def test_the_root_is_part_of_what_is_approved(before: str, now: str, told: list[str]) -> None:
    approved = summarize_plan(plan(BEFORE), before)
    assert list(differences(approved, summarize_plan(plan(BEFORE), now))) == told


def test_another_platform_is_told() -> None:
    other = plans.plan_deploy(platform("keycloak: postgres; postgres: ceph"), BEFORE, parse_scope("platform"))
    approved = summarize_plan(plan(snapshot("ceph=healthy postgres=progressing vault=healthy")), "")
    told = differences(approved, summarize_plan(other, ""))
    assert told == ("the platform has other applications",)


def test_a_step_says_at_which_revisions_as_far_as_known() -> None:
    parents = {
        "ceph": ParentApplication("argocd", "root", (NEW,), is_child_in_sync=False),
        "vault": ParentApplication("argocd", "root", (NEW,), is_child_in_sync=False, is_automated=True),
        "keycloak": ParentApplication("argocd", "root", (NEW,)),
    }
    old = state(sources=(source(OLD),), compared_sources=(source(OLD),), revisions=(OLD,))
    found = Snapshot(NOW, {"ceph": old, "vault": state(), "postgres": state(revisions=(OLD,))}, parents)
    steps = {step.name: (step.why, step.revisions) for step in plan(found).steps}
    assert steps == {
        "ceph": ("its definition in argocd/root has changed", (NEW,)),
        "postgres": (f"it is at {OLD[:12]}, wanted is {NEW[:12]}", (NEW,)),
        "keycloak": ("it does not exist", (NEW,)),
    }
    assert not plans.has_undefined_node(CHAIN, found, parse_scope("platform"))
    assert plans.has_undefined_node(CHAIN, BEFORE, parse_scope("platform"))


def test_words_for_verbs() -> None:
    words = [plan_documents.past_participle(str(verb)) for verb in plans.Verb]
    assert words == ["synced", "awaited", "rechecked", "removed", "failed"]
