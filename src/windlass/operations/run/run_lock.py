"""One run per cluster: a Lease that the run renews; nothing is written once it could not be renewed in time.

A holder counts as dead after the Lease was not seen to change for the lease duration; clocks are never compared.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.access_reviews import Right
from windlass.kube.api_errors import AlreadyExists, Conflict, KubeError, NotFound
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from datetime import datetime

    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.objects import Plain
    from windlass.kube.clocks import Clock
    from windlass.operations.run.context import Control

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
NAME = "windlass"
DURATION = 15.0  # seconds without a renewal after which a holder counts as dead
RENEWED_EVERY = 4.0
RENEWED_WITHIN = 10.0  # seconds without a renewal after which nothing is written; well before another run takes over
LOOKED_AT_EVERY = 1.0


def rights(namespace: str, *, is_last: bool = False) -> Iterator[Right]:
    """Permissions needed to hold the lock and, `with_delete`, to delete its Lease at the end."""
    verbs = ("get", "create", "update", *(("delete",) if is_last else ()))
    return (Right(verb, LEASES, namespace) for verb in verbs)


class Locked(WindlassError):
    """Another run holds the lock."""


class LockLost(WindlassError):
    """The Lease could not be renewed: another run may hold it by now."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who acquires the lock, and in which namespace it is."""

    holder: str
    namespace: str
    now: Callable[[], datetime]
    """Current time by the server's clock."""


class Lock:
    """The lock of one run; `acquire_lock` holds it. Call `check` before every write."""

    def __init__(self, client: KubeClient, claim: Claim) -> None:
        self._client = client
        self._claim = claim
        self._ref = LEASES.named(NAME, claim.namespace)
        self._lease: Plain = {}
        self._seen = ("", 0.0)
        """The resourceVersion that was read last, and since when it is unchanged."""
        self.is_last = False
        """Delete the Lease on release, because no later run needs it."""
        self._renewed = client.clock.monotonic()

    @property
    def _clock(self) -> Clock:
        return self._client.clock

    def check(self) -> None:
        """Raise `LockLost` if the Lease was not renewed in time."""
        if self._clock.monotonic() - self._renewed > RENEWED_WITHIN:
            raise LockLost("the lock could not be renewed; nothing more is written", where=str(self._ref))

    async def until_free(self) -> Plain | None:
        """Return the Lease that can be acquired, `None` if it does not exist; raise `Locked` if its holder renews it.

        Returns at once if the Lease has no holder, otherwise after it was not renewed for the lease duration.
        """
        while True:
            lease = await self.read()
            version = lease["metadata"]["resourceVersion"] if lease else ""
            seen, since = self._seen
            if version != seen:
                since = self._clock.monotonic()
                self._seen = (version, since)
            if lease is None or not _holder(lease):
                return lease
            if seen and version != seen:
                raise self._locked(lease)
            is_silent = self._clock.monotonic() - since > DURATION
            if is_silent:
                return lease
            await self._clock.sleep(LOOKED_AT_EVERY)

    async def read(self) -> Plain | None:
        """The Lease, held or not; `None` if it does not exist."""
        try:
            return await self._client.get(self._ref)
        except NotFound:
            return None

    async def take(self, lease: Plain | None) -> bool:
        """Return `False`, after a pause, if another run was faster."""
        asked = self._clock.monotonic()
        spec = self._spec(lease)
        meta = {"name": NAME, "namespace": self._claim.namespace}
        try:
            if lease is None:
                collection = LEASES.within(self._claim.namespace)
                body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": spec}
                self._lease = await self._client.create(collection, body)
            else:
                self._lease = await self._client.replace(self._ref, {**lease, "spec": spec})
        except (AlreadyExists, Conflict):
            await self._clock.sleep(LOOKED_AT_EVERY)
            return False
        self._renewed = asked
        return True

    def _spec(self, lease: Plain | None) -> Plain:
        old = (lease or {}).get("spec") or {}
        now = _told(self._claim.now())
        return {
            "holderIdentity": self._claim.holder,
            "leaseDurationSeconds": int(DURATION),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + 1,
        }

    def _locked(self, lease: Plain) -> Locked:
        spec = lease.get("spec") or {}
        who = f"run {spec.get('holderIdentity') or 'of somebody else'}"
        since = f", since {spec['acquireTime']}" if spec.get("acquireTime") else ""
        hint = "wait for it to end; a run that died gives way after 15 s"
        return Locked(f"another run is at work: {who}{since}", where=str(self._ref), hint=hint)

    async def keep(self, lost: Callable[[WindlassError], None]) -> None:
        """Renew until the lock is lost; then `check` refuses all further writes, and `on_lost` gets the error."""
        try:
            while True:
                await self._clock.sleep(RENEWED_EVERY)
                await self._renew()
        except LockLost as error:
            self._renewed = float("-inf")
            lost(error)

    async def _renew(self) -> None:
        asked = self._clock.monotonic()
        try:
            async with asyncio.timeout(RENEWED_WITHIN):
                await self._write({"renewTime": _told(self._claim.now())})
        except NotFound:
            raise self._lost() from None
        except (KubeError, TimeoutError):
            self.check()  # retry while there is time
        else:
            self._renewed = asked

    async def _write(self, changes: Plain) -> None:
        """Update the Lease. On a conflict with our own write, whose response was lost, the lock is still ours."""
        try:
            self._lease = await self._client.replace(self._ref, self._changed(changes))
        except Conflict:
            found = await self._client.get(self._ref)
            if _holder(found) != self._claim.holder:
                raise self._lost() from None
            self._lease = found
            self._lease = await self._client.replace(self._ref, self._changed(changes))

    def _changed(self, changes: Plain) -> Plain:
        return {**self._lease, "spec": {**self._lease["spec"], **changes}}

    def _lost(self) -> LockLost:
        return LockLost("somebody else has taken the lock", where=str(self._ref))

    async def release(self) -> None:
        """Release the lock; if that fails, it expires after the lease duration."""
        meta = self._lease["metadata"]
        try:
            if self.is_last:
                await self._client.delete(self._ref, uid=meta["uid"], version=meta["resourceVersion"])
            else:
                await self._write({"holderIdentity": ""})
        except (KubeError, LockLost):
            return


def _holder(lease: Plain) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _told(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@asynccontextmanager
async def locked(lock: Lock, control: Control) -> AsyncIterator[None]:
    """Acquire the lock and renew it until the context ends. A stopped run stops waiting; a lost lock stops the run."""
    while not await lock.take(await control.unless_stopped(lock.until_free())):
        pass
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(lock.keep(control.fail), name="lock")
        try:
            yield
        finally:
            keeping.cancel()
            await lock.release()
