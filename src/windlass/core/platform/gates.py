"""The gate of a node: whether its dependents may start. It opens only on proof that the reported health is fresh.

The first status that says Succeeded still carries the health from before the sync. A health status therefore needs
proof that Argo CD computed it after the sync, for the desired revisions and sources.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from windlass.core.platform.freshness import freshness_proof, may_predate_sync
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
    abbreviate,
)
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    NodeState,
    Operation,
    OperationPhase,
    ResourceState,
    SyncStatus,
)

if TYPE_CHECKING:
    from windlass.core.platform.model.applications import NodeTiming

STUCK_AFTER = timedelta(minutes=2)  # no change for this long: stuck, not slow


_PROGRESS_REASONS = {Reason.PROGRESSING, Reason.OPERATION_RUNNING, Reason.OPERATION_REQUESTED, Reason.DELETING}


def current_target(state: NodeState | None, timing: NodeTiming) -> GateTarget:
    """Target for checking health only, at the revisions that the node shows now."""
    if isinstance(state, ApplicationState):
        return GateTarget(state.revisions, state.compared_sources, timing)
    return GateTarget((), (), timing)


def start_history(state: NodeState | None, now: datetime) -> GateHistory:
    return extend_history(GateHistory(initial=state, started=now, last_change=now, latest=state), state, now)


def extend_history(history: GateHistory, state: NodeState | None, now: datetime) -> GateHistory:
    succeeded = _has_succeeded(history, state)
    new_refresh = history.succeeded_since is not None and _is_refreshing(state) and not _is_refreshing(history.latest)
    earlier = history.earlier_revisions
    if isinstance(state, ApplicationState) and not succeeded:
        earlier |= {state.revisions}
    return replace(
        history,
        latest=state,
        last_change=history.last_change if state == history.latest else now,
        earlier_revisions=earlier,
        succeeded_since=(history.succeeded_since or now) if succeeded else None,
        own_success=history.own_success or (_own_operation(state) if succeeded else None),
        healthy_since=(history.healthy_since or now) if state and state.health is Health.HEALTHY else None,
        degraded_since=(history.degraded_since or now) if state and is_degraded(state) else None,
        operation_since=(history.operation_since or now)
        if shown_operation(state) == shown_operation(history.latest)
        else now,
        was_refreshed=succeeded and (history.was_refreshed or new_refresh),
        compared_before_refresh=_shown_comparison(state) if new_refresh else history.compared_before_refresh,
    )


def _has_succeeded(history: GateHistory, state: NodeState | None) -> bool:
    """Whether this run, or Argo CD itself, synced the node since the initial state.

    Ignore the operation of the initial state: right after a request Argo CD still shows the previous operation.
    """
    if not isinstance(state, ApplicationState) or state.operation is None or state.operation_requested:
        return False
    operation = state.operation
    is_new_success = operation.phase is OperationPhase.SUCCEEDED and operation != shown_operation(history.initial)
    return is_new_success and (operation.run_id is not None or operation.is_automated)


def _own_operation(state: NodeState | None) -> Operation | None:
    operation = shown_operation(state)
    return operation if operation and operation.run_id else None


def shown_operation(state: NodeState | None) -> Operation | None:
    return state.operation if isinstance(state, ApplicationState) else None


def _shown_comparison(state: NodeState | None) -> datetime | None:
    return state.reconciled_at if isinstance(state, ApplicationState) else None


def _is_refreshing(state: NodeState | None) -> bool:
    return isinstance(state, ApplicationState) and state.refresh_requested


def is_degraded(state: NodeState) -> bool:
    return state.health is Health.DEGRADED or (isinstance(state, ApplicationState) and bool(state.errors))


def evaluate_gate(target: GateTarget, history: GateHistory, now: datetime) -> GateDecision:
    """Decide on the latest state, given the target and the states before it. `now` is the server's time."""
    decision = _evaluate(target, history, now)
    if isinstance(decision, Open | Failed):
        return decision
    return check_limit(target, history, decision, now) or decision


def _evaluate(target: GateTarget, history: GateHistory, now: datetime) -> GateDecision:  # noqa: PLR0911 - ordered rules
    state = history.latest
    if state is None:
        return Wait(Reason.ABSENT, "it does not exist yet")
    if state.is_deleting:
        return Failed(Reason.DELETING, "it is being deleted")
    if isinstance(state, ResourceState):
        evidence = Evidence(now, state.health, state.health_message, proof=Proof.DIRECT)
        return _evaluate_health(evidence, target, history)
    if (closed := _evaluate_operation(target, history, state)) is not None:
        return closed
    if state.errors:
        return _evaluate_errors(target, history, state, now)
    proof = freshness_proof(target, history, state, now)
    if not isinstance(proof, Proof):
        return proof
    if may_predate_sync(history, state, now):
        return Wait(Reason.NOT_FRESH, "an operation finished a moment ago")
    return _evaluate_health(_evidence(target, state, proof, now), target, history)


def _evaluate_errors(
    target: GateTarget, history: GateHistory, state: ApplicationState, now: datetime
) -> Wait | RefreshNeeded | Failed:
    """Errors that predate the operation count only if a comparison requested after it reports them again."""
    evidence = _evidence(target, state, None, now)
    decision = _evaluate_degraded(Reason.ERROR_CONDITION, str(state.errors[0]), evidence, target, history)
    initial_errors = history.initial.errors if isinstance(history.initial, ApplicationState) else ()
    if isinstance(decision, Wait) or history.succeeded_since is None or state.errors != initial_errors:
        return decision
    if state.refresh_requested:
        return Wait(Reason.NOT_FRESH, "a refresh is under way")
    return decision if history.was_refreshed else RefreshNeeded(Reason.ERROR_CONDITION, decision.detail)


def _evaluate_operation(target: GateTarget, history: GateHistory, state: ApplicationState) -> Wait | Failed | None:
    """`None` if the required operation has succeeded, or none is required."""
    if state.operation_requested:
        return Wait(Reason.OPERATION_REQUESTED, "an operation is waiting or running")
    operation = state.operation
    if operation is not None and not operation.is_finished:
        return Wait(Reason.OPERATION_RUNNING, f"an operation is {operation.phase.lower()}")
    if target.run_id is None:
        return None
    if operation is None or operation == shown_operation(history.initial):
        return Wait(Reason.OPERATION_NOT_SEEN, "Argo CD has not taken up the operation yet")
    if operation.run_id == target.run_id:
        return _own_operation_failure(target, operation)
    return (
        None if _is_self_heal(history, operation) else Failed(Reason.OVERTAKEN, describe_foreign_operation(operation))
    )


def _own_operation_failure(target: GateTarget, operation: Operation) -> Failed | None:
    if operation.was_terminated:
        return Failed(Reason.OVERTAKEN, "another client terminated the operation")
    if operation.phase is not OperationPhase.SUCCEEDED:
        message = f": {operation.message}" if operation.message else ""
        return Failed(Reason.OPERATION_FAILED, f"the operation ended {operation.phase}{message}")
    if operation.revisions != target.revisions:
        revisions = f"{abbreviate(operation.revisions)}, desired is {abbreviate(target.revisions)}"
        return Failed(Reason.WRONG_REVISION, f"the operation ended at {revisions}")
    return None


def _is_self_heal(history: GateHistory, operation: Operation) -> bool:
    """Whether Argo CD repaired, at the same revisions, what the operation of this run had synced."""
    own = history.own_success
    is_success = operation.is_automated and operation.phase is OperationPhase.SUCCEEDED
    return is_success and own is not None and operation.revisions == own.revisions


def describe_foreign_operation(operation: Operation) -> str:
    """What another client did, in a sentence."""
    what = "a sync of selected resources" if operation.is_partial else "an operation"
    who = operation.started_by or "another client"
    return f"{what} by {who} ended {operation.phase} at {abbreviate(operation.revisions)}"


def _evaluate_health(evidence: Evidence, target: GateTarget, history: GateHistory) -> GateDecision:
    message = f": {evidence.health_message}" if evidence.health_message else ""
    match evidence.health:
        case Health.HEALTHY:
            elapsed, required = _elapsed(history.healthy_since, history, evidence.judged_at), target.timing.stability
            if elapsed < required:
                return Wait(Reason.NOT_STABLE, f"Healthy for {_seconds(elapsed)} of {_seconds(required)}")
            return Open(evidence)
        case Health.DEGRADED:
            return _evaluate_degraded(Reason.DEGRADED, f"it is Degraded{message}", evidence, target, history)
        case Health.UNKNOWN if history.latest is not None and history.latest.missing_right:  # waiting does not help
            detail = f"it is Unknown: {history.latest.missing_right}"
            return Failed(Reason.RIGHT_MISSING, detail, evidence, is_final=True)
        case health:
            return Wait(Reason(health.value), f"it is {health}{message}")


def _evaluate_degraded(
    reason: Reason, detail: str, evidence: Evidence, target: GateTarget, history: GateHistory
) -> Wait | Failed:
    lasted = _elapsed(history.degraded_since, history, evidence.judged_at)
    return Failed(reason, detail, evidence) if lasted >= target.timing.degraded_grace else Wait(reason, detail)


def _elapsed(since: datetime | None, history: GateHistory, now: datetime) -> timedelta:
    return now - max(since or now, history.succeeded_since or history.started)  # time before the sync does not count


def check_limit(target: GateTarget, history: GateHistory, wait: Wait | RefreshNeeded, now: datetime) -> Failed | None:
    """Failure if the node was waited for long enough."""
    is_syncing = target.run_id is not None and history.succeeded_since is None  # then the sync timeout applies
    limit = target.timing.sync if is_syncing else target.timing.health
    return _timeout(wait, history, limit, now) if now - (history.succeeded_since or history.started) >= limit else None


def _timeout(pending: Wait | RefreshNeeded, history: GateHistory, limit: timedelta, now: datetime) -> Failed:
    reason, idle = pending.reason, now - history.last_change
    if reason in _PROGRESS_REASONS:  # distinguish stuck from slow
        reason = Reason.NO_ACTIVITY if idle >= STUCK_AFTER else Reason.OUT_OF_TIME
    return Failed(reason, f"{pending.detail}, after {_seconds(limit)}; last change {_seconds(idle)} ago")


def evaluate_absence(history: GateHistory, limit: timedelta, now: datetime) -> Open | Wait | Failed:
    """The gate of a removal: it opens when the object no longer exists."""
    state = history.latest
    if state is None:
        return Open(Evidence(now, Health.MISSING, proof=Proof.ABSENT))
    pending = (
        Wait(Reason.DELETING, "it is being deleted") if state.is_deleting else Wait(Reason.PRESENT, "it still exists")
    )
    return _timeout(pending, history, limit, now) if now - history.started >= limit else pending


def _evidence(target: GateTarget, state: ApplicationState, proof: Proof | None, now: datetime) -> Evidence:
    operation = state.operation
    return Evidence(
        judged_at=now,
        health=state.health,
        health_message=state.health_message,
        sync=state.sync,
        wanted=target.revisions,
        shown=state.revisions,
        operation=f"{operation.phase} {operation.run_id or operation.started_by}".strip() if operation else "",
        reconciled_at=state.reconciled_at,
        proof=proof,
        is_drifting=state.sync is SyncStatus.OUT_OF_SYNC and _has_synced(operation, target.revisions),
        is_directly_verified=not state.is_remote,
        objects_read=state.objects_read,
    )


def _has_synced(operation: Operation | None, revisions: tuple[str, ...]) -> bool:
    """Whether the last operation succeeded at these revisions, so that another sync would not help."""
    is_success = operation is not None and operation.phase is OperationPhase.SUCCEEDED and not operation.is_partial
    return is_success and operation is not None and operation.revisions == revisions


def _seconds(duration: timedelta) -> str:
    return f"{round(duration.total_seconds())} s"
