"""Leases that one process holds, and the client that writes only while its lease is held.

The run lock and leader election are such leases. A holder counts as dead after its Lease was not seen to change for the
lease duration; clocks are never compared.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.api_errors import (
    AlreadyExists,
    Conflict,
    ConnectionLost,
    DeadlineExceeded,
    KubeError,
    NotFound,
    Unreachable,
)
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.resources import LEASES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from datetime import datetime

    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.resources import Ref
    from windlass.kube.clocks import Clock

LEASE_DURATION = 15.0  # seconds without a renewal after which a holder counts as dead
RENEW_INTERVAL = 4.0
RENEW_DEADLINE = 10.0  # seconds without a renewal after which nothing is written; well before another holder takes over
LEASE_POLL_INTERVAL = 1.0
NO_ANSWER = (TimeoutError, Unreachable, ConnectionLost, DeadlineExceeded)


class LockLost(WindlassError):
    """The Lease could not be renewed: another process may hold it by now."""


class LeaseStatus(Enum):
    FREE = auto()
    """It does not exist, or it has no holder."""
    HELD = auto()
    """It has a holder, which has not been silent for the lease duration yet."""
    RENEWED = auto()
    """Its holder is alive: the Lease has changed since it was last observed."""
    EXPIRED = auto()
    """It has a holder and has not changed for the lease duration."""


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """Which Lease is held, and its holder."""

    name: str
    namespace: str
    holder: str
    now: Callable[[], datetime]
    """Current time by the server's clock."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Written whenever it is acquired."""


class ProcessLease:
    """A Lease that this process can acquire, renew and release."""

    def __init__(self, client: KubeClient, claim: LeaseClaim) -> None:
        self._client = client
        self._claim = claim
        self.ref: Ref = LEASES.named(claim.name, claim.namespace)
        self._lease: RawObject = {}
        self._last_seen = ("", 0.0)
        """The resourceVersion that was read last, and since when it is unchanged."""
        self._deletes_on_release = False
        self._renewed_at = float("-inf")
        """Time of the last renewal; before it is acquired and after it is released, no write is allowed."""
        self._renewal_error: Exception | None = None
        """Why the last attempt to renew it failed."""

    @property
    def clock(self) -> Clock:
        return self._client.clock

    def check(self) -> None:
        """Raise `LockLost` if the Lease was not renewed in time."""
        if self.clock.monotonic() - self._renewed_at > RENEW_DEADLINE:
            raise LockLost(self._loss_reason())

    def _loss_reason(self) -> str:
        """The cause, not the Lease: a server that does not answer renews nothing."""
        error = self._renewal_error
        if error is None or isinstance(error, NO_ANSWER):
            server, effect = self._client.server, "the lock could not be renewed, and nothing more is written"
            return f"the API server {server} has not answered for {RENEW_DEADLINE:g} s, so {effect}"
        return f"the lock could not be renewed for {RENEW_DEADLINE:g} s, so nothing more is written: {error}"

    async def read(self) -> RawObject | None:
        """The Lease, held or not; `None` if it does not exist."""
        try:
            return await self._client.get(self.ref)
        except NotFound:
            return None

    async def observe(self) -> tuple[RawObject | None, LeaseStatus]:
        """Read the Lease and compare it with what the previous call saw."""
        lease = await self.read()
        version = lease["metadata"]["resourceVersion"] if lease else ""
        last_version, since = self._last_seen
        if version != last_version:
            since = self.clock.monotonic()
            self._last_seen = (version, since)
        if lease is None or not holder_of(lease):
            return lease, LeaseStatus.FREE
        if last_version and version != last_version:
            return lease, LeaseStatus.RENEWED
        is_expired = self.clock.monotonic() - since > LEASE_DURATION
        return lease, LeaseStatus.EXPIRED if is_expired else LeaseStatus.HELD

    async def _try_acquire(self, lease: RawObject | None, annotations: Mapping[str, str]) -> bool:
        """Acquire the Lease as it was observed; return `False`, after a pause, if another process was faster."""
        requested_at = self.clock.monotonic()
        spec = self._new_spec(lease)
        meta: RawObject = (
            dict(lease["metadata"]) if lease else {"name": self._claim.name, "namespace": self._claim.namespace}
        )
        if added := {**self._claim.annotations, **annotations}:
            meta["annotations"] = {**(meta.get("annotations") or {}), **added}
        try:
            if lease is None:
                collection = LEASES.in_namespace(self._claim.namespace)
                body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": spec}
                self._lease = await self._client.create(collection, body)
            else:
                self._lease = await self._client.replace(self.ref, {**lease, "metadata": meta, "spec": spec})
        except (AlreadyExists, Conflict):
            await self.clock.sleep(LEASE_POLL_INTERVAL)
            return False
        self._renewed_at = requested_at
        return True

    @asynccontextmanager
    async def hold(
        self,
        wait_until_free: Callable[[], Awaitable[RawObject | None]],
        on_lost: Callable[[WindlassError], None],
        annotations: Mapping[str, str] | None = None,
    ) -> AsyncIterator[LockedClient]:
        """Acquire the Lease, renew it until the context ends, then release it.

        `wait_until_free` returns the Lease that may be acquired, `None` if it does not exist. `on_lost` is called if
        the Lease is lost. `annotations` are written when it is acquired, and stay after it is released.
        """
        while not await self._try_acquire(await wait_until_free(), annotations or {}):
            pass
        async with asyncio.TaskGroup() as tasks:
            renewal = tasks.create_task(self._renew_until_lost(on_lost), name="lock")
            try:
                yield LockedClient(self._client, self)
            finally:
                renewal.cancel()
                await self._release()
                self._renewed_at = float("-inf")

    def delete_on_release(self) -> None:
        """Delete the Lease when it is released, because no later process needs it."""
        self._deletes_on_release = True

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

    async def _renew_until_lost(self, on_lost: Callable[[WindlassError], None]) -> None:
        """Renew until the Lease is lost; then `check` refuses all further writes, and `on_lost` gets the error."""
        try:
            while True:
                await self.clock.sleep(RENEW_INTERVAL)
                await self._renew()
        except LockLost as error:
            self._renewed_at = float("-inf")
            on_lost(error)

    async def _renew(self) -> None:
        requested_at = self.clock.monotonic()
        try:
            async with asyncio.timeout(RENEW_DEADLINE):
                await self._update({"renewTime": _format_time(self._claim.now())})
        except NotFound:
            raise self._lost_error() from None
        except (KubeError, TimeoutError) as error:
            self._renewal_error = error
            self.check()  # retry while there is time
        else:
            self._renewed_at = requested_at

    async def _update(self, changes: RawObject) -> None:
        """Update the Lease. On a conflict with our own write, whose response was lost, it is still ours."""
        try:
            self._lease = await self._client.replace(self.ref, self._lease_with(changes))
        except Conflict:
            current = await self._client.get(self.ref)
            if holder_of(current) != self._claim.holder:
                raise self._lost_error() from None
            self._lease = current
            self._lease = await self._client.replace(self.ref, self._lease_with(changes))

    def _lease_with(self, changes: RawObject) -> RawObject:
        return {**self._lease, "spec": {**self._lease["spec"], **changes}}

    def _lost_error(self) -> LockLost:
        return LockLost("another run has taken the lock", where=str(self.ref))

    async def _release(self) -> None:
        """Release the Lease; if that fails, it expires after the lease duration."""
        try:
            if self._deletes_on_release:
                await self._delete()
            else:
                await self._update({"holderIdentity": ""})
        except (KubeError, LockLost):
            return

    async def _delete(self) -> None:
        """Delete the Lease. On a conflict with our own renewal, whose response was lost, it is still ours."""
        try:
            await self._delete_version(self._lease)
        except Conflict:
            current = await self._client.get(self.ref)
            if holder_of(current) == self._claim.holder:
                await self._delete_version(current)

    async def _delete_version(self, lease: RawObject) -> None:
        meta = lease["metadata"]
        await self._client.delete(self.ref, uid=meta["uid"], resource_version=meta["resourceVersion"])


class LockedClient(KubeClient):
    """A client made from a lease: before each attempt of a write it checks that the lease is held."""

    def __init__(self, client: KubeClient, lease: ProcessLease) -> None:
        super().__init__(client._sender, field_manager=client._field_manager)  # noqa: SLF001 - the client it replaces
        self._check_write = lease.check


def holder_of(lease: RawObject) -> str:
    """Identity of the holder; empty if there is none."""
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _format_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
