"""The gate of a node: whether its dependents may start. It opens only on proof that the reported health is fresh.

The first status that says Succeeded still carries the health from before the sync. A health status therefore needs
proof that Argo CD computed it after the sync, for the desired revisions and sources.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    NodeState,
    Operation,
    OperationPhase,
    ResourceState,
    Source,
    SyncStatus,
)

if TYPE_CHECKING:
    from windlass.core.platform.model.applications import NodeTiming

SETTLE_TIME = timedelta(seconds=10)  # by then the health status reflects the last operation
COMPARISON_OVERDUE_AFTER = timedelta(seconds=10)  # usually within 1 s of a sync; then request a refresh
STUCK_AFTER = timedelta(minutes=2)  # no change for this long: stuck, not slow


class Proof(StrEnum):
    """Why the health status is known to be fresh."""

    FIRST_VERDICT = "it was never compared, or incomplete, before its first operation, and is in sync now"
    NEW_REVISION = "the comparison shows a revision that was not there before"
    LATER_COMPARISON = "the comparison began after the operation finished"
    REFRESHED = "a refresh asked for after the operation was carried out"
    SETTLED = "the verdict is older than ten seconds, and nothing happened since"
    UNTOUCHED = "no operation ran since the last comparison"
    DIRECT = "the object itself was read"
    ABSENT = "it is not there any more"


class Reason(StrEnum):
    """Why a gate is closed. The values are stable: they appear in reports, logs and metrics."""

    ABSENT = "Absent"
    DELETING = "Deleting"
    OPERATION_REQUESTED = "OperationRequested"
    OPERATION_NOT_SEEN = "OperationNotSeen"
    OPERATION_RUNNING = "OperationRunning"
    OPERATION_FAILED = "OperationFailed"
    OVERTAKEN = "Overtaken"
    WRONG_REVISION = "WrongRevision"
    NOT_COMPARED = "NotCompared"
    NOT_FRESH = "NotFresh"
    ERROR_CONDITION = "ErrorCondition"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    SUSPENDED = "Suspended"
    MISSING = "Missing"
    UNKNOWN = "Unknown"
    FAILED = "Failed"
    NOT_STABLE = "NotStable"
    NO_ACTIVITY = "NoActivity"
    OUT_OF_TIME = "OutOfTime"
    INTERRUPTED = "Interrupted"
    PRESENT = "Present"


_PROGRESS_REASONS = {Reason.PROGRESSING, Reason.OPERATION_RUNNING, Reason.OPERATION_REQUESTED, Reason.DELETING}


@dataclass(frozen=True, slots=True)
class GateTarget:
    revisions: tuple[str, ...]
    sources: tuple[Source, ...]
    timing: NodeTiming
    run_id: str | None = None  # the run whose operation must succeed; None when only observing


@dataclass(frozen=True, slots=True)
class GateHistory:
    """What `extend_history` collected from the states so far, including the response to our own refresh request."""

    initial: NodeState | None  # the state that our operation was written to
    started: datetime
    last_change: datetime
    latest: NodeState | None
    earlier_revisions: frozenset[tuple[str, ...]] = frozenset()  # before the success; seeing these proves nothing
    succeeded_since: datetime | None = None
    healthy_since: datetime | None = None
    degraded_since: datetime | None = None
    was_refreshed: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:  # what a decision is based on; part of the report
    judged_at: datetime
    health: Health
    health_message: str = ""
    sync: SyncStatus | None = None
    wanted: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    operation: str = ""
    reconciled_at: datetime | None = None
    proof: Proof | None = None
    is_drifting: bool = False
    is_directly_verified: bool = True


@dataclass(frozen=True, slots=True)
class Open:
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Wait:
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class RefreshNeeded:  # only a comparison requested now can decide
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Failed:  # this attempt failed
    reason: Reason
    detail: str
    evidence: Evidence | None = None  # None if there was no health to evaluate
    is_final: bool = False  # another attempt would fail the same way


Closed = Wait | RefreshNeeded | Failed
GateDecision = Open | Closed


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
        healthy_since=(history.healthy_since or now) if state and state.health is Health.HEALTHY else None,
        degraded_since=(history.degraded_since or now) if state and is_degraded(state) else None,
        was_refreshed=succeeded and (history.was_refreshed or new_refresh),
    )


def _has_succeeded(history: GateHistory, state: NodeState | None) -> bool:
    """Ignore the operation of the initial state: right after a request Argo CD still shows the previous operation."""
    if not isinstance(state, ApplicationState) or state.operation is None or state.operation_requested:
        return False
    return state.operation.phase is OperationPhase.SUCCEEDED and state.operation != _shown_operation(history.initial)


def _shown_operation(state: NodeState | None) -> Operation | None:
    return state.operation if isinstance(state, ApplicationState) else None


def _is_refreshing(state: NodeState | None) -> bool:
    return isinstance(state, ApplicationState) and state.refresh_requested


def is_degraded(state: NodeState) -> bool:
    return state.health is Health.DEGRADED or (isinstance(state, ApplicationState) and bool(state.errors))


def evaluate_gate(target: GateTarget, history: GateHistory, now: datetime) -> GateDecision:
    """Decide on the latest state, given the target and the states before it. `now` is the server's time."""
    decision = _evaluate(target, history, now)
    if isinstance(decision, Open | Failed):
        return decision
    return _check_limit(target, history, decision, now) or decision


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
    proof = _freshness_proof(target, history, state, now)
    if not isinstance(proof, Proof):
        return proof
    if _may_predate_sync(state, now):
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
    if operation is None or operation == _shown_operation(history.initial):
        return Wait(Reason.OPERATION_NOT_SEEN, "Argo CD has not taken up the operation yet")
    is_ours = operation.run_id == target.run_id
    who = "the operation" if is_ours else f"an operation by {operation.started_by or 'others'}"
    if operation.phase is not OperationPhase.SUCCEEDED:
        message = f": {operation.message}" if operation.message else ""
        reason, ending = Reason.OPERATION_FAILED, f"ended {operation.phase}{message}"
    elif operation.revisions != target.revisions:
        revisions = f"{abbreviate(operation.revisions)}, wanted is {abbreviate(target.revisions)}"
        reason, ending = Reason.WRONG_REVISION, f"ended at {revisions}"
    else:
        return None
    return Failed(reason if is_ours else Reason.OVERTAKEN, f"{who} {ending}")


def _freshness_proof(  # noqa: PLR0911 - ordered rules
    target: GateTarget, history: GateHistory, state: ApplicationState, now: datetime
) -> Proof | Wait | RefreshNeeded:
    """Proof that the status was computed after the operation, for the desired revisions and sources."""
    if state.refresh_requested:
        return Wait(Reason.NOT_FRESH, "a refresh is under way")
    if state.revisions != target.revisions:
        detail = f"it was compared with {abbreviate(state.revisions)}, wanted is {abbreviate(target.revisions)}"
        return _missing_comparison(history, Reason.NOT_COMPARED, detail, now)
    if state.compared_sources != target.sources or state.sync is SyncStatus.UNKNOWN:
        return _missing_comparison(history, Reason.NOT_COMPARED, "it was not compared with the sources it has now", now)
    finished = state.operation.finished_at if state.operation else None
    if target.run_id is None:
        return _proof_without_run(state, finished, now)
    if state.sync is SyncStatus.SYNCED and _was_incomplete(history.initial, target):
        return Proof.FIRST_VERDICT
    if finished is None or state.reconciled_at is None or state.reconciled_at < finished:
        return _missing_comparison(history, Reason.NOT_FRESH, "it was last compared before the operation finished", now)
    if state.reconciled_at > finished:
        return Proof.LATER_COMPARISON
    # Both in the same second. A comparison from before the sync cannot report a new revision as Synced. If it reports
    # OutOfSync, or an earlier revision, it may be from before or after.
    if state.sync is SyncStatus.SYNCED and target.revisions not in history.earlier_revisions:
        return Proof.NEW_REVISION
    if history.was_refreshed:
        return Proof.REFRESHED
    return RefreshNeeded(Reason.NOT_FRESH, "comparison and operation show the same second")


def _was_incomplete(initial: NodeState | None, target: GateTarget) -> bool:
    """Whether resources were missing before the first operation: then a Synced status must be from after it."""
    if not isinstance(initial, ApplicationState) or initial.operation is not None:
        return False  # an operation of another client may have created what was missing
    # A resource missing at another revision may not be part of the desired one.
    return not initial.revisions or (initial.revisions == target.revisions and initial.health is Health.MISSING)


def _may_predate_sync(state: ApplicationState, now: datetime) -> bool:
    """Argo CD sees changes a moment late: OutOfSync and the health may still describe the resources before the sync."""
    finished = state.operation.finished_at if state.operation else None
    return finished is not None and state.sync is SyncStatus.OUT_OF_SYNC and now - finished <= SETTLE_TIME


def _proof_without_run(state: ApplicationState, finished: datetime | None, now: datetime) -> Proof | Wait:
    if finished is None:
        return Proof.UNTOUCHED
    if state.reconciled_at is not None and state.reconciled_at > finished:
        return Proof.LATER_COMPARISON
    if now - finished > SETTLE_TIME:
        return Proof.SETTLED
    return Wait(Reason.NOT_FRESH, "an operation finished a moment ago")


def _missing_comparison(history: GateHistory, reason: Reason, detail: str, now: datetime) -> Wait | RefreshNeeded:
    """Wait for Argo CD to compare; if that takes too long, request a refresh, once."""
    since = history.succeeded_since
    if since is not None and now - since > COMPARISON_OVERDUE_AFTER and not history.was_refreshed:
        return RefreshNeeded(reason, detail)
    return Wait(reason, detail)


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
        case health:
            return Wait(Reason(health.value), f"it is {health}{message}")


def _evaluate_degraded(
    reason: Reason, detail: str, evidence: Evidence, target: GateTarget, history: GateHistory
) -> Wait | Failed:
    lasted = _elapsed(history.degraded_since, history, evidence.judged_at)
    return Failed(reason, detail, evidence) if lasted >= target.timing.degraded_grace else Wait(reason, detail)


def _elapsed(since: datetime | None, history: GateHistory, now: datetime) -> timedelta:
    return now - max(since or now, history.succeeded_since or history.started)  # time before the sync does not count


def _check_limit(target: GateTarget, history: GateHistory, wait: Wait | RefreshNeeded, now: datetime) -> Failed | None:
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
    pending = Wait(Reason.DELETING, "it is being deleted") if state.is_deleting else Wait(Reason.PRESENT, "it is there")
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
        is_drifting=state.sync is SyncStatus.OUT_OF_SYNC,
        is_directly_verified=not state.is_remote,
    )


def abbreviate(revisions: tuple[str, ...]) -> str:
    return ", ".join(revision[:12] for revision in revisions) or "nothing"


def _seconds(duration: timedelta) -> str:
    return f"{round(duration.total_seconds())} s"
