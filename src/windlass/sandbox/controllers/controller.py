"""Base class of the sandbox's controllers: a user, an informer cache with a lag, a work queue and one worker.

Nothing polls: a controller sleeps until a change reaches its cache or a queued object is due.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.faults import ConnectionSevered
from windlass.sandbox.apiserver.requests import RequestOptions
from windlass.sandbox.apiserver.wire.api_status import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from windlass.sandbox.apiserver.requests import UserInfo
    from windlass.sandbox.apiserver.store import StoreChange, StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.sandbox import Sandbox

StoreKey = tuple[str, str, str]
"""Kind, namespace and name of an object: `("deployments.apps", "web", "front")`."""
CACHE_LAG = 0.01  # seconds until a write of another client reaches the informer cache
INITIAL_RETRY_DELAY, MAX_RETRY_DELAY = 0.05, 60.0  # seconds before a failed reconcile is retried, doubling


class SandboxController:
    """Level-triggered controller: `reconcile` acts on the current state, not on the event that queued the object."""

    user: ClassVar[UserInfo]
    primary: ClassVar[str]
    """The kind this controller reconciles."""
    watched: ClassVar[tuple[str, ...]] = ()
    """Further kinds to watch; a change of such an object enqueues its owners. An empty string watches all kinds."""

    def __init__(self, sandbox: Sandbox, *, lag: float = CACHE_LAG) -> None:
        self.clock = sandbox.clock
        self.lag = lag
        self.dropped_updates: dict[str, int] = {}
        """By object name: how many updates by other clients never reach the cache. The next update repairs it."""
        self.client = sandbox.client(self.user, share_objects=True)
        self.catalogue = sandbox.server.catalogue
        self._store = sandbox.server.store
        self._pending_changes: deque[StoreChange] = deque()
        self._wake_event = asyncio.Event()
        self.is_paused = False
        self.reset()
        for kind in self._kinds:
            self._store.listen(kind, "", self._add_change)
        sandbox.start(sandbox.repeat(self._run), name=type(self).__name__)

    @property
    def _kinds(self) -> tuple[str, ...]:
        return ("",) if "" in self.watched else (self.primary, *self.watched)

    async def reconcile(self, key: StoreKey, body: Body, /) -> float | None:
        """Bring one object to its desired state; return the seconds until the next reconcile, `None` for no requeue."""
        raise NotImplementedError

    def discard_state(self, key: StoreKey) -> None:
        """Drop what this controller remembers about an object that no longer exists."""

    def affected_keys(self, change: StoreChange) -> Iterable[StoreKey]:
        """Keys to enqueue after a change: the object itself if it is of the primary kind, else its owners."""
        if change.new.kind_id == self.primary:
            return [store_key(change.new)]
        owners = (self._store.by_uid(uid) for uid in (*change.new.owners, *(change.old.owners if change.old else ())))
        return [store_key(owner) for owner in owners if owner is not None and owner.kind_id == self.primary]

    def pause(self) -> None:
        """Stop reconciling until `resume`, or until `restart` as after a crash."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self._wake_event.set()

    def restart(self) -> None:
        """Start again without memory: list all objects and reconcile each of the primary kind."""
        self.reset()
        self.resume()

    def enqueue(self, key: StoreKey, delay: float = 0.0) -> None:
        """Reconcile an object after a delay, or earlier if it is already due earlier."""
        due = self.clock.now() + timedelta(seconds=delay)
        if key not in self._due_times or due < self._due_times[key]:
            self._due_times[key] = due
            self._sequence += 1
            heapq.heappush(self._queue, (due, self._sequence, key))
            self._wake_event.set()

    def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """The object in the informer cache, `None` if it is not there."""
        stored = self._cache.get(kind, {}).get((namespace, name))
        return None if stored is None else self._with_type_meta(stored)

    def reread(self, kind: str, body: Body) -> Body:
        """The current cached version of an object, or the given one if it is no longer cached."""
        meta = body["metadata"]
        return self.find(kind, meta["name"], meta.get("namespace", "")) or body

    def list_objects(self, kind: str, namespace: str = "") -> Iterator[Body]:
        for (object_namespace, _), stored in sorted(self._cache.get(kind, {}).items()):
            if namespace in {"", object_namespace}:
                yield self._with_type_meta(stored)

    def list_owned(self, kind: str, owner: Body) -> list[Body]:
        """Cached objects of a kind with this owner, sorted by namespace and name."""
        keys = sorted(key for key in self._by_owner.get(owner["metadata"]["uid"], ()) if key[0] == kind)
        return [self._with_type_meta(self._cache[kind][place[1:]]) for place in keys]

    async def create(self, kind: str, body: Body, namespace: str = "") -> Body:
        created = await self.client.create(kind, body, namespace)
        return self._cache_own_write(kind, created)

    async def patch(self, kind: str, body: Body, changes: Body, *, subresource: str = "") -> Body:
        meta = body["metadata"]
        changed = await self.client.patch(
            kind, meta["name"], changes, meta.get("namespace", ""), subresource=subresource
        )
        return self._cache_own_write(kind, changed)

    async def write_status(self, kind: str, body: Body, status: Body) -> None:
        """Update the status if it differs; a conflict is raised if the given version is outdated."""
        if body.get("status") != status:
            changed = await self.client.update(kind, {**body, "status": status}, subresource="status")
            self._cache_own_write(kind, changed)

    async def delete(self, kind: str, body: Body, *, policy: str = "Background", grace: int | None = None) -> None:
        meta = body["metadata"]
        options = RequestOptions(propagation=policy, uid=meta["uid"], grace=grace)
        await self.client.delete(kind, meta["name"], meta.get("namespace", ""), options=options)
        self._cache_own_write(kind, body)

    def _cache_own_write(self, kind: str, body: Body) -> Body:
        """Cache the result of an own write at once: with a stale cache, the next reconcile would repeat the write."""
        meta = body["metadata"]
        key = (kind, meta.get("namespace", ""), meta["name"])
        self.update_cache(key, self._store.get(*key))
        return body

    def update_cache(self, key: StoreKey, stored: StoredObject | None) -> None:
        """Store the current version of an object in the cache; `None` removes it."""
        cached = self._cache.setdefault(key[0], {})
        old = cached.get(key[1:])
        for uid in old.owners if old else ():
            self._by_owner[uid].pop(key, None)
        if stored is None:
            cached.pop(key[1:], None)
            return
        cached[key[1:]] = stored
        for uid in stored.owners:
            self._by_owner.setdefault(uid, {})[key] = None

    def _with_type_meta(self, stored: StoredObject) -> Body:
        if stored.kind_id not in self._type_meta:
            kind = self.catalogue.by_id(stored.kind_id)
            assert kind is not None
            self._type_meta[stored.kind_id] = kind.type_meta
        return {**self._type_meta[stored.kind_id], **stored.body}

    def reset(self) -> None:
        """Rebuild cache and work queue from a fresh list; a subclass with more state resets that as well."""
        self._pending_changes.clear()
        self._type_meta: dict[str, Body] = {}
        self._cache: dict[str, dict[tuple[str, str], StoredObject]] = {}
        self._by_owner: dict[str, dict[StoreKey, None]] = {}
        self._due_times: dict[StoreKey, datetime] = {}
        self._queue: list[tuple[datetime, int, StoreKey]] = []
        self._failures: dict[StoreKey, int] = {}
        self._sequence = 0
        kinds = [kind.id for kind in self.catalogue] if "" in self.watched else self._kinds
        for kind in dict.fromkeys(kinds):
            for stored in self._store.list(kind):
                self.update_cache(store_key(stored), stored)
                if kind == self.primary:
                    self.enqueue(store_key(stored))

    def _add_change(self, change: StoreChange) -> None:
        if not self._pending_changes:
            self._wake_event.set()  # otherwise the worker already wakes for the oldest pending change
        self._pending_changes.append(change)

    def _process_changes(self) -> None:
        """Apply the pending changes that are older than the lag, and enqueue what they affect."""
        visible_until = self.clock.now() - timedelta(seconds=self.lag)
        while self._pending_changes and self._pending_changes[0].at <= visible_until:
            change = self._pending_changes.popleft()
            key = store_key(change.new)
            cached = self._cache.get(key[0], {}).get(key[1:])
            if cached is None or cached.version < change.new.version:
                if cached and key[0] == self.primary and self.dropped_updates.get(key[2]):
                    self.dropped_updates[key[2]] -= 1
                    continue
                self.update_cache(key, None if change.type == "DELETED" else change.new)
            for affected in self.affected_keys(change):
                self.enqueue(affected)

    async def _run(self) -> None:
        while True:
            self._wake_event.clear()
            if self.is_paused:
                await self._wake_event.wait()
                continue
            self._process_changes()
            if key := self._pop_due_key():
                await self._reconcile_key(key)
            else:
                await self._wait()

    def _pop_due_key(self) -> StoreKey | None:
        while self._queue and self._queue[0][0] <= self.clock.now():
            due, _, key = heapq.heappop(self._queue)
            if self._due_times.get(key) == due:  # otherwise it was due earlier and is already reconciled
                del self._due_times[key]
                return key
        return None

    async def _reconcile_key(self, key: StoreKey) -> None:
        try:
            body = self.find(key[0], key[2], key[1])
            if body is None:
                self.discard_state(key)
            delay = await self.reconcile(key, body) if body else None
            self._failures.pop(key, None)
        except (StatusError, ConnectionSevered):  # conflict or connection failure: retry with backoff
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = min(MAX_RETRY_DELAY, INITIAL_RETRY_DELAY * 2 ** (failures - 1))
        if delay is not None:
            self.enqueue(key, delay)

    async def _wait(self) -> None:
        wake_times = [change.at + timedelta(seconds=self.lag) for change in [*self._pending_changes][:1]]
        wake_times += [when for when, _, _ in self._queue[:1]]
        await self.clock.wait(self._wake_event, wake_times)


def store_key(stored: StoredObject) -> StoreKey:
    return (stored.kind_id, stored.namespace, stored.name)
