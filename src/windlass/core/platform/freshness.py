"""Whether a reported health is fresh: proof that Argo CD computed it after the sync, for the desired revisions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import GateHistory, GateTarget, Proof, Reason, RefreshNeeded, Wait, abbreviate
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ApplicationState, NodeState, SyncStatus

if TYPE_CHECKING:
    from datetime import datetime

SETTLE_TIME = timedelta(seconds=10)  # by then the health status reflects the last operation
CLOCK_TOLERANCE = timedelta(seconds=2)  # times are in whole seconds, and a write takes a moment
STALE_INTERVALS = 2  # resync intervals after which a verdict that Argo CD has not renewed is stale
STALE_AFTER = STALE_INTERVALS * timedelta(minutes=3)  # by default 120 s and up to 60 s of jitter
COMPARISON_OVERDUE_AFTER = timedelta(seconds=10)  # usually within 1 s of a sync; then request a refresh


def freshness_proof(
    target: GateTarget, history: GateHistory, state: ApplicationState, now: datetime
) -> Proof | Wait | RefreshNeeded:
    """Proof that the status was computed after the operation, for the desired revisions and sources."""
    if state.refresh_requested:
        return Wait(Reason.NOT_FRESH, "a refresh is under way")
    if state.revisions != target.revisions:
        detail = f"it was compared with {abbreviate(state.revisions)}, desired is {abbreviate(target.revisions)}"
        return _missing_comparison(history, Reason.NOT_COMPARED, detail, now)
    if state.compared_sources != target.sources or state.sync is SyncStatus.UNKNOWN:
        return _missing_comparison(history, Reason.NOT_COMPARED, "it was not compared with the sources it has now", now)
    if target.run_id is None:
        return _proof_without_run(history, state, now)
    return _proof_of_run(target, history, state, now)


def _proof_of_run(  # noqa: PLR0911 - ordered rules
    target: GateTarget, history: GateHistory, state: ApplicationState, now: datetime
) -> Proof | Wait | RefreshNeeded:
    finished = state.operation.finished_at if state.operation else None
    if state.sync is SyncStatus.SYNCED and _was_incomplete(history.initial, target):
        return Proof.FIRST_VERDICT
    is_compared_again = state.reconciled_at != history.compared_before_refresh
    if history.was_refreshed and is_compared_again:  # the refresh was requested after the success
        return Proof.REFRESHED
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


def may_predate_sync(history: GateHistory, state: ApplicationState, now: datetime) -> bool:
    """Argo CD sees changes a moment late: OutOfSync and the health may still describe the resources before the sync."""
    finished = state.operation.finished_at if state.operation else None
    if finished is None or state.sync is not SyncStatus.OUT_OF_SYNC:
        return False
    return _time_since(finished, history, state, now) <= SETTLE_TIME


def _proof_without_run(history: GateHistory, state: ApplicationState, now: datetime) -> Proof | Wait:
    finished = state.operation.finished_at if state.operation else None
    if finished is None:
        return Proof.UNTOUCHED
    if state.reconciled_at is not None and state.reconciled_at > finished:
        return Proof.LATER_COMPARISON
    if _time_since(finished, history, state, now) > SETTLE_TIME:
        return Proof.SETTLED
    return Wait(Reason.NOT_FRESH, "an operation finished a moment ago")


def _missing_comparison(history: GateHistory, reason: Reason, detail: str, now: datetime) -> Wait | RefreshNeeded:
    """Wait for Argo CD to compare; if that takes too long, request a refresh, once."""
    since = history.succeeded_since
    if since is not None and now - since > COMPARISON_OVERDUE_AFTER and not history.was_refreshed:
        return RefreshNeeded(reason, detail)
    return Wait(reason, detail)


def _time_since(finished: datetime, history: GateHistory, state: ApplicationState, now: datetime) -> timedelta:
    """At least how long ago the operation finished: by its timestamp, or by how long it has been seen as finished."""
    return max(now - (history.operation_since or now), _age(finished, state, now))


def comparison_age(state: ApplicationState, now: datetime) -> timedelta | None:
    """How long ago the last comparison started; `None` if Argo CD never compared the Application."""
    return _age(state.reconciled_at, state, now) if state.reconciled_at else None


def _age(timestamp: datetime, state: ApplicationState, now: datetime) -> timedelta:
    """At least how old a timestamp of Argo CD is.

    It is compared with the server's clock only if the two clocks agreed when the status was last written; otherwise it
    is at least as old as that write.
    """
    if state.written_at is None or state.stamped_at is None:
        return now - timestamp
    is_agreed = abs(state.stamped_at - state.written_at) <= CLOCK_TOLERANCE
    return now - (timestamp if is_agreed else state.written_at)
