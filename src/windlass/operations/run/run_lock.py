"""One run per cluster: the run holds a Lease, and only the client made from that Lease can write."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.access_reviews import Permission
from windlass.kube.client.resources import LEASES
from windlass.kube.leases import LEASE_POLL_INTERVAL, LeaseStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from windlass.kube.client.objects import RawObject
    from windlass.kube.leases import LockedClient, ProcessLease
    from windlass.operations.run.context import RunControl

LEASE_NAME = "windlass"


def required_permissions(namespace: str, *, with_delete: bool = False) -> Iterator[Permission]:
    """Permissions needed to hold the lock and, `with_delete`, to delete its Lease at the end."""
    verbs = ("get", "create", "update", *(("delete",) if with_delete else ()))
    return (Permission(verb, LEASES, namespace) for verb in verbs)


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


@asynccontextmanager
async def hold_lock(lease: ProcessLease, control: RunControl) -> AsyncIterator[LockedClient]:
    """Acquire the lock and renew it until the context ends. A stopped run stops waiting; a lost lock stops the run."""
    async with lease.hold(lambda: control.unless_stopped(wait_until_free(lease)), control.fail) as client:
        yield client


def _locked_error(lease: ProcessLease, held: RawObject) -> Locked:
    spec = held.get("spec") or {}
    holder = f"run {spec.get('holderIdentity') or 'of somebody else'}"
    since = f", since {spec['acquireTime']}" if spec.get("acquireTime") else ""
    hint = "wait for it to end; a run that died gives way after 15 s"
    return Locked(f"another run is at work: {holder}{since}", where=str(lease.ref), hint=hint)
