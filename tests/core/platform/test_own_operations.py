"""Only the operation of the run itself opens a gate; Argo CD may repair what that one synced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import OLD, at, state
from tests.core.platform.test_gates import OURS, done, judged, proof_of, seen, shown
from windlass.core.platform import gates, takeovers
from windlass.core.platform.gate_values import Failed, Proof, Reason, Wait
from windlass.core.platform.model.snapshots import ApplicationState, Operation, OperationPhase


@pytest.mark.parametrize(
    ("each", "reason", "detail"),
    [
        (
            shown(operation=done(revisions=(), run_id=None, started_by="eve")),
            Reason.OVERTAKEN,
            "an operation by eve ended Succeeded at nothing",
        ),
        (
            shown(operation=done(phase=OperationPhase.FAILED, run_id=None)),
            Reason.OVERTAKEN,
            "an operation by another client ended Failed at 111111111111",
        ),
        (
            shown(operation=done(run_id=None, started_by="eve")),
            Reason.OVERTAKEN,
            "an operation by eve ended Succeeded at 111111111111",
        ),
        (
            shown(operation=done(run_id=None, started_by="eve", is_partial=True)),
            Reason.OVERTAKEN,
            "a sync of selected resources by eve ended Succeeded at 111111111111",
        ),
        (
            shown(operation=done(run_id=None, started_by="automated sync", is_automated=True)),
            Reason.OVERTAKEN,
            "an operation by automated sync ended Succeeded at 111111111111",
        ),
        (
            shown(operation=done(phase=OperationPhase.FAILED, message="Operation terminated")),
            Reason.OVERTAKEN,
            "another client terminated the operation",
        ),
        (
            shown(operation=done(phase=OperationPhase.FAILED, message="Operation terminated (controller timeout)")),
            Reason.OPERATION_FAILED,
            "the operation ended Failed: Operation terminated (controller timeout)",
        ),
    ],
)
def test_what_another_client_did_opens_nothing(each: ApplicationState, reason: Reason, detail: str) -> None:
    assert judged(each) == Failed(reason, detail)


HEALING = done(run_id=None, is_automated=True, is_partial=True, started_at=at(4), finished_at=at(5))


@pytest.mark.parametrize(
    ("healing", "opens"),
    [
        (HEALING, True),
        (replace(HEALING, revisions=(OLD,)), False),
        (replace(HEALING, is_automated=False, started_by="eve"), False),
        (replace(HEALING, phase=OperationPhase.FAILED), False),
    ],
)
def test_self_heal_of_what_our_operation_synced_does_not_overtake_it(healing: Operation, opens: bool) -> None:
    """It is compared after it, as after our own."""
    running = shown(
        operation=replace(healing, phase=OperationPhase.RUNNING, finished_at=None), operation_requested=True
    )
    history = seen((3, shown()), (4, running), (7, shown(operation=healing, reconciled_at=at(6))))
    decision = gates.evaluate_gate(OURS, history, at(7))
    if opens:
        assert proof_of(decision) is Proof.LATER_COMPARISON
    else:
        assert isinstance(decision, Failed)
        assert decision.reason is Reason.OVERTAKEN


def test_the_operation_of_an_earlier_attempt_is_not_ours() -> None:
    """It carries the id of this run, too; only what was requested since opens the gate."""
    before = state(operation=done())
    decision = judged(replace(before, reconciled_at=at(3)), before=before)
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.OPERATION_NOT_SEEN


@pytest.mark.parametrize(
    ("operation", "needs_sync"),
    [
        (None, True),
        (done(run_id=None, started_by="eve", revisions=(OLD,)), True),
        (done(run_id=None, started_by="eve", is_partial=True), True),
        (done(run_id=None, started_by="eve"), False),
    ],
)
def test_a_node_that_was_overtaken_needs_a_sync_unless_the_other_client_synced_all_of_it(
    operation: Operation | None, needs_sync: bool
) -> None:
    assert takeovers.needs_sync(shown(operation=operation), OURS.revisions) is needs_sync
