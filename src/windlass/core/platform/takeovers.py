"""Changes by other clients: what makes a sync, a wait or an open gate void, so that the node must be looked at anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.freshness import may_predate_sync
from windlass.core.platform.gate_values import Failed, Reason, RefreshNeeded, Wait, abbreviate
from windlass.core.platform.gates import describe_foreign_operation, shown_operation
from windlass.core.platform.model.snapshots import ApplicationState, NodeState, OperationPhase, SyncStatus
from windlass.core.platform.planning.plans import sync_reason

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.core.platform.gate_values import GateHistory, GateTarget


def check_gate_takeover(target: GateTarget, history: GateHistory, now: datetime) -> Failed | RefreshNeeded | None:
    """Failure or refresh if another client changed, during the gate, what the gate was to judge."""
    state, initial = history.latest, history.initial
    assert isinstance(initial, ApplicationState)
    if why := _identity_change(initial, state):
        return Failed(Reason.OVERTAKEN, why)
    assert isinstance(state, ApplicationState)
    if target.run_id is None and (why := _sync_reason_while_awaited(target, history, state, now)):
        return Failed(Reason.OVERTAKEN, why)
    return _check_moved_revision(target, history, state)


def check_takeover_since_gate(opened: ApplicationState, state: NodeState | None, run_id: str) -> Failed | Wait | None:
    """Failure if another client changed the node after its gate had opened on `opened`.

    A commit that was pushed since is no change: what the run resolved is deployed. Neither is what Argo CD does by
    itself at the same revisions (self-heal), or at newer ones where it syncs the Application automatically.
    """
    if why := _identity_change(opened, state):
        return Failed(Reason.OVERTAKEN, why)
    assert isinstance(state, ApplicationState)
    operation = state.operation
    if state.operation_requested:
        is_ours = state.requesting_run_id == run_id  # the sync of a child through its parent
        return None if is_ours else Wait(Reason.OPERATION_RUNNING, "another client's operation waits or runs")
    if operation is None or operation == opened.operation or operation.run_id == run_id:
        return None
    if not operation.is_finished:
        return Wait(Reason.OPERATION_RUNNING, "another client's operation is not over")
    has_succeeded = operation.phase is OperationPhase.SUCCEEDED
    has_same_revisions = operation.revisions == opened.revisions
    detail = describe_foreign_operation(operation)
    if operation.is_automated and (has_same_revisions or state.is_automated):
        return None if has_succeeded else Wait(Reason.OPERATION_FAILED, detail)
    is_same_sync = has_succeeded and has_same_revisions and not operation.is_partial
    return None if is_same_sync else Failed(Reason.OVERTAKEN, detail)


def needs_sync(state: ApplicationState, desired: tuple[str, ...]) -> bool:
    """Whether a node that another client overtook needs a sync although Argo CD shows it as Synced.

    The comparison may be of a cache from before that client's operation; only a full sync of these revisions proves it.
    """
    operation = state.operation
    is_full_sync = operation is not None and not operation.is_partial and operation.revisions == desired
    return not is_full_sync


def _identity_change(before: ApplicationState, state: NodeState | None) -> str:
    """Why the Application is not the same one any more, or not as it was defined; empty if it is."""
    if not isinstance(state, ApplicationState):
        return "it was deleted"
    if state.uid != before.uid:
        return "it was deleted and created again"
    return "its definition has changed" if state.sources != before.sources else ""


def _sync_reason_while_awaited(target: GateTarget, history: GateHistory, state: ApplicationState, now: datetime) -> str:
    """Why a node that is only awaited may need a sync after all; empty if waiting is enough.

    An operation of another client that ended since proves nothing about what it did not sync. A full sync of the wanted
    revisions, and what Argo CD does by itself, are judged by the next comparison.
    """
    operation = state.operation
    if operation is None or state.operation_requested or state.refresh_requested or state.revisions != target.revisions:
        return ""
    is_full_sync = not operation.is_partial and operation.revisions == target.revisions
    is_new = operation != shown_operation(history.initial) and operation.is_finished
    is_ours = operation.run_id is not None  # only this run holds the lock: it has synced a child
    if is_new and not (operation.is_automated or is_full_sync or is_ours):
        return describe_foreign_operation(operation)
    if state.sync is SyncStatus.UNKNOWN or may_predate_sync(history, state, now):
        return ""
    return sync_reason(state, target.revisions)


def _check_moved_revision(
    target: GateTarget, history: GateHistory, state: ApplicationState
) -> Failed | RefreshNeeded | None:
    """Failure or refresh if a branch or tag has moved, so that this sync can no longer be verified."""
    if not state.has_mutable_revision or state.refresh_requested or state.revisions == target.revisions:
        return None
    detail = f"what it follows has moved to {abbreviate(state.revisions)}"
    if target.run_id is None:
        return Failed(Reason.OVERTAKEN, detail)
    if history.succeeded_since is None or state.revisions in history.earlier_revisions:
        return None
    return Failed(Reason.OVERTAKEN, detail) if history.was_refreshed else RefreshNeeded(Reason.OVERTAKEN, detail)
