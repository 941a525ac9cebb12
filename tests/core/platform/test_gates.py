"""The gate never opens on stale health: tables state each rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import NEW, NOW, OLD, at, operation, seconds, source, state
from windlass.core.platform import gates
from windlass.core.platform.gate_values import (
    Evidence,
    Failed,
    GateDecision,
    GateHistory,
    GateTarget,
    Open,
    Proof,
    Reason,
    RefreshNeeded,
    Wait,
)
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    Condition,
    NodeState,
    Operation,
    OperationPhase,
    ResourceState,
    SyncStatus,
)

PATIENCE = NodeTiming(sync=seconds(300), health=seconds(300), degraded_grace=seconds(30))
OURS = GateTarget((NEW,), (source(),), PATIENCE, run_id="run-1")
LOOKING = replace(OURS, run_id=None)
BEFORE = state(revisions=(OLD,), sources=(source(OLD),), compared_sources=(source(OLD),), operation=None)
RESYNCED = state(operation=operation(run_id="run-0"))


def done(**changes: Any) -> Operation:
    """Our operation, two seconds long, finished at second 2."""
    return operation(**{"run_id": "run-1", "started_at": at(0), "finished_at": at(2), **changes})


def shown(health: Health = Health.HEALTHY, **changes: Any) -> ApplicationState:
    return state(health, **{"operation": done(), "reconciled_at": at(2), **changes})


def seen(*states: tuple[float, NodeState | None], before: NodeState | None = BEFORE) -> GateHistory:
    found = gates.start_history(before, NOW)
    for second, each in states:
        found = gates.extend_history(found, each, at(second))
    return found


def judged(
    each: NodeState | None, wanted: GateTarget = OURS, before: NodeState | None = BEFORE, second: float = 3
) -> GateDecision:
    return gates.evaluate_gate(wanted, seen((second, each), before=before), at(second))


def proof_of(judgement: GateDecision) -> Proof | None:
    assert isinstance(judgement, Open), judgement
    return judgement.evidence.proof


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        (None, Reason.ABSENT),
        (BEFORE, Reason.OPERATION_NOT_SEEN),
        (replace(BEFORE, operation_requested=True), Reason.OPERATION_REQUESTED),
        (shown(operation=done(phase=OperationPhase.RUNNING, finished_at=None)), Reason.OPERATION_RUNNING),
        (shown(operation=done(phase=OperationPhase.TERMINATING, finished_at=None)), Reason.OPERATION_RUNNING),
        (shown(operation_requested=True), Reason.OPERATION_REQUESTED),
        (shown(revisions=(OLD,)), Reason.NOT_COMPARED),
        (shown(compared_sources=(source(OLD),)), Reason.NOT_COMPARED),
        (shown(sync=SyncStatus.UNKNOWN), Reason.NOT_COMPARED),
        (shown(reconciled_at=at(1)), Reason.NOT_FRESH),
        (shown(reconciled_at=None), Reason.NOT_FRESH),
        (shown(operation=done(finished_at=None)), Reason.NOT_FRESH),
        (shown(refresh_requested=True), Reason.NOT_FRESH),
        (shown(conditions=(Condition("ComparisonError", "no such path"),)), Reason.ERROR_CONDITION),
        (shown(Health.PROGRESSING), Reason.PROGRESSING),
        (shown(Health.DEGRADED), Reason.DEGRADED),
        (shown(Health.SUSPENDED), Reason.SUSPENDED),
        (shown(Health.MISSING), Reason.MISSING),
        (shown(Health.UNKNOWN), Reason.UNKNOWN),
        (ResourceState(Health.FAILED), Reason.FAILED),
    ],
)
def test_what_it_waits_for(each: NodeState | None, reason: Reason) -> None:
    judgement = judged(each)
    assert isinstance(judgement, Wait)
    assert judgement.reason is reason


DENIED = "user bob may not get pods in namespace a"


@pytest.mark.parametrize(
    "each", [shown(Health.UNKNOWN, missing_right=DENIED), ResourceState(Health.UNKNOWN, missing_right=DENIED)]
)
def test_a_missing_right_is_not_waited_for(each: NodeState) -> None:
    judgement = judged(each)
    assert isinstance(judgement, Failed)
    assert (judgement.reason, judgement.is_final) == (Reason.RIGHT_MISSING, True)
    assert judgement.detail == f"it is Unknown: {DENIED}"


def test_what_is_degraded_as_well_has_its_grace_period() -> None:
    judgement = judged(shown(Health.DEGRADED, missing_right=DENIED))
    assert isinstance(judgement, Wait)
    assert judgement.reason is Reason.DEGRADED


def test_a_new_revision_that_is_in_sync_needs_no_more_than_the_same_second() -> None:
    judgement = judged(shown())
    assert isinstance(judgement, Open)
    assert judgement.evidence == Evidence(
        judged_at=at(3),
        health=Health.HEALTHY,
        sync=SyncStatus.SYNCED,
        wanted=(NEW,),
        shown=(NEW,),
        operation="Succeeded run-1",
        reconciled_at=at(2),
        proof=Proof.NEW_REVISION,
    )


@pytest.mark.parametrize("first", [None, BEFORE], ids=["it was just created", "it was at another revision"])
def test_a_revision_is_new_whatever_was_there_before(first: NodeState | None) -> None:
    assert proof_of(judged(shown(), before=first)) is Proof.NEW_REVISION


INCOMPLETE = replace(RESYNCED, operation=None, health=Health.MISSING, sync=SyncStatus.OUT_OF_SYNC)


@pytest.mark.parametrize("looked", [1, 2, 3])
@pytest.mark.parametrize(
    "first",
    [
        INCOMPLETE,
        replace(INCOMPLETE, revisions=(), compared_sources=(), health=Health.UNKNOWN, sync=SyncStatus.UNKNOWN),
    ],
    ids=["something was missing", "it was never compared"],
)
def test_of_what_was_incomplete_nobody_could_say_earlier_that_it_is_well(looked: int, first: ApplicationState) -> None:
    each = shown(reconciled_at=at(looked))
    assert proof_of(judged(each, before=first)) is Proof.FIRST_VERDICT
    assert isinstance(judged(replace(each, health=Health.PROGRESSING), before=first), Wait)
    assert not isinstance(judged(replace(each, sync=SyncStatus.OUT_OF_SYNC), before=first), Open), (
        "some of it may be missing"
    )


@pytest.mark.parametrize(
    "first",
    [replace(INCOMPLETE, revisions=("elsewhere",)), replace(INCOMPLETE, operation=RESYNCED.operation)],
    ids=["of another revision", "when another operation had not ended"],
)
def test_what_was_missing_then_may_have_been_there_or_not_be_wanted(first: ApplicationState) -> None:
    found = judged(shown(reconciled_at=at(1)), before=first)
    assert not isinstance(found, Open)


def test_the_same_revision_again_needs_a_later_comparison() -> None:
    assert proof_of(judged(shown(reconciled_at=at(3)), before=RESYNCED)) is Proof.LATER_COMPARISON


def test_on_a_tie_a_refresh_is_asked_for_and_its_end_is_the_proof() -> None:
    tie = shown()
    found = seen((2.5, tie), before=RESYNCED)
    assert isinstance(gates.evaluate_gate(OURS, found, at(2.5)), RefreshNeeded)
    found = gates.extend_history(found, shown(refresh_requested=True), at(2.6))
    assert isinstance(gates.evaluate_gate(OURS, found, at(2.6)), Wait)
    found = gates.extend_history(found, tie, at(3))
    assert proof_of(gates.evaluate_gate(OURS, found, at(3))) is Proof.REFRESHED


def test_a_refresh_that_somebody_asked_for_before_the_end_proves_nothing() -> None:
    waiting = shown(refresh_requested=True)
    found = seen((2.5, waiting), (2.6, replace(waiting, health_message="new")), (3, shown()), before=RESYNCED)
    assert isinstance(gates.evaluate_gate(OURS, found, at(3)), RefreshNeeded)


def test_a_revision_that_showed_up_while_the_operation_ran_is_not_new() -> None:
    during = shown(sync=SyncStatus.OUT_OF_SYNC, operation=done(phase=OperationPhase.RUNNING, finished_at=None))
    found = seen((1, during), (2.5, shown()))
    assert isinstance(gates.evaluate_gate(OURS, found, at(2.5)), RefreshNeeded)


def test_out_of_sync_in_the_same_second_may_be_a_comparison_from_before() -> None:
    assert isinstance(judged(shown(sync=SyncStatus.OUT_OF_SYNC)), RefreshNeeded)


def test_out_of_sync_later_is_drift_and_opens() -> None:
    found = seen((3, shown(sync=SyncStatus.OUT_OF_SYNC, reconciled_at=at(3))))
    early, judgement = gates.evaluate_gate(OURS, found, at(12)), gates.evaluate_gate(OURS, found, at(12.1))
    assert isinstance(early, Wait), "it may have been compared without what the sync did"
    assert isinstance(judgement, Open)
    assert judgement.evidence.is_drifting


@pytest.mark.parametrize("each", [shown(revisions=(OLD,)), shown(reconciled_at=at(1)), shown(compared_sources=())])
def test_a_comparison_that_does_not_come_is_asked_for_once(each: ApplicationState) -> None:
    found = seen((2, each))
    assert isinstance(gates.evaluate_gate(OURS, found, at(12)), Wait)
    assert isinstance(gates.evaluate_gate(OURS, found, at(12.1)), RefreshNeeded)
    found = gates.extend_history(found, replace(each, refresh_requested=True), at(12.2))
    assert isinstance(gates.evaluate_gate(OURS, found, at(12.2)), Wait)
    found = gates.extend_history(found, each, at(13))
    assert isinstance(gates.evaluate_gate(OURS, found, at(13)), Wait)


@pytest.mark.parametrize(
    ("each", "reason", "detail"),
    [
        (shown(is_deleting=True), Reason.DELETING, "it is being deleted"),
        (
            shown(operation=done(phase=OperationPhase.FAILED, message="no namespace")),
            Reason.OPERATION_FAILED,
            "the operation ended Failed: no namespace",
        ),
        (shown(operation=done(phase=OperationPhase.ERROR)), Reason.OPERATION_FAILED, "the operation ended Error"),
        (
            shown(operation=done(revisions=(OLD,))),
            Reason.WRONG_REVISION,
            "the operation ended at 000000000000, desired is 111111111111",
        ),
    ],
)
def test_what_fails_at_once(each: NodeState, reason: Reason, detail: str) -> None:
    assert judged(each) == Failed(reason, detail)


def test_all_revisions_of_many_sources_count() -> None:
    two = replace(OURS, revisions=(NEW, OLD), sources=(source(), source(OLD)))
    good: dict[str, Any] = {
        "sources": two.sources,
        "compared_sources": two.sources,
        "operation": done(revisions=(NEW, OLD)),
    }
    assert isinstance(judged(shown(revisions=(NEW, OLD), **good), two), Open)
    half = judged(shown(revisions=(NEW, NEW), **good), two)
    assert isinstance(half, Wait)
    assert half.reason is Reason.NOT_COMPARED
    assert isinstance(judged(shown(revisions=(NEW, OLD), **{**good, "operation": done()}), two), Failed)


def test_degraded_waits_out_its_grace_from_the_end_of_the_sync() -> None:
    sick = shown(Health.DEGRADED, health_message="0 of 1 ready")
    found = seen((3, sick), before=state(Health.DEGRADED, operation=None))
    assert isinstance(gates.evaluate_gate(OURS, replace(found, earlier_revisions=frozenset()), at(32.9)), Wait)
    judgement = gates.evaluate_gate(OURS, replace(found, earlier_revisions=frozenset()), at(33))
    assert isinstance(judgement, Failed)
    assert (judgement.reason, judgement.detail) == (Reason.DEGRADED, "it is Degraded: 0 of 1 ready")
    assert judgement.evidence
    assert judgement.evidence.health is Health.DEGRADED


def test_a_recovery_starts_the_grace_anew() -> None:
    found = seen((3, shown(Health.DEGRADED)), (20, shown(Health.PROGRESSING)), (30, shown(Health.DEGRADED)))
    assert isinstance(gates.evaluate_gate(OURS, found, at(59)), Wait)
    assert isinstance(gates.evaluate_gate(OURS, found, at(60)), Failed)


def test_an_error_condition_waits_out_the_same_grace_and_is_told() -> None:
    broken = shown(conditions=(Condition("ComparisonError", "no such path"), Condition("OrphanedResourceWarning")))
    judgement = gates.evaluate_gate(OURS, seen((3, broken)), at(33))
    assert isinstance(judgement, Failed)
    assert (judgement.reason, judgement.detail) == (Reason.ERROR_CONDITION, "ComparisonError: no such path")


def test_an_error_of_before_the_sync_counts_only_if_a_refresh_finds_it_again() -> None:
    broken = replace(RESYNCED, conditions=(Condition("ComparisonError", "no such path"),))
    still = shown(conditions=broken.conditions)
    found = seen((3, still), before=broken)
    assert gates.evaluate_gate(OURS, found, at(33)) == RefreshNeeded(
        Reason.ERROR_CONDITION, "ComparisonError: no such path"
    )
    found = gates.extend_history(found, replace(still, refresh_requested=True), at(33))
    assert gates.evaluate_gate(OURS, found, at(34)) == Wait(Reason.NOT_FRESH, "a refresh is under way")
    found = gates.extend_history(found, still, at(35))
    assert isinstance(gates.evaluate_gate(OURS, found, at(36)), Failed)


def test_a_warning_is_no_error() -> None:
    assert isinstance(judged(shown(conditions=(Condition("OrphanedResourceWarning"),))), Open)


def test_healthy_must_hold_for_the_window_after_the_sync() -> None:
    steady = replace(OURS, timing=replace(PATIENCE, stability=seconds(10)))
    found = seen((3, shown()))
    judgement = gates.evaluate_gate(steady, found, at(9))
    assert judgement == Wait(Reason.NOT_STABLE, "Healthy for 6 s of 10 s")
    assert isinstance(gates.evaluate_gate(steady, found, at(13)), Open)
    found = gates.extend_history(gates.extend_history(found, shown(Health.PROGRESSING), at(14)), shown(), at(15))
    assert isinstance(gates.evaluate_gate(steady, found, at(24)), Wait)


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        (shown(Health.SUSPENDED), Reason.SUSPENDED),
        (shown(Health.MISSING), Reason.MISSING),
        (shown(Health.UNKNOWN), Reason.UNKNOWN),
        (shown(Health.PROGRESSING), Reason.NO_ACTIVITY),
        (shown(revisions=(OLD,), refresh_requested=True), Reason.NOT_FRESH),
    ],
)
def test_at_the_timeout_each_has_its_own_reason(each: NodeState, reason: Reason) -> None:
    found = seen((3, each))
    assert isinstance(gates.evaluate_gate(OURS, found, at(302)), Wait)
    judgement = gates.evaluate_gate(OURS, found, at(303))
    assert isinstance(judgement, Failed)
    assert judgement.reason is reason
    assert "after 300 s; last change 300 s ago" in judgement.detail


def test_slow_is_told_apart_from_stuck() -> None:
    found = seen((3, shown(Health.PROGRESSING)), (250, shown(Health.PROGRESSING, health_message="2 of 3")))
    judgement = gates.evaluate_gate(OURS, found, at(303))
    assert isinstance(judgement, Failed)
    assert judgement.reason is Reason.OUT_OF_TIME
    assert judgement.detail.startswith("it is Progressing: 2 of 3, after")


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        (None, Reason.ABSENT),
        (BEFORE, Reason.OPERATION_NOT_SEEN),
        (shown(operation=done(phase=OperationPhase.RUNNING, finished_at=None)), Reason.NO_ACTIVITY),
    ],
)
def test_a_sync_has_its_own_limit(each: NodeState | None, reason: Reason) -> None:
    hasty = replace(OURS, timing=replace(PATIENCE, sync=seconds(150)))
    found = seen((3, each))
    assert isinstance(gates.evaluate_gate(hasty, found, at(149)), Wait)
    judgement = gates.evaluate_gate(hasty, found, at(150))
    assert isinstance(judgement, Failed)
    assert judgement.reason is reason


@pytest.mark.parametrize(
    ("each", "proof"),
    [
        (state(), Proof.LATER_COMPARISON),
        (state(operation=None), Proof.UNTOUCHED),
        (state(reconciled_at=at(-60)), Proof.SETTLED),
        (state(reconciled_at=None), Proof.SETTLED),
    ],
)
def test_who_only_looks_needs_no_refresh(each: NodeState, proof: Proof) -> None:
    assert proof_of(gates.evaluate_gate(LOOKING, gates.start_history(each, NOW), NOW)) is proof


def test_who_only_looks_waits_until_a_verdict_is_settled() -> None:
    just = state(operation=operation(finished_at=at(-10)), reconciled_at=at(-10))
    assert isinstance(gates.evaluate_gate(LOOKING, gates.start_history(just, NOW), NOW), Wait)
    assert proof_of(gates.evaluate_gate(LOOKING, gates.start_history(just, at(0.1)), at(0.1))) is Proof.SETTLED


def test_another_cluster_is_marked_as_not_verified_by_us() -> None:
    judgement = judged(shown(is_remote=True))
    assert isinstance(judgement, Open)
    assert not judgement.evidence.is_directly_verified


def test_a_resource_node_is_judged_by_itself() -> None:
    assert proof_of(judged(ResourceState(Health.HEALTHY), LOOKING)) is Proof.DIRECT
    assert isinstance(judged(ResourceState(Health.DEGRADED), LOOKING), Wait)


@pytest.mark.parametrize(
    ("each", "second", "reason"),
    [
        (shown(), 10, None),
        (shown(is_deleting=True), 10, None),
        (shown(), 150, Reason.PRESENT),
        (shown(is_deleting=True), 150, Reason.NO_ACTIVITY),
    ],
)
def test_a_removal_waits_for_absence(each: NodeState, second: float, reason: Reason | None) -> None:
    judgement = gates.evaluate_absence(seen((3, each)), seconds(150), at(second))
    if reason is None:
        assert isinstance(judgement, Wait)
    else:
        assert isinstance(judgement, Failed)
        assert judgement.reason is reason


def test_what_is_gone_opens_the_gate_of_a_removal() -> None:
    assert proof_of(gates.evaluate_absence(seen((3, None)), seconds(1), at(9))) is Proof.ABSENT
