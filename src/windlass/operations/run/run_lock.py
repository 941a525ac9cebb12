"""One run per cluster: the run holds a Lease, and only the client made from that Lease can write."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.lock_holders import recorded_holder
from windlass.errors import WindlassError
from windlass.kube.access_reviews import Permission
from windlass.kube.client.resources import LEASES
from windlass.kube.leases import LEASE_DURATION, LEASE_POLL_INTERVAL, LeaseStatus
from windlass.operations.cluster_identity import LEASE_NAME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from windlass.core.platform.events import EmitEvent
    from windlass.kube.client.objects import RawObject
    from windlass.kube.leases import LockedClient, ProcessLease
    from windlass.operations.run.context import RunControl


def required_permissions(namespace: str, *, with_delete: bool = False) -> Iterator[Permission]:
    """Permissions needed to hold the lock and, `with_delete`, to delete its Lease at the end."""
    verbs = ("get", "create", "update", *(("delete",) if with_delete else ()))
    names = {verb: "" if verb == "create" else LEASE_NAME for verb in verbs}  # a create request has no name
    return (Permission(verb, LEASES, namespace, names[verb]) for verb in verbs)


class Locked(WindlassError):
    """Another run holds the lock."""


@dataclass(frozen=True, slots=True)
class LockPatience:
    """How long to wait for a run that holds the lock, and where to tell it."""

    timeout: timedelta = timedelta(0)
    emit: EmitEvent = lambda _: None


REFUSE_AT_ONCE = LockPatience()


async def wait_until_free(lease: ProcessLease, patience: LockPatience = REFUSE_AT_ONCE) -> RawObject | None:
    """Return the Lease that can be acquired, `None` if it does not exist; raise `Locked` if its holder outlasts it.

    Returns at once if the Lease has no holder, otherwise after it was not renewed for the lease duration.
    """
    started, is_told, is_doubt_told = lease.clock.monotonic(), False, False
    while True:
        found, status = await lease.observe()
        if status in {LeaseStatus.FREE, LeaseStatus.EXPIRED}:
            return found
        if status is LeaseStatus.RENEWED and found is not None:
            if lease.clock.monotonic() - started >= patience.timeout.total_seconds():
                raise _locked_error(lease, found)
            if not is_told:
                patience.emit(LogLine(Level.WARN, f"waiting for the lock: {recorded_holder(found)}"))
                is_told = True
        elif found is not None and not is_doubt_told:
            patience.emit(LogLine(Level.WARN, _doubt_message(found)))
            is_doubt_told = True
        await lease.clock.sleep(LEASE_POLL_INTERVAL)


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a run records on the Lease when it acquires it."""

    annotations: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[RawObject | None], None] = lambda _: None
    """Raises if the run must not acquire the Lease that it was given."""


NO_RECORD = LeaseRecord()


@asynccontextmanager
async def hold_lock(
    lease: ProcessLease,
    control: RunControl,
    record: LeaseRecord = NO_RECORD,
    timeout: timedelta = timedelta(0),
) -> AsyncIterator[LockedClient]:
    """Acquire the lock and renew it until the context ends. A stopped run stops waiting; a lost lock stops the run."""

    async def wait() -> RawObject | None:
        free = await control.unless_stopped(wait_until_free(lease, LockPatience(timeout, control.emit)))
        record.check(free)
        return free

    async with lease.hold(wait, control.fail, record.annotations) as client:
        yield client


def _doubt_message(held: RawObject) -> str:
    """One look does not show whether the holder is alive: up to 15 s pass before that is known."""
    holder = recorded_holder(held)
    return f"the lock is held: {holder}; waiting up to {LEASE_DURATION:g} s to see whether that run is alive"


def _locked_error(lease: ProcessLease, held: RawObject) -> Locked:
    hint = f"wait until it ends, or set --lock-timeout; a run that died loses the lock after {LEASE_DURATION:g} s"
    return Locked(f"another run holds the lock: {recorded_holder(held)}", where=str(lease.ref), hint=hint)
