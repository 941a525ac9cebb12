"""`Reflector`: a local copy of a collection, kept up to date by list and watch, and its changes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from windlass.kube.api_errors import (
    BadAnswer,
    BadRequest,
    ConnectionLost,
    DeadlineExceeded,
    Expired,
    Invalid,
    KubeError,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from windlass.kube.client.objects import T, identity_of
from windlass.kube.client.readers import EVERYTHING, Since
from windlass.kube.client.watches import Bookmark
from windlass.kube.transport.retries import ATTEMPTS, backoff

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping

    from windlass.kube.client.objects import Identity
    from windlass.kube.client.readers import KubeReader, Selection
    from windlass.kube.client.resources import Ref
    from windlass.kube.client.watches import Event

PATIENCE = 30  # seconds; a server that ignores sendInitialEvents never ends the initial events
QUICK = 1.0  # a watch that ends sooner without an event has failed


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """No `old` means created, no `new` means deleted. Neither means that a full list has been applied."""

    old: T | None
    new: T | None

    @property
    def is_complete(self) -> bool:
        return self.old is None and self.new is None


class Reflector(Generic[T]):
    """Lists a collection, watches it and resumes the watch; after a 410 it lists again and reports what was deleted.

    Temporary errors are retried; `current_error` holds the error meanwhile. Until the view has been complete once, an
    error is raised after a few attempts, because the configuration may be wrong.
    """

    def __init__(self, reader: KubeReader, ref: Ref, into: type[T], *, select: Selection = EVERYTHING) -> None:
        self._reader = reader
        self._ref = ref
        self._into = into
        self._select = select
        self._view: dict[tuple[str, str], T] = {}
        self._since = ""
        self._streams = True
        self._was_complete = False
        self.trouble: KubeError | None = None

    @property
    def view(self) -> Mapping[tuple[str, str], T]:
        """Objects by (namespace, name), as of the last change consumed."""
        return self._view

    async def changes(self) -> AsyncGenerator[Change[T], None]:
        """Run the reflector. The view advances only as changes are consumed; there may be only one consumer.

        A consumer that stops may call this again: it continues after the last change consumed.
        """
        failures = 0
        while True:
            source = self._follow() if self._since else self._stream() if self._streams else self._list()
            try:
                async with aclosing(source):
                    async for change in source:
                        self.trouble = None
                        yield change
                self.trouble = None
            except KubeError as error:
                failures = failures + 1 if self.trouble else 1
                self.trouble = error
                if not self._may_pass(error, failures):
                    raise
                if isinstance(error, Expired):
                    self._since = ""
                await self._reader.clock.sleep(backoff(failures, self._reader.clock.random()))

    def _may_pass(self, error: KubeError, failures: int) -> bool:
        if not self._was_complete and failures >= ATTEMPTS:
            return False
        if isinstance(error, Unreachable):
            return error.passing
        return isinstance(error, Expired | ConnectionLost | DeadlineExceeded | ServerError | TooManyRequests)

    async def _list(self) -> AsyncGenerator[Change[T], None]:
        listing = await self._reader.list(self._ref, self._into, select=self._select)
        for change in self._replace(listing.items, listing.resource_version):
            yield change

    async def _stream(self) -> AsyncGenerator[Change[T], None]:
        """Get state and changes in one stream (WatchList). If the server cannot do that, list from then on."""
        async with aclosing(self._watch(Since())) as events:
            try:
                async with asyncio.timeout(PATIENCE):
                    state, version = await _state(events)
            except (BadRequest, Invalid, ConnectionLost, TimeoutError):
                self._streams = False
                return
            for change in self._replace(state, version):
                yield change
            async for change in self._apply(events):
                yield change

    async def _follow(self) -> AsyncGenerator[Change[T], None]:
        began, before = self._reader.clock.monotonic(), self._since
        async with aclosing(self._watch(Since(self._since))) as events:
            async for change in self._apply(events):
                yield change
        if self._since == before and self._reader.clock.monotonic() - began < QUICK:
            raise ConnectionLost("the server ended the watch at once", where=str(self._ref))

    def _watch(self, since: Since) -> AsyncGenerator[Event[T] | Bookmark, None]:
        return self._reader.watch(self._ref, since, self._into, select=self._select)

    async def _apply(self, events: AsyncIterator[Event[T] | Bookmark]) -> AsyncGenerator[Change[T], None]:
        async for event in events:
            if isinstance(event, Bookmark):
                self._since = event.resource_version
                self.trouble = None
                continue
            identity = identity_of(event.item)
            for change in self._remove(identity) if event.type == "DELETED" else self._put(identity, event.item):
                yield change
            self._since = identity.resource_version

    def _replace(self, items: Iterable[T], version: str) -> Iterator[Change[T]]:
        """Replace the view; objects missing from `items` were deleted while no watch was open."""
        if not version:
            raise BadAnswer("a list without a resourceVersion cannot be followed", where=str(self._ref))
        fresh = {(identity := identity_of(item)).key: (identity, item) for item in items}
        for key in [key for key in self._view if key not in fresh]:
            yield Change(self._view.pop(key), None)
        for identity, item in fresh.values():
            yield from self._put(identity, item)
        self._since = version
        self._was_complete = True
        yield Change(None, None)

    def _put(self, identity: Identity, item: T) -> Iterator[Change[T]]:
        old = self._view.get(identity.key)
        if old is not None:
            known = identity_of(old)
            if known == identity:
                return
            if known.uid != identity.uid:  # deleted and recreated under the same name: two changes
                yield Change(self._view.pop(identity.key), None)
                old = None
        self._view[identity.key] = item
        yield Change(old, item)

    def _remove(self, identity: Identity) -> Iterator[Change[T]]:
        if identity.key in self._view:
            yield Change(self._view.pop(identity.key), None)


async def _state(events: AsyncIterator[Event[T] | Bookmark]) -> tuple[list[T], str]:
    """The objects of the initial events and the resourceVersion of the bookmark that ends them."""
    state: dict[tuple[str, str], T] = {}
    async for event in events:
        if isinstance(event, Bookmark):
            if event.ends_initial_events:
                return list(state.values()), event.resource_version
        elif event.type == "DELETED":
            state.pop(identity_of(event.item).key, None)
        else:
            state[identity_of(event.item).key] = event.item
    raise ConnectionLost("the watch ended before the state was complete")
