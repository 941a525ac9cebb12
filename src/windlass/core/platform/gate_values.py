"""The values of gates: what a gate is asked for, what it was shown, and what it decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - the schema of the report resolves these types
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.health import Health  # noqa: TC001
from windlass.core.platform.model.snapshots import NodeState, Operation, Source, SyncStatus  # noqa: TC001

if TYPE_CHECKING:
    from windlass.core.platform.model.applications import NodeTiming


class Proof(StrEnum):
    """Why the health status is known to be fresh."""

    FIRST_VERDICT = "first sync, and in sync since"
    NEW_REVISION = "the comparison shows a revision that was not there before"
    LATER_COMPARISON = "the comparison began after the operation finished"
    REFRESHED = "a refresh requested after the operation was completed"
    SETTLED = "the verdict is older than ten seconds, and nothing happened since"
    UNTOUCHED = "no operation ran since the last comparison"
    DIRECT = "the object itself was read"
    ABSENT = "it is not there any more"


class Reason(StrEnum):
    """Why a gate is closed. The values are stable: they appear in reports, logs and metrics."""

    ABSENT = "Absent"
    DELETING = "Deleting"
    DEPENDENCY_UNHEALTHY = "DependencyUnhealthy"
    OPERATION_REQUESTED = "OperationRequested"
    OPERATION_NOT_SEEN = "OperationNotSeen"
    OPERATION_RUNNING = "OperationRunning"
    OPERATION_FAILED = "OperationFailed"
    OVERTAKEN = "Overtaken"
    WRONG_REVISION = "WrongRevision"
    NOT_APPROVED = "NotApproved"
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
    PARENT_BROKEN = "ParentBroken"
    NOT_ANSWERING = "NotAnswering"
    NOT_DEFINED = "NotDefined"
    UNREADABLE = "Unreadable"
    RIGHT_MISSING = "RightMissing"
    FOREIGN_OBJECTS = "ForeignObjects"


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
    own_success: Operation | None = None  # the operation of this run, once it was seen to succeed
    healthy_since: datetime | None = None
    degraded_since: datetime | None = None
    operation_since: datetime | None = None  # since when the latest operation has been shown as it is now
    was_refreshed: bool = False
    compared_before_refresh: datetime | None = None  # the comparison that was shown when the refresh was requested


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
    objects_read: int = 0


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
    cause: str = ""  # what failed instead, if it is not the node itself: the parent that defines it
    blocked_by: tuple[str, ...] = ()  # dependencies that are not healthy, because of which it was not started

    @property
    def causes(self) -> tuple[str, ...]:
        return (self.cause,) if self.cause else self.blocked_by


Closed = Wait | RefreshNeeded | Failed
GateDecision = Open | Closed


def abbreviate(revisions: tuple[str, ...]) -> str:
    return ", ".join(revision[:12] for revision in revisions) or "nothing"
