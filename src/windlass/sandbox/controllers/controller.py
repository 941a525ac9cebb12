"""Base class of the sandbox's controllers: a user, an informer cache with a lag, a work queue and one worker.

Nothing polls: a controller sleeps until a change reaches its cache or a queued object is due.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.faults import Severed
from windlass.sandbox.apiserver.requests import Options
from windlass.sandbox.apiserver.wire.api_status import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from windlass.sandbox.apiserver.requests import User
    from windlass.sandbox.apiserver.store import Change, Stored
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.sandbox import Sandbox

Place = tuple[str, str, str]
"""Kind, namespace and name of an object: `("deployments.apps", "web", "front")`."""
LAG = 0.01  # seconds until a write of another client reaches the informer cache
FIRST_RETRY, LAST_RETRY = 0.05, 60.0  # seconds before a failed reconcile is retried, doubling


class Actor:
    """Level-triggered controller: `reconcile` acts on the current state, not on the event that queued the object."""

    user: ClassVar[User]
    primary: ClassVar[str]
    """The kind this controller reconciles."""
    watched: ClassVar[tuple[str, ...]] = ()
    """Further kinds to watch; a change of such an object enqueues its owners. An empty string watches all kinds."""

    def __init__(self, sandbox: Sandbox, *, lag: float = LAG) -> None:
        self.sources = sandbox.sources
        self.lag = lag
        self.overlooks: dict[str, int] = {}
        """By object name: how many updates by other clients never reach the cache. The next update repairs it."""
        self.calls = sandbox.caller(self.user, shares=True)
        self.catalogue = sandbox.server.catalogue
        self._store = sandbox.server.store
        self._news: deque[Change] = deque()
        self._wakened = asyncio.Event()
        self._paused = False
        self.forget()
        for kind in self._kinds:
            self._store.listen(kind, "", self._hear)
        sandbox.start(self._run(), name=type(self).__name__)

    @property
    def _kinds(self) -> tuple[str, ...]:
        return ("",) if "" in self.watched else (self.primary, *self.watched)

    async def reconcile(self, place: Place, found: Body, /) -> float | None:
        """Bring one object to its desired state; return the seconds until the next reconcile, `None` for no requeue."""
        raise NotImplementedError

    def gone(self, place: Place) -> None:
        """Drop what this controller remembers about an object that no longer exists."""

    def concerned(self, change: Change) -> Iterable[Place]:
        """Keys to enqueue after a change: the object itself if it is of the primary kind, else its owners."""
        if change.new.kind_id == self.primary:
            return [place_of(change.new)]
        owners = (self._store.by_uid(uid) for uid in (*change.new.owners, *(change.old.owners if change.old else ())))
        return [place_of(owner) for owner in owners if owner is not None and owner.kind_id == self.primary]

    def pause(self) -> None:
        """Stop reconciling until `resume`, or until `restart` as after a crash."""
        self._paused = True

    def go_on(self) -> None:
        self._paused = False
        self._wakened.set()

    def restart(self) -> None:
        """Start again without memory: list all objects and reconcile each of the primary kind."""
        self.forget()
        self.go_on()

    def later(self, place: Place, seconds: float = 0.0) -> None:
        """Reconcile an object after a delay, or earlier if it is already due earlier."""
        when = self.sources.now() + timedelta(seconds=seconds)
        if place not in self._due or when < self._due[place]:
            self._due[place] = when
            self._tickets += 1
            heapq.heappush(self._order, (when, self._tickets, place))
            self._wakened.set()

    def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """The object in the informer cache, `None` if it is not there."""
        found = self._known.get(kind, {}).get((namespace, name))
        return None if found is None else self._loaded(found)

    def again(self, kind: str, body: Body) -> Body:
        """The current cached version of an object, or the given one if it is no longer cached."""
        meta = body["metadata"]
        return self.find(kind, meta["name"], meta.get("namespace", "")) or body

    def every(self, kind: str, namespace: str = "") -> Iterator[Body]:
        for (where, _), found in sorted(self._known.get(kind, {}).items()):
            if namespace in {"", where}:
                yield self._loaded(found)

    def owned(self, kind: str, owner: Body) -> list[Body]:
        """Cached objects of a kind with this owner, sorted by namespace and name."""
        places = sorted(place for place in self._owned.get(owner["metadata"]["uid"], ()) if place[0] == kind)
        return [self._loaded(self._known[kind][place[1:]]) for place in places]

    async def create(self, kind: str, body: Body, namespace: str = "") -> Body:
        made = await self.calls.create(kind, body, namespace)
        return self._remembering(kind, made)

    async def patch(self, kind: str, found: Body, changes: Body, *, subresource: str = "") -> Body:
        meta = found["metadata"]
        changed = await self.calls.patch(
            kind, meta["name"], changes, meta.get("namespace", ""), subresource=subresource
        )
        return self._remembering(kind, changed)

    async def write_status(self, kind: str, found: Body, status: Body) -> None:
        """Update the status if it differs; a conflict is raised if the given version is outdated."""
        if found.get("status") != status:
            changed = await self.calls.update(kind, {**found, "status": status}, subresource="status")
            self._remembering(kind, changed)

    async def delete(self, kind: str, found: Body, *, policy: str = "Background", grace: int | None = None) -> None:
        meta = found["metadata"]
        options = Options(propagation=policy, uid=meta["uid"], grace=grace)
        await self.calls.delete(kind, meta["name"], meta.get("namespace", ""), options=options)
        self._remembering(kind, found)

    def _remembering(self, kind: str, body: Body) -> Body:
        """Cache the result of an own write at once: with a stale cache, the next reconcile would repeat the write."""
        meta = body["metadata"]
        place = (kind, meta.get("namespace", ""), meta["name"])
        self.know(place, self._store.get(*place))
        return body

    def know(self, place: Place, found: Stored | None) -> None:
        """Store the current version of an object in the cache; `None` removes it."""
        known = self._known.setdefault(place[0], {})
        old = known.get(place[1:])
        for uid in old.owners if old else ():
            self._owned[uid].pop(place, None)
        if found is None:
            known.pop(place[1:], None)
            return
        known[place[1:]] = found
        for uid in found.owners:
            self._owned.setdefault(uid, {})[place] = None

    def _loaded(self, found: Stored) -> Body:
        if found.kind_id not in self._heads:
            kind = self.catalogue.find(found.kind_id)
            assert kind is not None
            self._heads[found.kind_id] = kind.head
        return {**self._heads[found.kind_id], **found.body}

    def forget(self) -> None:
        """Rebuild cache and work queue from a fresh list; a subclass with more state resets that as well."""
        self._news.clear()
        self._heads: dict[str, Body] = {}
        self._known: dict[str, dict[tuple[str, str], Stored]] = {}
        self._owned: dict[str, dict[Place, None]] = {}
        self._due: dict[Place, datetime] = {}
        self._order: list[tuple[datetime, int, Place]] = []
        self._refused: dict[Place, int] = {}
        self._tickets = 0
        kinds = [kind.id for kind in self.catalogue] if "" in self.watched else self._kinds
        for kind in dict.fromkeys(kinds):
            for found in self._store.list(kind):
                self.know(place_of(found), found)
                if kind == self.primary:
                    self.later(place_of(found))

    def _hear(self, change: Change) -> None:
        if not self._news:
            self._wakened.set()  # otherwise the worker already wakes for the oldest pending change
        self._news.append(change)

    def _learn(self) -> None:
        """Apply the pending changes that are older than the lag, and enqueue what they affect."""
        reached = self.sources.now() - timedelta(seconds=self.lag)
        while self._news and self._news[0].at <= reached:
            change = self._news.popleft()
            place = place_of(change.new)
            known = self._known.get(place[0], {}).get(place[1:])
            if known is None or known.version < change.new.version:
                if known and place[0] == self.primary and self.overlooks.get(place[2]):
                    self.overlooks[place[2]] -= 1
                    continue
                self.know(place, None if change.type == "DELETED" else change.new)
            for concerned in self.concerned(change):
                self.later(concerned)

    async def _run(self) -> None:
        while True:
            self._wakened.clear()
            if self._paused:
                await self._wakened.wait()
                continue
            self._learn()
            if place := self._next():
                await self._look(place)
            else:
                await self._rest()

    def _next(self) -> Place | None:
        while self._order and self._order[0][0] <= self.sources.now():
            when, _, place = heapq.heappop(self._order)
            if self._due.get(place) == when:  # otherwise it was due earlier and is already reconciled
                del self._due[place]
                return place
        return None

    async def _look(self, place: Place) -> None:
        try:
            found = self.find(place[0], place[2], place[1])
            if found is None:
                self.gone(place)
            again = await self.reconcile(place, found) if found else None
            self._refused.pop(place, None)
        except (Refusal, Severed):  # conflict or connection failure: retry with backoff
            count = self._refused[place] = self._refused.get(place, 0) + 1
            again = min(LAST_RETRY, FIRST_RETRY * 2 ** (count - 1))
        if again is not None:
            self.later(place, again)

    async def _rest(self) -> None:
        moments = [change.at + timedelta(seconds=self.lag) for change in [*self._news][:1]]
        moments += [when for when, _, _ in self._order[:1]]
        await self.sources.wait(self._wakened, moments)


def place_of(found: Stored) -> Place:
    return (found.kind_id, found.namespace, found.name)
