"""One run per cluster: a Lease that is renewed while the run lives, and no write after it could not be renewed.

Whether a holder is alive is told by its silence as we see it, never by comparing clocks.
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
DURATION = 15.0  # seconds of silence after which a holder counts as dead
RENEWED_EVERY = 4.0
RENEWED_WITHIN = 10.0  # after this long without success nothing is written any more; well before others take over
LOOKED_AT_EVERY = 1.0


def rights(namespace: str, *, is_last: bool = False) -> Iterator[Right]:
    """What taking the lock needs, and removing it after the last run."""
    verbs = ("get", "create", "update", *(("delete",) if is_last else ()))
    return (Right(verb, LEASES, namespace) for verb in verbs)


class Locked(WindlassError):
    """Another run is at work."""


class LockLost(WindlassError):
    """The Lease could not be renewed: somebody else may be at work by now."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who wants the lock, and where it is."""

    holder: str
    namespace: str
    now: Callable[[], datetime]
    """By the server's clock."""


class Lock:
    """Held until the context ends. Ask `check` before every write."""

    def __init__(self, client: KubeClient, claim: Claim) -> None:
        self._client = client
        self._claim = claim
        self._ref = LEASES.named(NAME, claim.namespace)
        self._lease: Plain = {}
        self._seen = ("", 0.0)
        """The version that was looked at last, and since when it is that one."""
        self.is_last = False
        """Nobody will ask for it again: at its end it is deleted."""
        self._renewed = client.clock.monotonic()

    @property
    def _clock(self) -> Clock:
        return self._client.clock

    def check(self) -> None:
        if self._clock.monotonic() - self._renewed > RENEWED_WITHIN:
            raise LockLost("the lock could not be renewed; nothing more is written", where=str(self._ref))

    async def until_free(self) -> Plain | None:
        """The Lease that can be taken: at once if nobody holds it, else after its holder was silent for long enough."""
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
        """The Lease as it is, held by somebody or not."""
        try:
            return await self._client.get(self._ref)
        except NotFound:
            return None

    async def take(self, lease: Plain | None) -> bool:
        """False, after a moment, if somebody else was quicker."""
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
        """Renews it until it is lost; then nothing may be written any more, and `lost` hears why."""
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
            self.check()  # once more, while there is time
        else:
            self._renewed = asked

    async def _write(self, changes: Plain) -> None:
        """A conflict may be with a write of our own whose answer was lost: then the lock is still ours."""
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
        """Nobody holds it any more; a release that fails is made up for by silence."""
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
    """Waiting for it ends with the run; a run ends if the lock is lost."""
    while not await lock.take(await control.unless_stopped(lock.until_free())):
        pass
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(lock.keep(control.fail), name="lock")
        try:
            yield
        finally:
            keeping.cancel()
            await lock.release()
