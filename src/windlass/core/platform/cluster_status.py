"""The status of a cluster: how many applications are healthy, which ones change now, which ones failed and why.

It is computed from Applications and from the Lease of runs alone; no platform file is needed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from windlass.core.platform.lock_holders import LockHolder, recorded_holder
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ApplicationState, OperationPhase, SyncStatus
from windlass.errors import ExitCode
from windlass.printable_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.identity import ClusterIdentity
    from windlass.core.platform.model.snapshots import NodeState, Operation

RENEWAL_OVERDUE_AFTER = timedelta(seconds=10)  # a run renews its lock every 4 s
_FAILED_HEALTH = {Health.DEGRADED, Health.UNKNOWN, Health.MISSING}
_FAILED_PHASES = {OperationPhase.FAILED, OperationPhase.ERROR}


@dataclass(frozen=True, slots=True)
class ActiveApplication:
    """An Application that changes now: it is synced or deleted, or its objects are not ready yet."""

    name: str
    activity: str
    detail: str = ""
    by: str = ""
    """Who started it: a run of Windlass, a user, or Argo CD itself; empty if that is not recorded."""
    since: datetime | None = None
    is_synced: bool = False
    """Its sync has ended; `by` is who started that."""


@dataclass(frozen=True, slots=True)
class FailedApplication:
    name: str
    reason: str
    cause: str = ""
    """As Argo CD or the object itself states it; empty if neither gives one."""
    since: datetime | None = None

    @property
    def is_explained(self) -> bool:
        """Whether Argo CD states the cause; the cause of a bad health is in the objects of the Application."""
        return self.reason not in set(Health)


@dataclass(frozen=True, slots=True)
class RootStatus:
    """The root Application and the commit it was last compared with."""

    name: str
    revisions: tuple[str, ...]
    target_revisions: tuple[str, ...]
    sync: SyncStatus


@dataclass(frozen=True, slots=True)
class LockStatus:
    holder: LockHolder
    since: datetime | None = None
    is_abandoned: bool = False
    """The holder was not seen to renew the lock, so it has died."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    server: str
    identity: ClusterIdentity | None = None
    """The environment and the platform that the last deploy recorded; `None` if none did."""
    root: RootStatus | None = None
    lock: LockStatus | None = None
    is_lock_known: bool = True
    applications: int = 0
    health: Mapping[str, int] = field(default_factory=dict)
    """Number of Applications by health, from best to worst."""
    sync: Mapping[str, int] = field(default_factory=dict)
    active: tuple[ActiveApplication, ...] = ()
    failed: tuple[FailedApplication, ...] = ()
    notices: tuple[str, ...] = ()
    """What could not be read, and why."""

    @property
    def exit_code(self) -> ExitCode:
        """As for `validate`, except that an application that changes now, or was never deployed, is no failure."""
        if not self.failed:
            return ExitCode.SUCCESS
        return ExitCode.FAILURE if len(self.failed) == self.applications else ExitCode.PARTIAL


def health_counts(shown: Mapping[str, ApplicationState], proven: Mapping[str, NodeState]) -> dict[str, int]:
    """The number of Applications by health; Healthy that may predate the last sync counts as Progressing."""
    counts = Counter(
        Health.PROGRESSING if _is_unproven(state, proven[name]) else proven[name].health
        for name, state in shown.items()
    )
    return {str(health): counts[health] for health in Health if counts[health]}


def sync_counts(states: Iterable[ApplicationState]) -> dict[str, int]:
    counts = Counter(state.sync for state in states)
    return {str(sync): counts[sync] for sync in SyncStatus if counts[sync]}


def active_applications(
    shown: Mapping[str, ApplicationState], proven: Mapping[str, NodeState]
) -> tuple[ActiveApplication, ...]:
    """Applications that change now, oldest activity first.

    `shown`: the states as Argo CD shows them. `proven`: the same, without health that may predate the last sync.
    """
    found = (_activity(name, state, proven[name]) for name, state in shown.items())
    return tuple(sorted((each for each in found if each), key=lambda each: _sort_key(each.since, each.name)))


def failed_applications(states: Mapping[str, ApplicationState]) -> tuple[FailedApplication, ...]:
    """Applications that failed, oldest failure first: it may be the cause of the later ones."""
    found = (_failure(name, state) for name, state in states.items())
    return tuple(sorted((each for each in found if each), key=lambda each: _sort_key(each.since, each.name)))


def lock_status(lease: Mapping[str, Any], *, is_abandoned: bool = False) -> LockStatus | None:
    """Who holds the lock; `None` if no run does."""
    holder = recorded_holder(lease)
    return (
        LockStatus(holder, _parse_time((lease.get("spec") or {}).get("acquireTime")), is_abandoned) if holder else None
    )


def seems_abandoned(lease: Mapping[str, Any], now: datetime) -> bool:
    """Whether the lock was last renewed long ago by its own timestamp; two clocks may disagree about that."""
    renewed = _parse_time((lease.get("spec") or {}).get("renewTime"))
    return recorded_holder(lease) is not None and (renewed is None or abs(now - renewed) > RENEWAL_OVERDUE_AFTER)


def _sort_key(since: datetime | None, name: str) -> tuple[datetime, str]:
    return since or datetime.max.replace(tzinfo=UTC), name


def _activity(name: str, state: ApplicationState, proven: NodeState) -> ActiveApplication | None:
    operation = state.operation
    if state.is_deleting:
        return ActiveApplication(name, "is being deleted")
    if operation is not None and not operation.is_finished:
        activity = "is syncing" if operation.phase is OperationPhase.RUNNING else "is terminating its sync"
        return ActiveApplication(name, activity, by=_initiator(operation), since=_known_time(operation.started_at))
    if state.operation_requested:
        by = f"run {state.requesting_run_id}" if state.requesting_run_id else ""
        return ActiveApplication(name, "waits for its requested sync", by=one_line(by))
    if state.health is Health.PROGRESSING:
        by = _initiator(operation) if operation else ""
        return ActiveApplication(name, "is progressing", state.health_message, by, state.health_since, is_synced=True)
    if _is_unproven(state, proven):
        return ActiveApplication(name, "is being checked", proven.health_message)
    return None


def _is_unproven(state: ApplicationState, proven: NodeState) -> bool:
    return state.health is Health.HEALTHY and proven.health is Health.UNKNOWN


def _initiator(operation: Operation) -> str:
    return one_line(f"run {operation.run_id}" if operation.run_id else operation.started_by)


def _failure(name: str, state: ApplicationState) -> FailedApplication | None:
    if state.is_deleting:
        return None
    if state.errors:
        return FailedApplication(name, state.errors[0].type, state.errors[0].message)
    operation = None if state.operation_requested else state.operation
    is_out_of_sync = state.sync is not SyncStatus.SYNCED
    if operation is not None and operation.phase in _FAILED_PHASES and is_out_of_sync:
        return FailedApplication(name, f"sync {operation.phase}", operation.message, operation.finished_at)
    is_deployed = operation is not None and operation.is_finished
    if state.health is Health.DEGRADED or (state.health in _FAILED_HEALTH and is_deployed):
        return FailedApplication(name, str(state.health), state.health_message, state.health_since)
    return None


def _known_time(time: datetime) -> datetime | None:
    return time if time.year > 1 else None  # the earliest time stands for one that Argo CD does not state


def _parse_time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(text or ""))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
