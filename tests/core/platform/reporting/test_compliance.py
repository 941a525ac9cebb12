"""Findings: who went past the order, what cannot be judged, which hooks order things."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import NEW, OLD, operation, snapshot, source, state
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import Hook, OperationPhase, ParentApplication, ResourceKind, ResourceState
from windlass.core.platform.reporting.compliance import Rule, finding_text, findings, outdated_findings

CEPH = ResourceKind("ceph.rook.io", "CephCluster")
VAULT = ResourceKind("vault.example", "Vault")


def rules(checked: tuple[ResourceKind, ...] = (), **changes: Any) -> list[str]:
    return [f"{each.rule} {each.what}" for each in findings(snapshot(vault=state(**changes)), checked)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"operation": None}, 0),
        ({"operation": operation(run_id="run-1")}, 0),
        ({"operation": operation(run_id=None), "previous_revisions": (OLD,)}, 1),
        ({"operation": operation(run_id=None), "previous_revisions": ()}, 1),
        ({"operation": operation(run_id=None), "previous_revisions": (NEW,)}, 0),
        ({"operation": operation(OperationPhase.FAILED, run_id=None), "previous_revisions": (OLD,)}, 0),
    ],
    ids=["none", "ours", "a new revision", "a first one", "self-healing", "failed"],
)
def test_a_bypass_is_a_success_at_a_new_revision_that_is_not_ours(changes: dict[str, Any], expected: int) -> None:
    found = findings(snapshot(vault=state(**changes)), ())
    assert [each.rule for each in found] == [Rule.SINGLE_PATH] * expected


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        (ParentApplication("argocd", "root", last_run_revisions=(NEW,)), 0),
        (ParentApplication("argocd", "root", last_run_revisions=(OLD,)), 1),
        (ParentApplication("argocd", "root"), 1),
    ],
    ids=["we moved its definition there", "somewhere else", "somebody else did"],
)
def test_what_syncs_itself_because_we_moved_its_definition_had_its_turn(
    parent: ParentApplication, expected: int
) -> None:
    found = snapshot(vault=state(operation=operation(run_id=None), previous_revisions=(OLD,)))
    assert len(findings(replace(found, parents={"vault": parent}), ())) == expected


def test_a_bypass_names_who() -> None:
    assert rules(operation=operation(run_id=None, started_by="eve")) == [
        f"INV-2 eve synced it to {NEW[:12]} outside a windlass run, not in dependency order"
    ]


@pytest.mark.parametrize(("automated", "ref", "count"), [(True, "main", 1), (True, NEW, 0), (False, "main", 0)])
def test_automated_sync_of_a_moving_revision_has_no_turn(automated: bool, ref: str, count: int) -> None:
    assert len(rules(is_automated=automated, sources=(source(ref),))) == count


def test_kinds_that_nobody_can_judge() -> None:
    kinds = frozenset({CEPH, VAULT, ResourceKind("", "ConfigMap"), ResourceKind("networking.k8s.io", "Ingress")})
    assert rules((CEPH,), resource_kinds=kinds) == [
        "INV-7 vault.example/Vault has no health check: applied counts as healthy"
    ]


@pytest.mark.parametrize(
    ("hook", "count"),
    [
        (Hook("Job", "wait", "PreSync"), 1),
        (Hook("Job", "wait", "PostSync"), 1),
        (Hook("Job", "migrate", "PreSync", is_internal=True), 0),
        (Hook("Job", "x", "Sync"), 0),
        (Hook("Job", "x", "SyncFail"), 0),
    ],
)
def test_hooks_that_may_order_applications(hook: Hook, count: int) -> None:
    found = findings(snapshot(vault=state(operation=operation(hooks=(hook,)))), ())
    assert [each.rule for each in found] == [Rule.NO_HOOKS] * count
    assert all("windlass.dev/hook: internal" in each.remedy for each in found)


def test_a_resource_node_has_no_findings() -> None:
    assert findings(snapshot(ready=ResourceState(Health.DEGRADED)), ()) == ()


def test_m9_git_that_is_ahead_is_one_finding_per_parent() -> None:
    root = ParentApplication("argocd", "root", revisions=(NEW,))
    behind = replace(root, is_child_in_sync=False)
    seen = replace(
        snapshot(vault=state(revisions=(OLD,)), web=state(revisions=(NEW,)), dns=state(revisions=(OLD,))),
        parents={"vault": behind, "web": behind, "dns": root},
        platform_parents=(root,),
    )
    [found] = outdated_findings(seen)
    assert (found.rule, found.application) == (Rule.UP_TO_DATE, "argocd/root")
    assert finding_text(found) == (
        f"argocd/root: out of sync, git is ahead at {NEW[:12]}: 2 applications are behind (vault, web), "
        f"at different commits: {', '.join(sorted((NEW[:12], OLD[:12])))} "
        "(windlass plan shows the changes, windlass deploy applies them)"
    )


def test_m9_a_parent_that_is_behind_its_own_parent_is_named() -> None:
    root = ParentApplication("argocd", "root", is_child_in_sync=False)
    middle = ParentApplication("argocd", "middle", parent=root)
    [found] = outdated_findings(replace(snapshot(web=state()), parents={"web": middle}))
    assert found.application == "argocd/root"
    assert "1 application is behind (argocd/middle)" in found.what


@pytest.mark.parametrize("changes", [{}, {"is_child_in_sync": False, "defines_child": False}])
def test_m9_nothing_is_behind(changes: dict[str, Any]) -> None:
    parent = ParentApplication("argocd", "root", **changes)
    assert outdated_findings(replace(snapshot(web=state()), parents={"web": parent})) == ()
