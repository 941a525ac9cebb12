"""Plans that are approved: what of them must still hold, and how a difference is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import NEW, NOW, OLD, platform, snapshot, source, state
from windlass.core.platform.gate_values import Reason
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.model.snapshots import ApplicationState, ParentApplication, Snapshot, Source
from windlass.core.platform.planning import approvals, plans
from windlass.core.platform.planning.approvals import (
    ApprovedPlan,
    RunApproval,
    StepSummary,
    approval_problems,
    definition_digest,
    differences,
    differences_after_root,
    summarize_plan,
    unapproved_reason,
)
from windlass.core.platform.planning.plan_documents import platform_digest

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
    approved = summarize_plan(plan(BEFORE), BEFORE)
    assert list(differences(approved, summarize_plan(plan(now), now))) == told


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
    summary = summarize_plan(plan(BEFORE), BEFORE)
    assert list(differences(replace(summary, root=before), replace(summary, root=now))) == told


def test_another_platform_is_told() -> None:
    other = plans.plan_deploy(platform("keycloak: postgres; postgres: ceph"), BEFORE, parse_scope("platform"))
    approved = summarize_plan(plan(snapshot("ceph=healthy postgres=progressing vault=healthy")), BEFORE)
    told = differences(approved, summarize_plan(other, BEFORE))
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
        "postgres": (f"it is at {OLD[:12]}, desired is {NEW[:12]}", (NEW,)),
        "keycloak": ("it does not exist", (NEW,)),
    }
    assert not plans.has_undefined_node(CHAIN, found, parse_scope("platform"))
    assert plans.has_undefined_node(CHAIN, BEFORE, parse_scope("platform"))


def test_words_for_verbs() -> None:
    words = [approvals.past_participle(str(verb)) for verb in plans.Verb]
    assert words == ["synced", "awaited", "rechecked", "removed", "failed"]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (("Application a/root",), ("Application a/root",), []),
        ((), ("Application a/root",), ["Application a/root would now be deleted first"]),
        (("Application a/root",), (), ["Application a/root would not be deleted first"]),
    ],
)
def test_parents_that_are_deleted_are_part_of_what_is_approved(
    before: tuple[str, ...], now: tuple[str, ...], told: list[str]
) -> None:
    summary = summarize_plan(plan(BEFORE), BEFORE)
    assert list(differences(replace(summary, parents=before), replace(summary, parents=now))) == told


def test_another_definition_is_told() -> None:
    old = state(revisions=(OLD,))
    new = replace(old, sources=(source(NEW, fingerprint="another path"),))
    before, now = (replace(BEFORE, states={**BEFORE.states, "vault": each}) for each in (old, new))
    told = differences(summarize_plan(plan(before), before), summarize_plan(plan(now), now))
    assert told == ("vault would be synced otherwise: its definition has changed",)


SYNCED_FROM_ROOT = {"a": StepSummary("sync", revisions=(NEW,)), "b": StepSummary("await", revisions=(OLD,))}


@pytest.mark.parametrize(
    ("plan_", "told"),
    [
        (ApprovedPlan({}, frozenset()), []),
        (ApprovedPlan(SYNCED_FROM_ROOT, frozenset()), []),
        (ApprovedPlan({"a": StepSummary("await")}, frozenset()), []),
        (ApprovedPlan({"a": StepSummary("sync")}, frozenset()), ["which revision a would get is not known"]),
        (ApprovedPlan(SYNCED_FROM_ROOT, frozenset(), "a root", NEW), []),
        (
            ApprovedPlan({"a": StepSummary("sync")}, frozenset(), "a root"),
            ["the root Application changes, and the commit that it will resolve to is not known: a root"],
        ),
    ],
)
def test_a_plan_that_does_not_name_revisions_cannot_be_approved(plan_: ApprovedPlan, told: list[str]) -> None:
    assert list(approval_problems(plan_)) == told


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (SYNCED_FROM_ROOT, []),
        ({"c": StepSummary("sync", revisions=(NEW,))}, []),
        ({"d": StepSummary("sync", revisions=("1.0.0",))}, []),
        ({"c": StepSummary("sync", revisions=(OLD,))}, [f"c would be synced at {OLD[:12]}"]),
        ({"foreign": StepSummary("sync", revisions=(NEW,))}, [f"foreign would be synced at {NEW[:12]}"]),
        ({"d": StepSummary("sync", revisions=("1.0.1",))}, ["d would be synced at 1.0.1"]),
    ],
)
def test_after_the_root_was_written_only_its_commit_may_be_synced(now: dict[str, StepSummary], told: list[str]) -> None:
    approved = ApprovedPlan(
        {**SYNCED_FROM_ROOT, "d": StepSummary("sync", revisions=("1.0.0",))}, frozenset({"c"}), "a root", NEW
    )
    assert list(differences_after_root(approved, ApprovedPlan(now, frozenset()), {"a", "b", "c", "d"})) == told


PINNED, MOVING = state(sources=(source(NEW),)), state(sources=(source("main"),), revisions=(NEW,))
CHART = state(sources=(source("1.2.3", is_chart=True),), revisions=("1.2.3",))


@pytest.mark.parametrize(
    ("approved", "now", "new_definition", "told"),
    [
        (StepSummary("sync", revisions=(NEW,)), PINNED, None, ""),
        (StepSummary("sync", revisions=(NEW,)), MOVING, None, ""),
        (StepSummary("sync", revisions=(NEW,), definition=definition_digest(PINNED.sources)), PINNED, None, ""),
        (StepSummary("sync", revisions=(NEW,)), CHART, CHART.sources, ""),
        (StepSummary("sync", revisions=(NEW,)), MOVING, MOVING.sources, ""),
        (None, PINNED, None, "the approved plan has no step for it"),
        (StepSummary("sync", revisions=(OLD,)), MOVING, None, f"now, approved is {OLD[:12]}"),
        (StepSummary("sync", revisions=(NEW,)), CHART, None, "it is to be at 1.2.3 now"),
        (StepSummary("sync", revisions=(OLD,)), MOVING, MOVING.sources, "its new definition follows main"),
        (StepSummary("sync", revisions=(NEW,)), PINNED, MOVING.sources, "its definition is not the approved one"),
        (StepSummary("sync", revisions=(NEW,), definition="0"), PINNED, None, "its definition is not the approved one"),
    ],
)
def test_a_step_keeps_to_what_was_approved(
    approved: StepSummary | None, now: ApplicationState, new_definition: tuple[Source, ...] | None, told: str
) -> None:
    reason = unapproved_reason(approved, now, new_definition)
    assert told in reason
    assert bool(told) == bool(reason)


def test_the_digest_of_a_platform_covers_what_a_run_does() -> None:
    digests = {
        platform_digest(CHAIN, ()),
        platform_digest(CHAIN, ["vault"]),
        platform_digest(replace(CHAIN, max_parallel=2), ()),
        platform_digest(replace(CHAIN, managed_nodes=frozenset({"vault"})), ()),
        platform_digest(platform("keycloak: postgres vault; postgres: ceph; vault:"), ()),
        platform_digest(platform("keycloak: postgres vault; postgres: ceph; vault*: ceph"), ()),
    }
    assert len(digests) == 6
    assert platform_digest(platform("keycloak: postgres vault; postgres: ceph; vault: ceph"), ()) in digests


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ((), (), []),
        (("a",), (), []),
        ((), ("a",), ["foreign objects in a could be destroyed"]),
    ],
)
def test_what_may_be_destroyed_is_part_of_what_is_approved(
    before: tuple[str, ...], now: tuple[str, ...], told: list[str]
) -> None:
    summary = summarize_plan(plan(BEFORE), BEFORE)
    assert list(differences(replace(summary, delete_foreign=before), replace(summary, delete_foreign=now))) == told


def test_a_parent_that_has_moved_defines_nothing() -> None:
    approval = RunApproval({"a": StepSummary("sync", revisions=(NEW,))})
    assert approval.check_parent("a", ParentApplication("argocd", "root", (NEW,))) is None
    for name in ("a", "b"):
        failed = approval.check_parent(name, ParentApplication("argocd", "root", (OLD,)))
        assert failed is not None
        assert (failed.reason, failed.is_final) == (Reason.NOT_APPROVED, True)


def test_a_parent_with_other_sources_defines_nothing() -> None:
    parameters = (replace(source("main"), fingerprint="other parameters"),)
    approval = RunApproval({"a": StepSummary("sync", revisions=(NEW,), parent=definition_digest((source("main"),)))})
    assert approval.check_parent("a", ParentApplication("argocd", "apps", (NEW,), (source("main"),))) is None
    failed = approval.check_parent("a", ParentApplication("argocd", "apps", (NEW,), parameters))
    assert failed is not None
    assert (failed.reason, failed.detail) == (
        Reason.NOT_APPROVED,
        "the sources of argocd/apps, which defines it, have changed",
    )


def test_a_definition_that_another_client_changes_after_us_is_not_approved() -> None:
    approval = RunApproval({"a": StepSummary("sync", revisions=(NEW,))})
    assert approval.check("a", CHART, is_redefined=True) is None
    assert approval.check("a", CHART, is_redefined=True) is None
    changed = approval.check("a", replace(CHART, sources=(source("1.2.4", is_chart=True),)), is_redefined=True)
    assert changed is not None
    assert changed.reason is Reason.NOT_APPROVED


def test_a_node_that_is_rechecked_is_unchanged() -> None:
    rechecked = ApprovedPlan({"a": StepSummary("recheck"), "b": StepSummary("sync", ("a",), (NEW,))}, frozenset())
    unchanged = ApprovedPlan({"b": StepSummary("sync", (), (NEW,))}, frozenset({"a"}))
    assert differences(rechecked, unchanged) == differences(unchanged, rechecked) == ()
