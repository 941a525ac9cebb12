"""One run per cluster: a Lease that the run renews; nothing is written once it could not be renewed in time.

A holder counts as dead after the Lease was not seen to change for the lease duration; clocks are never compared.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.access_reviews import Permission
from windlass.kube.api_errors import AlreadyExists, Conflict, KubeError, NotFound
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from datetime import datetime

    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.objects import RawObject
    from windlass.kube.clocks import Clock
    from windlass.operations.run.context import RunControl

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
LEASE_NAME = "windlass"
LEASE_DURATION = 15.0  # seconds without a renewal after which a holder counts as dead
RENEW_INTERVAL = 4.0
RENEW_DEADLINE = 10.0  # seconds without a renewal after which nothing is written; well before another run takes over
LEASE_POLL_INTERVAL = 1.0


def required_permissions(namespace: str, *, with_delete: bool = False) -> Iterator[Permission]:
    """Permissions needed to hold the lock and, `with_delete`, to delete its Lease at the end."""
    verbs = ("get", "create", "update", *(("delete",) if with_delete else ()))
    return (Permission(verb, LEASES, namespace) for verb in verbs)


class Locked(WindlassError):
    """Another run holds the lock."""


class LockLost(WindlassError):
    """The Lease could not be renewed: another run may hold it by now."""


@dataclass(frozen=True, slots=True)
class LockClaim:
    """Who acquires the lock, and in which namespace it is."""

    holder: str
    namespace: str
    now: Callable[[], datetime]
    """Current time by the server's clock."""


class RunLock:
    """The lock of one run; `acquire_lock` holds it. Call `check` before every write."""

    def __init__(self, client: KubeClient, claim: LockClaim) -> None:
        self._client = client
        self._claim = claim
        self._ref = LEASES.named(LEASE_NAME, claim.namespace)
        self._lease: RawObject = {}
        self._last_seen = ("", 0.0)
        """The resourceVersion that was read last, and since when it is unchanged."""
        self.delete_on_release = False
        """Delete the Lease on release, because no later run needs it."""
        self._renewed_at = client.clock.monotonic()

    @property
    def _clock(self) -> Clock:
        return self._client.clock

    def check(self) -> None:
        """Raise `LockLost` if the Lease was not renewed in time."""
        if self._clock.monotonic() - self._renewed_at > RENEW_DEADLINE:
            raise LockLost("the lock could not be renewed; nothing more is written", where=str(self._ref))

    async def wait_until_free(self) -> RawObject | None:
        """Return the Lease that can be acquired, `None` if it does not exist; raise `Locked` if its holder renews it.

        Returns at once if the Lease has no holder, otherwise after it was not renewed for the lease duration.
        """
        while True:
            lease = await self.read_lease()
            version = lease["metadata"]["resourceVersion"] if lease else ""
            last_version, since = self._last_seen
            if version != last_version:
                since = self._clock.monotonic()
                self._last_seen = (version, since)
            if lease is None or not _holder(lease):
                return lease
            if last_version and version != last_version:
                raise self._locked_error(lease)
            is_silent = self._clock.monotonic() - since > LEASE_DURATION
            if is_silent:
                return lease
            await self._clock.sleep(LEASE_POLL_INTERVAL)

    async def read_lease(self) -> RawObject | None:
        """The Lease, held or not; `None` if it does not exist."""
        try:
            return await self._client.get(self._ref)
        except NotFound:
            return None

    async def try_acquire(self, lease: RawObject | None) -> bool:
        """Return `False`, after a pause, if another run was faster."""
        requested_at = self._clock.monotonic()
        spec = self._new_spec(lease)
        meta = {"name": LEASE_NAME, "namespace": self._claim.namespace}
        try:
            if lease is None:
                collection = LEASES.in_namespace(self._claim.namespace)
                body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": spec}
                self._lease = await self._client.create(collection, body)
            else:
                self._lease = await self._client.replace(self._ref, {**lease, "spec": spec})
        except (AlreadyExists, Conflict):
            await self._clock.sleep(LEASE_POLL_INTERVAL)
            return False
        self._renewed_at = requested_at
        return True

    def _new_spec(self, lease: RawObject | None) -> RawObject:
        old = (lease or {}).get("spec") or {}
        now = _format_time(self._claim.now())
        return {
            "holderIdentity": self._claim.holder,
            "leaseDurationSeconds": int(LEASE_DURATION),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + 1,
        }

    def _locked_error(self, lease: RawObject) -> Locked:
        spec = lease.get("spec") or {}
        holder = f"run {spec.get('holderIdentity') or 'of somebody else'}"
        since = f", since {spec['acquireTime']}" if spec.get("acquireTime") else ""
        hint = "wait for it to end; a run that died gives way after 15 s"
        return Locked(f"another run is at work: {holder}{since}", where=str(self._ref), hint=hint)

    async def renew_until_lost(self, on_lost: Callable[[WindlassError], None]) -> None:
        """Renew until the lock is lost; then `check` refuses all further writes, and `on_lost` gets the error."""
        try:
            while True:
                await self._clock.sleep(RENEW_INTERVAL)
                await self._renew()
        except LockLost as error:
            self._renewed_at = float("-inf")
            on_lost(error)

    async def _renew(self) -> None:
        requested_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(RENEW_DEADLINE):
                await self._update_lease({"renewTime": _format_time(self._claim.now())})
        except NotFound:
            raise self._lock_lost_error() from None
        except (KubeError, TimeoutError):
            self.check()  # retry while there is time
        else:
            self._renewed_at = requested_at

    async def _update_lease(self, changes: RawObject) -> None:
        """Update the Lease. On a conflict with our own write, whose response was lost, the lock is still ours."""
        try:
            self._lease = await self._client.replace(self._ref, self._lease_with(changes))
        except Conflict:
            current = await self._client.get(self._ref)
            if _holder(current) != self._claim.holder:
                raise self._lock_lost_error() from None
            self._lease = current
            self._lease = await self._client.replace(self._ref, self._lease_with(changes))

    def _lease_with(self, changes: RawObject) -> RawObject:
        return {**self._lease, "spec": {**self._lease["spec"], **changes}}

    def _lock_lost_error(self) -> LockLost:
        return LockLost("somebody else has taken the lock", where=str(self._ref))

    async def release(self) -> None:
        """Release the lock; if that fails, it expires after the lease duration."""
        meta = self._lease["metadata"]
        try:
            if self.delete_on_release:
                await self._client.delete(self._ref, uid=meta["uid"], resource_version=meta["resourceVersion"])
            else:
                await self._update_lease({"holderIdentity": ""})
        except (KubeError, LockLost):
            return


def _holder(lease: RawObject) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _format_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@asynccontextmanager
async def acquire_lock(lock: RunLock, control: RunControl) -> AsyncIterator[None]:
    """Acquire the lock and renew it until the context ends. A stopped run stops waiting; a lost lock stops the run."""
    while not await lock.try_acquire(await control.unless_stopped(lock.wait_until_free())):
        pass
    async with asyncio.TaskGroup() as tasks:
        renewal = tasks.create_task(lock.renew_until_lost(control.fail), name="lock")
        try:
            yield
        finally:
            renewal.cancel()
            await lock.release()
