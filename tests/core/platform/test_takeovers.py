"""What another client does to a node during its gate or after it: tables of what counts, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import NEW, NOW, OLD, at, operation, source, state
from windlass.core.platform import gates, takeovers
from windlass.core.platform.gate_values import Failed, GateTarget, Open, Reason, RefreshNeeded, Wait
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    NodeState,
    OperationPhase,
    ResourceState,
    SyncStatus,
)

AWAITED = GateTarget((NEW,), (source(),), NodeTiming())
OURS = replace(AWAITED, run_id="run-1")
BRANCH = source("main")
OPENED = state(uid="1", operation=operation(run_id="run-1"))
DRIFT, NEVER = SyncStatus.OUT_OF_SYNC, SyncStatus.UNKNOWN
FAILED, ERROR, RUNNING = OperationPhase.FAILED, OperationPhase.ERROR, OperationPhase.RUNNING


def theirs(phase: OperationPhase = OperationPhase.SUCCEEDED, second: float = 5, **changes: Any) -> Any:
    finished = None if phase is RUNNING else at(second)
    return operation(phase, started_at=at(second - 2), finished_at=finished, run_id=None, started_by="eve", **changes)


SELECTIVE, ROLLBACK, FULL = theirs(is_partial=True), theirs(revisions=(OLD,)), theirs()
HEALING = replace(theirs(is_partial=True), started_by="", is_automated=True)
TERMINATED = theirs(FAILED, message="Operation terminated")


def during(each: NodeState | None, target: GateTarget = AWAITED, initial: ApplicationState = OPENED) -> Any:
    history = gates.extend_history(gates.start_history(initial, NOW), each, at(19))
    decision = takeovers.check_gate_takeover(target, history, at(20))
    return decision or gates.evaluate_gate(target, history, at(20))


@pytest.mark.parametrize("target", [AWAITED, OURS], ids=["awaited", "synced"])
@pytest.mark.parametrize(
    ("each", "detail"),
    [
        (None, "it was deleted"),
        (replace(OPENED, uid="2"), "it was deleted and created again"),
        (replace(OPENED, sources=(source(OLD),)), "its definition has changed"),
    ],
)
def test_another_application_than_the_one_that_was_synced_is_looked_at_anew(
    each: NodeState | None, detail: str, target: GateTarget
) -> None:
    assert during(each, target) == Failed(Reason.OVERTAKEN, detail)


@pytest.mark.parametrize(
    ("last", "changes", "expected"),
    [
        # The last operation was there before the wait: the full comparison decides.
        (None, {}, Open),
        (None, {"sync": DRIFT}, Open),  # drift after a full sync is only reported
        # It ended during the wait.
        (FULL, {"reconciled_at": at(6)}, Open),
        (FULL, {"reconciled_at": at(6), "sync": DRIFT}, Open),
        (HEALING, {"reconciled_at": at(6)}, Open),
        (HEALING, {"reconciled_at": at(6), "sync": DRIFT}, "it is OutOfSync"),
        (SELECTIVE, {"reconciled_at": at(6)}, "a sync of selected resources by eve ended Succeeded at 111111111111"),
        (ROLLBACK, {"reconciled_at": at(6)}, "an operation by eve ended Succeeded at 000000000000"),
        (TERMINATED, {"reconciled_at": at(6)}, "its last operation ended Failed"),
        (theirs(ERROR, is_partial=True), {}, "a sync of selected resources by eve ended Error at 111111111111"),
        # It has not ended, or what it did has not been compared.
        (theirs(RUNNING), {"operation_requested": True}, Wait),
        (theirs(RUNNING), {}, "its last operation was abandoned"),
        (theirs(second=19, is_automated=True), {"reconciled_at": at(1), "sync": DRIFT}, Wait),
        (SELECTIVE, {"refresh_requested": True}, Wait),
        (FULL, {"sync": NEVER}, Wait),
        (FULL, {"revisions": (OLD,)}, Wait),
    ],
)
def test_a_node_that_is_only_awaited(last: Any, changes: dict[str, Any], expected: Any) -> None:
    found = during(replace(OPENED, **({"operation": last} if last else {}), **changes))
    if isinstance(expected, str):
        assert found == Failed(Reason.OVERTAKEN, expected)
    else:
        assert isinstance(found, expected), found


def test_what_was_synced_selectively_before_is_awaited_if_the_comparison_is_right() -> None:
    before = replace(
        OPENED, operation=replace(SELECTIVE, started_at=at(-30), finished_at=at(-28)), reconciled_at=at(-20)
    )
    assert isinstance(during(before, initial=before), Open)
    drifting = replace(before, sync=DRIFT)
    assert during(drifting, initial=before) == Failed(Reason.OVERTAKEN, "it is OutOfSync")


@pytest.mark.parametrize("target", [AWAITED, OURS], ids=["awaited", "synced"])
def test_a_branch_that_moved(target: GateTarget) -> None:
    target = replace(target, sources=(BRANCH,))
    opened = replace(OPENED, sources=(BRANCH,), compared_sources=(BRANCH,), revisions=(NEW,))
    moved = replace(opened, revisions=("2" * 40,), operation=operation(run_id="run-1", started_at=at(1)))
    found = during(moved, target, opened)
    assert isinstance(found, Failed if target.run_id is None else RefreshNeeded)
    assert found.reason is Reason.OVERTAKEN


def test_a_branch_that_had_moved_before_the_sync_or_moves_again_after_a_refresh() -> None:
    target = replace(OURS, sources=(BRANCH,))
    opened = replace(OPENED, sources=(BRANCH,), compared_sources=(BRANCH,), revisions=(OLD,))
    done = replace(opened, operation=operation(run_id="run-1", started_at=at(1)))
    history = gates.extend_history(gates.start_history(opened, NOW), done, at(6))
    assert takeovers.check_gate_takeover(target, history, at(6)) is None, "it was compared before the sync"
    running = gates.start_history(opened, NOW)
    assert takeovers.check_gate_takeover(target, running, at(6)) is None, "the sync has not ended"
    moved = replace(done, revisions=("2" * 40,))
    for each in (moved, replace(moved, refresh_requested=True), moved):
        history = gates.extend_history(history, each, at(7))
    assert isinstance(takeovers.check_gate_takeover(target, history, at(8)), Failed)


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (OPENED, None),
        (replace(OPENED, operation=None), None),
        (replace(OPENED, sync=DRIFT), None),
        (replace(OPENED, revisions=("2" * 40,), sync=DRIFT), None),
        (None, "it was deleted"),
        (ResourceState(), "it was deleted"),
        (replace(OPENED, uid="2"), "it was deleted and created again"),
        (replace(OPENED, sources=(source(OLD),)), "its definition has changed"),
        (replace(OPENED, operation_requested=True), Wait),
        (replace(OPENED, operation=theirs(RUNNING)), Wait),
        (replace(OPENED, operation=theirs(is_partial=True, message="x")), "a sync of selected resources by eve"),
        (replace(OPENED, operation=ROLLBACK), "an operation by eve ended Succeeded at 000000000000"),
        (replace(OPENED, operation=TERMINATED), "an operation by eve ended Failed"),
        (replace(OPENED, operation=FULL), None),
        (replace(OPENED, operation=replace(ROLLBACK, run_id="run-1")), None),
        (replace(OPENED, operation=HEALING), None),
        (replace(OPENED, operation=replace(HEALING, phase=FAILED)), Wait),
        (
            replace(OPENED, operation=replace(HEALING, revisions=(OLD,))),
            "a sync of selected resources by another client",
        ),
        (replace(OPENED, operation=replace(HEALING, revisions=(OLD,)), is_automated=True), None),
    ],
)
def test_after_the_gate(each: NodeState | None, expected: Any) -> None:
    found = takeovers.check_takeover_since_gate(OPENED, each, "run-1")
    if isinstance(expected, str):
        assert isinstance(found, Failed)
        assert found.reason is Reason.OVERTAKEN
        assert found.detail.startswith(expected)
    else:
        assert found is None if expected is None else isinstance(found, expected)
