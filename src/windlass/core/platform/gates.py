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
    Operation,
    Phase,
    ResourceState,
    Source,
    State,
    Sync,
)

if TYPE_CHECKING:
    from windlass.core.platform.model.applications import Patience

SETTLED_AFTER = timedelta(seconds=10)  # by then the health status reflects the last operation
LAGGING_AFTER = timedelta(seconds=10)  # usually within 1 s of a sync; then request a refresh
SILENT_AFTER = timedelta(minutes=2)  # no change for this long: stuck, not slow


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


_BUSY = {Reason.PROGRESSING, Reason.OPERATION_RUNNING, Reason.OPERATION_REQUESTED, Reason.DELETING}


@dataclass(frozen=True, slots=True)
class Wanted:
    revisions: tuple[str, ...]
    sources: tuple[Source, ...]
    patience: Patience
    run_id: str | None = None  # the run whose operation must succeed; None when only observing


@dataclass(frozen=True, slots=True)
class Seen:
    """What `extend_history` collected from the states so far, including the response to our own refresh request."""

    before: State | None  # the state that our operation was written to
    began: datetime
    changed: datetime
    last: State | None
    earlier_revisions: frozenset[tuple[str, ...]] = frozenset()  # before the success; seeing these proves nothing
    succeeded_since: datetime | None = None
    healthy_since: datetime | None = None
    sick_since: datetime | None = None
    refresh_asked: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:  # what a decision is based on; part of the report
    judged_at: datetime
    health: Health
    health_message: str = ""
    sync: Sync | None = None
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
Judgement = Open | Closed


def as_shown(state: State | None, patience: Patience) -> Wanted:
    """Target for checking health only, at the revisions that the node shows now."""
    if isinstance(state, ApplicationState):
        return Wanted(state.revisions, state.compared_to, patience)
    return Wanted((), (), patience)


def first_seen(state: State | None, now: datetime) -> Seen:
    return followed(Seen(before=state, began=now, changed=now, last=state), state, now)


def followed(seen: Seen, state: State | None, now: datetime) -> Seen:
    succeeded = _has_succeeded(seen, state)
    asked_now = seen.succeeded_since is not None and _wants_refresh(state) and not _wants_refresh(seen.last)
    earlier = seen.earlier_revisions
    if isinstance(state, ApplicationState) and not succeeded:
        earlier |= {state.revisions}
    return replace(
        seen,
        last=state,
        changed=seen.changed if state == seen.last else now,
        earlier_revisions=earlier,
        succeeded_since=(seen.succeeded_since or now) if succeeded else None,
        healthy_since=(seen.healthy_since or now) if state and state.health is Health.HEALTHY else None,
        sick_since=(seen.sick_since or now) if state and is_sick(state) else None,
        refresh_asked=succeeded and (seen.refresh_asked or asked_now),
    )


def _has_succeeded(seen: Seen, state: State | None) -> bool:
    """Ignore the operation of the initial state: right after a request Argo CD still shows the previous operation."""
    if not isinstance(state, ApplicationState) or state.operation is None or state.operation_requested:
        return False
    return state.operation.phase is Phase.SUCCEEDED and state.operation != _operation_of(seen.before)


def _operation_of(state: State | None) -> Operation | None:
    return state.operation if isinstance(state, ApplicationState) else None


def _wants_refresh(state: State | None) -> bool:
    return isinstance(state, ApplicationState) and state.refresh_requested


def is_sick(state: State) -> bool:
    return state.health is Health.DEGRADED or (isinstance(state, ApplicationState) and bool(state.errors))


def judge(wanted: Wanted, seen: Seen, now: datetime) -> Judgement:
    """Decide on the latest state, given the target and the states before it. `now` is the server's time."""
    judgement = _judgement(wanted, seen, now)
    if isinstance(judgement, Open | Failed):
        return judgement
    return _out_of_time(wanted, seen, judgement, now) or judgement


def _judgement(wanted: Wanted, seen: Seen, now: datetime) -> Judgement:  # noqa: PLR0911 - ordered rules
    state = seen.last
    if state is None:
        return Wait(Reason.ABSENT, "it does not exist yet")
    if state.is_deleting:
        return Failed(Reason.DELETING, "it is being deleted")
    if isinstance(state, ResourceState):
        evidence = Evidence(now, state.health, state.health_message, proof=Proof.DIRECT)
        return _judge_health(evidence, wanted, seen)
    if (verdict := _judge_operation(wanted, seen, state)) is not None:
        return verdict
    if state.errors:
        return _judge_errors(wanted, seen, state, now)
    proof = _proof(wanted, seen, state, now)
    if not isinstance(proof, Proof):
        return proof
    if _may_have_missed_the_sync(state, now):
        return Wait(Reason.NOT_FRESH, "an operation finished a moment ago")
    return _judge_health(_evidence(wanted, state, proof, now), wanted, seen)


def _judge_errors(wanted: Wanted, seen: Seen, state: ApplicationState, now: datetime) -> Wait | RefreshNeeded | Failed:
    """Errors that predate the operation count only if a comparison requested after it reports them again."""
    evidence = _evidence(wanted, state, None, now)
    sickness = _judge_sickness(Reason.ERROR_CONDITION, str(state.errors[0]), evidence, wanted, seen)
    before = seen.before.errors if isinstance(seen.before, ApplicationState) else ()
    if isinstance(sickness, Wait) or seen.succeeded_since is None or state.errors != before:
        return sickness
    if state.refresh_requested:
        return Wait(Reason.NOT_FRESH, "a refresh is under way")
    return sickness if seen.refresh_asked else RefreshNeeded(Reason.ERROR_CONDITION, sickness.detail)


def _judge_operation(wanted: Wanted, seen: Seen, state: ApplicationState) -> Wait | Failed | None:
    """`None` if the required operation has succeeded, or none is required."""
    if state.operation_requested:
        return Wait(Reason.OPERATION_REQUESTED, "an operation is waiting or running")
    operation = state.operation
    if operation is not None and not operation.is_over:
        return Wait(Reason.OPERATION_RUNNING, f"an operation is {operation.phase.lower()}")
    if wanted.run_id is None:
        return None
    if operation is None or operation == _operation_of(seen.before):
        return Wait(Reason.OPERATION_NOT_SEEN, "Argo CD has not taken up the operation yet")
    is_ours = operation.run_id == wanted.run_id
    who = "the operation" if is_ours else f"an operation by {operation.started_by or 'others'}"
    if operation.phase is not Phase.SUCCEEDED:
        said = f": {operation.message}" if operation.message else ""
        reason, told = Reason.OPERATION_FAILED, f"ended {operation.phase}{said}"
    elif operation.revisions != wanted.revisions:
        at = f"{short(operation.revisions)}, wanted is {short(wanted.revisions)}"
        reason, told = Reason.WRONG_REVISION, f"ended at {at}"
    else:
        return None
    return Failed(reason if is_ours else Reason.OVERTAKEN, f"{who} {told}")


def _proof(  # noqa: PLR0911 - ordered rules
    wanted: Wanted, seen: Seen, state: ApplicationState, now: datetime
) -> Proof | Wait | RefreshNeeded:
    """Proof that the status was computed after the operation, for the desired revisions and sources."""
    if state.refresh_requested:
        return Wait(Reason.NOT_FRESH, "a refresh is under way")
    if state.revisions != wanted.revisions:
        compared = f"it was compared with {short(state.revisions)}, wanted is {short(wanted.revisions)}"
        return _lagging(seen, Reason.NOT_COMPARED, compared, now)
    if state.compared_to != wanted.sources or state.sync is Sync.UNKNOWN:
        return _lagging(seen, Reason.NOT_COMPARED, "it was not compared with the sources it has now", now)
    finished = state.operation.finished_at if state.operation else None
    if wanted.run_id is None:
        return _proof_untouched(state, finished, now)
    if state.sync is Sync.SYNCED and _was_incomplete(seen.before, wanted):
        return Proof.FIRST_VERDICT
    if finished is None or state.reconciled_at is None or state.reconciled_at < finished:
        return _lagging(seen, Reason.NOT_FRESH, "it was last compared before the operation finished", now)
    if state.reconciled_at > finished:
        return Proof.LATER_COMPARISON
    # Both in the same second. A comparison from before the sync cannot report a new revision as Synced. If it reports
    # OutOfSync, or an earlier revision, it may be from before or after.
    if state.sync is Sync.SYNCED and wanted.revisions not in seen.earlier_revisions:
        return Proof.NEW_REVISION
    if seen.refresh_asked:
        return Proof.REFRESHED
    return RefreshNeeded(Reason.NOT_FRESH, "comparison and operation show the same second")


def _was_incomplete(before: State | None, wanted: Wanted) -> bool:
    """Whether resources were missing before the first operation: then a Synced status must be from after it."""
    if not isinstance(before, ApplicationState) or before.operation is not None:
        return False  # an operation of another client may have created what was missing
    # A resource missing at another revision may not be part of the desired one.
    return not before.revisions or (before.revisions == wanted.revisions and before.health is Health.MISSING)


def _may_have_missed_the_sync(state: ApplicationState, now: datetime) -> bool:
    """Argo CD sees changes a moment late: OutOfSync and the health may still describe the resources before the sync."""
    finished = state.operation.finished_at if state.operation else None
    return finished is not None and state.sync is Sync.OUT_OF_SYNC and now - finished <= SETTLED_AFTER


def _proof_untouched(state: ApplicationState, finished: datetime | None, now: datetime) -> Proof | Wait:
    if finished is None:
        return Proof.UNTOUCHED
    if state.reconciled_at is not None and state.reconciled_at > finished:
        return Proof.LATER_COMPARISON
    if now - finished > SETTLED_AFTER:
        return Proof.SETTLED
    return Wait(Reason.NOT_FRESH, "an operation finished a moment ago")


def _lagging(seen: Seen, reason: Reason, detail: str, now: datetime) -> Wait | RefreshNeeded:
    """Wait for Argo CD to compare; if that takes too long, request a refresh, once."""
    since = seen.succeeded_since
    if since is not None and now - since > LAGGING_AFTER and not seen.refresh_asked:
        return RefreshNeeded(reason, detail)
    return Wait(reason, detail)


def _judge_health(evidence: Evidence, wanted: Wanted, seen: Seen) -> Judgement:
    said = f": {evidence.health_message}" if evidence.health_message else ""
    match evidence.health:
        case Health.HEALTHY:
            held, needed = _lasted(seen.healthy_since, seen, evidence.judged_at), wanted.patience.stability
            if held < needed:
                return Wait(Reason.NOT_STABLE, f"Healthy for {_words(held)} of {_words(needed)}")
            return Open(evidence)
        case Health.DEGRADED:
            return _judge_sickness(Reason.DEGRADED, f"it is Degraded{said}", evidence, wanted, seen)
        case health:
            return Wait(Reason(health.value), f"it is {health}{said}")


def _judge_sickness(reason: Reason, detail: str, evidence: Evidence, wanted: Wanted, seen: Seen) -> Wait | Failed:
    lasted = _lasted(seen.sick_since, seen, evidence.judged_at)
    return Failed(reason, detail, evidence) if lasted >= wanted.patience.degraded_grace else Wait(reason, detail)


def _lasted(since: datetime | None, seen: Seen, now: datetime) -> timedelta:
    return now - max(since or now, seen.succeeded_since or seen.began)  # time before the sync does not count


def _out_of_time(wanted: Wanted, seen: Seen, waiting: Wait | RefreshNeeded, now: datetime) -> Failed | None:
    is_syncing = wanted.run_id is not None and seen.succeeded_since is None  # then the sync timeout applies
    limit = wanted.patience.sync if is_syncing else wanted.patience.health
    return _overdue(waiting, seen, limit, now) if now - (seen.succeeded_since or seen.began) >= limit else None


def _overdue(waiting: Wait | RefreshNeeded, seen: Seen, limit: timedelta, now: datetime) -> Failed:
    reason, quiet = waiting.reason, now - seen.changed
    if reason in _BUSY:  # distinguish stuck from slow
        reason = Reason.NO_ACTIVITY if quiet >= SILENT_AFTER else Reason.OUT_OF_TIME
    return Failed(reason, f"{waiting.detail}, after {_words(limit)}; last change {_words(quiet)} ago")


def judge_absence(seen: Seen, limit: timedelta, now: datetime) -> Open | Wait | Failed:
    """The gate of a removal: it opens when the object no longer exists."""
    state = seen.last
    if state is None:
        return Open(Evidence(now, Health.MISSING, proof=Proof.ABSENT))
    waiting = Wait(Reason.DELETING, "it is being deleted") if state.is_deleting else Wait(Reason.PRESENT, "it is there")
    return _overdue(waiting, seen, limit, now) if now - seen.began >= limit else waiting


def _evidence(wanted: Wanted, state: ApplicationState, proof: Proof | None, now: datetime) -> Evidence:
    operation = state.operation
    return Evidence(
        judged_at=now,
        health=state.health,
        health_message=state.health_message,
        sync=state.sync,
        wanted=wanted.revisions,
        shown=state.revisions,
        operation=f"{operation.phase} {operation.run_id or operation.started_by}".strip() if operation else "",
        reconciled_at=state.reconciled_at,
        proof=proof,
        is_drifting=state.sync is Sync.OUT_OF_SYNC,
        is_directly_verified=not state.is_remote,
    )


def short(revisions: tuple[str, ...]) -> str:
    return ", ".join(revision[:12] for revision in revisions) or "nothing"


def _words(span: timedelta) -> str:
    return f"{round(span.total_seconds())} s"
