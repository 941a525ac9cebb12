"""Plans as text: what is done, after what, and why; and what a plan must be for any graph and any cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import OLD, at, operation, platform, snapshot, source, state
from tests.core.platform.strategies import graphs
from windlass.core.platform.gate_values import Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.model.snapshots import ApplicationState, OperationPhase, ResourceState, Snapshot, SyncStatus
from windlass.core.platform.planning import plans
from windlass.core.platform.planning.plans import Plan, Verb

if TYPE_CHECKING:
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.graphs import Graph

CHAIN = "keycloak: postgres vault; postgres: ceph; vault: ceph"


def steps(plan: Plan) -> list[str]:
    return [f"{step.verb} {step.name}{' after ' + ' '.join(step.after) if step.after else ''}" for step in plan.steps]


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("", ["sync ceph", "sync postgres after ceph", "sync vault after ceph", "sync keycloak after postgres vault"]),
        ("ceph=healthy postgres=healthy vault=healthy keycloak=healthy", []),
        ("ceph=healthy vault=healthy postgres=degraded", ["await postgres", "sync keycloak after postgres"]),
        ("postgres=healthy vault=healthy keycloak=healthy", ["sync ceph"]),
        ("postgres=healthy vault=healthy", ["sync ceph", "sync keycloak after ceph"]),
    ],
    ids=["empty cluster", "all there", "resume", "a hole at the bottom", "order holds through what is done"],
)
def test_deploy_is_what_is_not_there_yet(cluster: str, expected: list[str]) -> None:
    assert steps(plans.plan_deploy(platform(CHAIN), snapshot(cluster), parse_scope("platform"))) == expected


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (
            "ceph=healthy postgres=healthy vault=degraded keycloak=healthy",
            [
                "remove keycloak",
                "remove postgres after keycloak",
                "remove vault after keycloak",
                "remove ceph after postgres vault",
            ],
        ),
        ("ceph=healthy keycloak=missing", ["remove keycloak", "remove ceph after keycloak"]),
        ("", []),
    ],
    ids=["whole", "partly gone", "gone"],
)
def test_teardown_is_the_other_way_round(cluster: str, expected: list[str]) -> None:
    plan = plans.plan_teardown(platform(CHAIN), snapshot(cluster), parse_scope("platform"))
    assert steps(plan) == expected
    assert plan.is_empty == (not expected)


def test_what_a_node_left_behind_is_removed_in_its_turn_and_blocks_what_it_depends_on() -> None:
    left = {"postgres": "StatefulSet data/postgres"}
    plan = plans.plan_teardown(platform(CHAIN), snapshot("ceph=healthy"), parse_scope("platform"), left)
    assert steps(plan) == ["remove postgres", "remove ceph after postgres"]
    assert plan.steps[0].why == "its Application is gone, but StatefulSet data/postgres still exists"
    plan = plans.plan_teardown(platform(CHAIN), snapshot("ceph=healthy"), parse_scope("app:ceph"), left)
    assert [each.name for each in plan.unmet] == ["postgres"]


OPERATION_OF_NOW = operation(finished_at=at(-1), started_at=at(-2))


@pytest.mark.parametrize(
    ("seen", "verb", "why"),
    [
        (state(revisions=(OLD,)), Verb.SYNC, "it is at 000000000000, desired is 111111111111"),
        (state(sync=SyncStatus.OUT_OF_SYNC, operation=None), Verb.SYNC, "it is OutOfSync"),
        (state(sync=SyncStatus.OUT_OF_SYNC, operation=operation(revisions=(OLD,))), Verb.SYNC, "it is OutOfSync"),
        (state(sync=SyncStatus.OUT_OF_SYNC, operation=operation(is_partial=True)), Verb.SYNC, "it is OutOfSync"),
        (state(sync=SyncStatus.OUT_OF_SYNC), None, ""),
        (state(sync=SyncStatus.UNKNOWN), Verb.SYNC, "it is Unknown"),
        (state(operation=operation(OperationPhase.FAILED)), Verb.SYNC, "its last operation ended Failed"),
        (
            state(operation=operation(OperationPhase.RUNNING), operation_requested=True),
            Verb.AWAIT,
            "an operation is waiting or running",
        ),
        (state(operation=operation(OperationPhase.RUNNING)), Verb.SYNC, "its last operation was abandoned"),
        (state(Health.PROGRESSING), Verb.AWAIT, "it is Progressing"),
        (state(is_deleting=True), Verb.AWAIT, "it is being deleted"),
        (state(operation=OPERATION_OF_NOW, reconciled_at=at(-1)), Verb.AWAIT, "an operation finished a moment ago"),
        (state(sources=(source("main"),), compared_sources=(source("main"),)), None, ""),
        (state(), None, ""),
    ],
    ids=[
        "other revision", "out of sync", "out of sync at another", "partial sync", "drifting", "unknown", "failed",
        "running", "abandoned", "progressing", "deleting", "just now", "moving", "right",
    ],
)  # fmt: skip
def test_why(seen: ApplicationState, verb: Verb | None, why: str) -> None:
    plan = plans.plan_deploy(platform("vault"), snapshot(vault=seen), parse_scope("platform"))
    assert [(step.verb, step.why) for step in plan.steps] == ([(verb, why)] if verb else [])
    assert len(plan.changes) == (verb is Verb.SYNC)
    assert plan.unchanged == (() if verb else ("vault",))


def test_a_revision_this_run_resolved_wins() -> None:
    plan = plans.plan_deploy(platform("vault"), snapshot("vault=healthy"), parse_scope("platform"), {"vault": (OLD,)})
    assert [step.why for step in plan.steps] == ["it is at 111111111111, desired is 000000000000"]


def test_a_window_of_stability_cannot_be_told_from_one_look() -> None:
    made = platform("vault")
    steady = replace(made.applications["vault"].timing, stability=timedelta(seconds=30))
    made = replace(made, applications={"vault": replace(made.applications["vault"], timing=steady)})
    assert plans.plan_deploy(made, snapshot("vault=healthy"), parse_scope("platform")).is_empty


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({}, ["await ready after ceph", "sync db after ready"]),
        ({"ready": ResourceState(Health.DEGRADED)}, ["await ready after ceph", "sync db after ready"]),
        ({"ready": ResourceState(Health.HEALTHY)}, ["sync db after ceph"]),
    ],
)
def test_a_resource_node_is_awaited_never_synced(seen: dict[str, ResourceState], expected: list[str]) -> None:
    plan = plans.plan_deploy(platform("db: ready+; ready+: ceph"), snapshot("", **seen), parse_scope("platform"))
    assert steps(plan) == ["sync ceph", *expected]


def test_a_resource_node_goes_with_what_made_it() -> None:
    seen = snapshot("ceph=healthy db=healthy", ready=ResourceState(Health.HEALTHY))
    plan = plans.plan_teardown(platform("db: ready+; ready+: ceph"), seen, parse_scope("platform"))
    assert steps(plan) == ["remove db", "remove ceph after db"]


@pytest.mark.parametrize(
    ("cluster", "unmet"),
    [
        ("postgres=healthy vault=healthy", []),
        ("vault=degraded", ["postgres: it does not exist", "vault: it is Degraded"]),
    ],
)
def test_a_scope_names_what_it_needs_from_outside(cluster: str, unmet: list[str]) -> None:
    plan = plans.plan_deploy(platform(CHAIN), snapshot(cluster), parse_scope("app:keycloak"))
    assert steps(plan) == ["sync keycloak"]
    assert [f"{each.name}: {each.why}" for each in plan.unmet] == unmet
    assert all(each.needed_by == ("keycloak",) for each in plan.unmet)
    assert plan.can_run == (not unmet)


def test_what_stands_outside_may_be_at_any_revision() -> None:
    old = state(revisions=(OLD,), sync=SyncStatus.OUT_OF_SYNC)
    plan = plans.plan_deploy(platform("b: a"), snapshot(a=old), parse_scope("app:b"))
    assert plan.can_run


@pytest.mark.parametrize(
    ("text", "there", "expected"),
    [
        (CHAIN, "ceph vault", "vault"),
        ("c: b; b: ceph", "ceph c", "c"),
        ("db: ready+; ready+: ceph", "ceph db", "db"),
        ("db: ready+; ready+: ceph", "ceph", ""),
    ],
    ids=["directly", "through one that is gone", "through a resource", "nothing"],
)
def test_what_stands_outside_keeps_a_teardown_from_beginning(text: str, there: str, expected: str) -> None:
    seen = snapshot(" ".join(f"{name}=healthy" for name in there.split()), ready=ResourceState(Health.HEALTHY))
    plan = plans.plan_teardown(platform(text), seen, parse_scope("app:ceph"))
    assert [(each.name, each.needed_by) for each in plan.unmet] == [(name, ("ceph",)) for name in expected.split()]


def test_an_estimate_is_the_longest_chain_or_the_queue() -> None:
    made = platform(CHAIN, minutes={"ceph": 10, "postgres": 5})
    plan = plans.plan_deploy(made, snapshot(), parse_scope("platform"))
    assert plan.critical_path.names == ("ceph", "postgres", "keycloak")
    assert plan.makespan == plan.critical_path.duration == timedelta(minutes=16)
    narrow = plans.plan_deploy(replace(made, max_parallel=1), snapshot(), parse_scope("platform"))
    assert narrow.makespan == timedelta(minutes=17)


HEALTHS = st.sampled_from([Health.HEALTHY, Health.DEGRADED, None])


def as_platform(made: Graph) -> Platform:
    return platform("\n".join(f"{name}: {' '.join(needed)}" for name, needed in made.dependencies.items()))


def some_cluster(made: Graph, data: st.DataObject) -> Snapshot:
    drawn = {name: data.draw(HEALTHS) for name in made.names}
    return snapshot("", **{name: state(health) for name, health in drawn.items() if health})


@given(graphs(), st.data())
def test_a_plan_has_no_step_before_all_that_it_waits_for(made: Graph, data: st.DataObject) -> None:
    seen = some_cluster(made, data)
    for plan, order in (
        (plans.plan_deploy(as_platform(made), seen, parse_scope("platform")), made),
        (plans.plan_teardown(as_platform(made), seen, parse_scope("platform")), made.reversed()),
    ):
        place = {step.name: number for number, step in enumerate(plan.steps)}
        for step in plan.steps:
            assert set(step.after) <= order.closure([step.name])
            assert all(place[before] < place[step.name] for before in step.after)
        rechecked = {step.name for step in plan.rechecks}
        assert rechecked <= set(plan.unchanged)
        for name in (*place, *rechecked):
            assert plan.graph.closure([name]) == order.closure([name]) & (place.keys() | rechecked)
        assert set(place) | set(plan.unchanged) == set(made.names)


def test_what_is_unchanged_is_checked_again_after_what_it_depends_on_was_synced() -> None:
    made = platform("d: c; c: b; b: a; beside:")
    found = plans.plan_deploy(made, snapshot("b=healthy c=healthy d=healthy beside=healthy"), parse_scope("platform"))
    assert [(step.name, step.verb) for step in found.steps] == [("a", Verb.SYNC)]
    assert [(step.name, step.verb, step.why) for step in found.rechecks] == [
        (name, Verb.RECHECK, "it depends on a, which this run syncs") for name in ("b", "c", "d")
    ]
    assert found.unchanged == ("b", "beside", "c", "d")
    assert found.graph.dependencies == {"a": (), "b": ("a",), "c": ("b",), "d": ("c",)}
    assert found.makespan == found.critical_path.duration == made.applications["a"].timing.expected


@pytest.mark.parametrize("shown", ["a=healthy b=healthy", "a=progressing b=healthy"])
def test_nothing_is_checked_again_where_nothing_is_synced(shown: str) -> None:
    found = plans.plan_deploy(platform("b: a"), snapshot(shown), parse_scope("platform"))
    assert not found.changes
    assert not found.rechecks


@given(graphs(), st.data())
def test_the_same_plan_every_time(made: Graph, data: st.DataObject) -> None:
    seen = some_cluster(made, data)
    one, two = (plans.plan_deploy(as_platform(made), seen, parse_scope("platform")) for _ in range(2))
    assert one == two


def large(applications: int, edges: int) -> str:
    """Each waits for names before it, spread so that the graph is some hundred levels deep."""
    per_node = edges // applications
    lines = []
    for number in range(applications):
        behind = {number - 1 - (number * 7919 + step * 104729) % 60 for step in range(per_node)}
        lines.append(f"app-{number:05}: " + " ".join(f"app-{other:05}" for other in sorted(behind) if other >= 0))
    return "\n".join(lines)


def test_a_plan_of_5000_applications_has_them_all() -> None:
    made = platform(large(5_000, 15_000))
    assert sum(map(len, made.graph.dependencies.values())) > 14_000
    cluster = snapshot("", **dict.fromkeys(made.applications, state(Health.PROGRESSING)))
    for seen in (snapshot(), cluster):
        assert len(plans.plan_deploy(made, seen, parse_scope("platform")).steps) == 5_000


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (state(is_deleting=True), Reason.DELETING),
        (state(operation_requested=True), Reason.OPERATION_RUNNING),
        (state(sources=()), Reason.NOT_COMPARED),
        (state(), None),
    ],
)
def test_why_no_sync_can_be_requested_now(seen: ApplicationState, reason: Reason | None) -> None:
    wait = plans.wait_before_sync(seen, (OLD,))
    assert (wait.reason if wait else None) is reason
