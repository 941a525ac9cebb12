"""One run per cluster: the run holds a Lease, and only the client made from that Lease can write."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.access_reviews import Permission
from windlass.kube.client.resources import LEASES
from windlass.kube.leases import LEASE_POLL_INTERVAL, LeaseStatus
from windlass.operations.cluster_identity import LEASE_NAME

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

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


async def wait_until_free(lease: ProcessLease) -> RawObject | None:
    """Return the Lease that can be acquired, `None` if it does not exist; raise `Locked` if its holder renews it.

    Returns at once if the Lease has no holder, otherwise after it was not renewed for the lease duration.
    """
    while True:
        found, status = await lease.observe()
        if status in {LeaseStatus.FREE, LeaseStatus.EXPIRED}:
            return found
        if status is LeaseStatus.RENEWED and found is not None:
            raise _locked_error(lease, found)
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
    lease: ProcessLease, control: RunControl, record: LeaseRecord = NO_RECORD
) -> AsyncIterator[LockedClient]:
    """Acquire the lock and renew it until the context ends. A stopped run stops waiting; a lost lock stops the run."""

    async def wait() -> RawObject | None:
        free = await control.unless_stopped(wait_until_free(lease))
        record.check(free)
        return free

    async with lease.hold(wait, control.fail, record.annotations) as client:
        yield client


def _locked_error(lease: ProcessLease, held: RawObject) -> Locked:
    spec = held.get("spec") or {}
    holder = f"run {spec.get('holderIdentity') or 'of somebody else'}"
    since = f", since {spec['acquireTime']}" if spec.get("acquireTime") else ""
    hint = "wait for it to end; a run that died gives way after 15 s"
    return Locked(f"another run is at work: {holder}{since}", where=str(lease.ref), hint=hint)
