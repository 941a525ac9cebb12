"""Whether the definition of a node is known: which parent is the cause, and what is said of the platform as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import NEW, NOW, OLD, platform, source, state
from windlass.core.platform.gate_values import Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import Scope, parse_scope
from windlass.core.platform.model.snapshots import Condition, ParentApplication, Snapshot, SyncStatus
from windlass.core.platform.planning import plans
from windlass.core.platform.planning.definitions import (
    MAX_SHOWN_NAMES,
    automated_parent_warnings,
    definition_failure,
    definition_failures,
    definition_notices,
    with_rewritten_parent,
)
from windlass.core.platform.reporting import verdicts
from windlass.core.platform.reporting.failures import Failure, unhealthy_failures
from windlass.core.platform.reporting.verdicts import Verdict

ROOT = ParentApplication("argocd", "root", (NEW,))
BROKEN = replace(ROOT, problem="ComparisonError: no such path")
SILENT = replace(ROOT, is_answering=False)
SET = ParentApplication("argocd", "tenants", kind="ApplicationSet", is_automated=True, problem="no such folder")


def nested(above: ParentApplication, **changes: Any) -> ParentApplication:
    return ParentApplication("argocd", "middle", parent=above, **changes)


def seen(parent: ParentApplication | None = None, **changes: Any) -> Snapshot:
    made = Snapshot(NOW, {"web": state()}, {"web": parent} if parent else {}, (parent,) if parent else ())
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("snapshot", "reason", "cause"),
    [
        (seen(), None, ""),
        (seen(ROOT), None, ""),
        (seen(BROKEN), Reason.PARENT_BROKEN, "argocd/root"),
        (seen(SILENT), Reason.NOT_ANSWERING, "argocd/root"),
        (seen(SET), Reason.PARENT_BROKEN, "ApplicationSet argocd/tenants"),
        (seen(nested(BROKEN)), Reason.PARENT_BROKEN, "argocd/root"),
        (seen(nested(BROKEN, problem="not compared")), Reason.PARENT_BROKEN, "argocd/root"),
        (seen(nested(ROOT, problem="not compared")), Reason.PARENT_BROKEN, "argocd/middle"),
        (seen(replace(ROOT, defines_child=False)), Reason.NOT_DEFINED, ""),
        (seen(replace(BROKEN, defines_child=False)), Reason.PARENT_BROKEN, "argocd/root"),
        (seen(unanswered=frozenset({"web"})), Reason.NOT_ANSWERING, ""),
        (seen(BROKEN, unanswered=frozenset({"web"})), Reason.PARENT_BROKEN, "argocd/root"),
        (seen(states={}, has_all_definitions=True), Reason.NOT_DEFINED, ""),
        (seen(states={}), None, ""),
        (seen(states={}, platform_parents=(ROOT, BROKEN)), Reason.PARENT_BROKEN, "argocd/root"),
        (seen(ROOT, states={}, has_all_definitions=True), None, ""),
    ],
)
def test_why_a_definition_is_not_known(snapshot: Snapshot, reason: Reason | None, cause: str) -> None:
    failed = definition_failure("web", snapshot)
    assert (failed and failed.reason, failed.cause if failed else "") == (reason, cause)


COMPARED: dict[str, Any] = {"sources": (source(),), "compared_sources": (source(),), "revisions": (NEW,)}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"is_deleting": True}, "it is being deleted"),
        ({"conditions": (Condition("ComparisonError", "no path"),)}, "ComparisonError: no path"),
        ({"conditions": (Condition("OrphanedResourceWarning", "one"),)}, ""),
        ({"sync": SyncStatus.UNKNOWN}, "Argo CD has not compared it"),
        ({"revisions": ()}, "Argo CD has not compared it"),
        ({"sources": (), "compared_sources": ()}, ""),
        ({"compared_sources": (source(OLD),)}, "Argo CD has not compared it with the sources it has now"),
        ({"revisions": (OLD,)}, f"Argo CD compared it at {OLD}, desired is {NEW}"),
        (
            {"sources": (source("main"),), "compared_sources": (source("main"),), "revisions": ("main",)},
            "Argo CD compared it at main, desired is unknown",
        ),
    ],
)
def test_why_a_parent_does_not_show_what_it_defines(changes: dict[str, Any], problem: str) -> None:
    assert state(**{**COMPARED, **changes}).comparison_problem == problem


def test_of_a_long_message_start_and_end_are_quoted() -> None:
    long = state(conditions=(Condition("ComparisonError", f"helm failed: {'x ' * 100_000}: the cause"),))
    assert len(long.comparison_problem) < 450
    assert long.comparison_problem.startswith("ComparisonError: helm failed: x x")
    assert long.comparison_problem.endswith("x : the cause")


def test_a_parent_that_is_written_anew_is_not_judged_by_what_it_was() -> None:
    found = with_rewritten_parent(seen(nested(BROKEN), states={}, has_all_definitions=True), "argocd/root")
    assert definition_failure("web", found) is None
    assert definition_failure("other", found) is None
    assert definition_failure("web", with_rewritten_parent(seen(BROKEN), "argocd/other")) is not None


def test_notices_are_bounded() -> None:
    assert list(definition_notices(seen())) == []
    names = tuple(f"argocd/n{number:02}" for number in range(MAX_SHOWN_NAMES + 5))
    [unknown] = definition_notices(seen(unknown_applications=names))
    assert unknown.endswith("argocd/n09 and 5 more")


def test_parents_that_sync_themselves_are_named_with_the_nodes_they_define() -> None:
    automated = replace(ROOT, is_automated=True)
    [warning] = automated_parent_warnings(seen(automated), ["web", "other"])
    assert warning == "argocd/root syncs itself: it updates the definitions of web at once, in no order"
    assert list(automated_parent_warnings(seen(SET), ["web"])) == []
    assert list(automated_parent_warnings(seen(automated), ["other"])) == []


PLATFORM = platform("next: web; web: ; thing+:")


def test_objects_that_are_nodes_have_no_definition_of_their_own() -> None:
    found = Snapshot(NOW, has_all_definitions=True)
    assert sorted(definition_failures(PLATFORM, found, PLATFORM.applications)) == ["next", "web"]


def test_a_plan_says_what_fails_whatever_it_depends_on() -> None:
    both = {"web": BROKEN, "next": BROKEN}
    plan = plans.plan_deploy(platform("next: web; web: ; last: next"), seen(parents=both), Scope())
    assert {step.name: (str(step.verb), step.after) for step in plan.steps} == {
        "web": ("fail", ()),
        "next": ("fail", ()),
        "last": ("sync", ("next",)),
    }
    assert not plan.is_empty
    assert [step.name for step in plan.changes] == ["last"]


@pytest.mark.parametrize(
    ("text", "parents", "verdict"),
    [
        ("web:", {"web": BROKEN}, Verdict.FAILURE),
        ("web: ; more:", {"web": BROKEN}, Verdict.PARTIAL),
        ("web: ; more:", {}, Verdict.SUCCESS),
    ],
)
def test_the_verdict_on_a_plan(text: str, parents: dict[str, ParentApplication], verdict: Verdict) -> None:
    found = seen(states={"web": state(), "more": state()}, parents=parents)
    assert verdicts.plan_verdict(plans.plan_deploy(platform(text), found, Scope())) is verdict


def test_one_failure_for_all_that_a_parent_defines() -> None:
    found = seen(parents={"web": BROKEN, "next": BROKEN}, states={"web": state(), "next": state()})
    healths = {"web": Health.UNKNOWN, "next": Health.UNKNOWN, "thing": Health.MISSING}
    detail = "ComparisonError: no such path"
    assert unhealthy_failures(PLATFORM, healths, found, {}) == (
        Failure("argocd/root", "ParentBroken", detail, ("next", "web")),
        Failure("thing", "Absent", "it does not exist", ()),
    )


OUTDATED = replace(ROOT, is_child_in_sync=False)


@pytest.mark.parametrize(
    ("text", "scope", "middle", "steps"),
    [
        ("web: ; middle:", "platform", "middle", {"middle": (), "web": ("middle",)}),
        ("web: ; other:", "platform", "", {"web": ()}),
        ("web: ; middle:", "app:web", "middle", {}),
        ("middle: web; web:", "platform", "middle", {"middle": ()}),
    ],
    ids=["a node", "not a node", "outside the scope", "a node that depends on its child"],
)
def test_what_an_outdated_parent_defines_is_planned_after_it(
    text: str, scope: str, middle: str, steps: dict[str, tuple[str, ...]]
) -> None:
    made = platform(text)
    parents = {"web": nested(OUTDATED, node=middle), **({"middle": OUTDATED} if middle else {})}
    found = Snapshot(NOW, {name: state() for name in made.applications}, parents)
    plan = plans.plan_deploy(made, found, parse_scope(scope))
    assert {step.name: step.after for step in plan.steps} == steps
    if "web" in steps:
        web = next(step for step in plan.steps if step.name == "web")
        assert (web.why, web.revisions) == ("argocd/middle, which defines it, is updated first", ())


def test_what_left_an_outdated_parent_may_come_back() -> None:
    assert definition_failure("web", seen(nested(OUTDATED, defines_child=False))) is None


@pytest.mark.parametrize(
    ("changes", "updates"),
    [
        ({}, False),
        ({"is_child_in_sync": False}, True),
        ({"is_child_in_sync": False, "defines_child": False}, False),
        ({"is_child_in_sync": False, "is_automated": True, "is_settled": True}, False),
        ({"is_child_in_sync": False, "is_automated": True, "is_settled": False}, True),
    ],
)
def test_whether_a_parent_updates_its_child(changes: dict[str, Any], updates: bool) -> None:
    assert replace(ROOT, **changes).updates_child is updates
