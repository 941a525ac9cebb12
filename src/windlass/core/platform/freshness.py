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
COMPARISON_OVERDUE_AFTER = timedelta(seconds=10)  # usually within 1 s of a sync; then request a refresh


def freshness_proof(  # noqa: PLR0911 - ordered rules
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


def may_predate_sync(state: ApplicationState, now: datetime) -> bool:
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
