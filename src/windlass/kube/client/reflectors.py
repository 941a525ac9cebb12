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
from windlass.kube.client.objects import T, object_version
from windlass.kube.client.readers import EVERYTHING, WatchStart
from windlass.kube.client.watches import Bookmark
from windlass.kube.transport.retries import MAX_ATTEMPTS, backoff

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping

    from windlass.kube.client.objects import ObjectVersion
    from windlass.kube.client.readers import KubeReader, Selection
    from windlass.kube.client.resources import Ref
    from windlass.kube.client.watches import WatchEvent

INITIAL_EVENTS_TIMEOUT = 30  # seconds; a server that ignores sendInitialEvents never ends the initial events
MIN_WATCH_SECONDS = 1.0  # a watch that ends sooner without an event has failed


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[T]):
    """No `old` means created, no `new` means deleted. Neither means that a full list has been applied."""

    old: T | None
    new: T | None

    @property
    def completes_view(self) -> bool:
        return self.old is None and self.new is None


class Reflector(Generic[T]):
    """Lists a collection, watches it and resumes the watch; after a 410 it lists again and reports what was deleted.

    Temporary errors are retried; `current_error` holds the error until then. Until the view has been complete once, an
    error is raised after a few attempts, because the configuration may be wrong.
    """

    def __init__(self, reader: KubeReader, ref: Ref, into: type[T], *, select: Selection = EVERYTHING) -> None:
        self._reader = reader
        self._ref = ref
        self._into = into
        self._select = select
        self._view: dict[tuple[str, str], T] = {}
        self._resource_version = ""
        self._can_stream = True
        self._has_synced = False
        self.current_error: KubeError | None = None

    @property
    def view(self) -> Mapping[tuple[str, str], T]:
        """Objects by (namespace, name), as of the last change consumed."""
        return self._view

    async def changes(self) -> AsyncGenerator[ObjectChange[T], None]:
        """Run the reflector. The view advances only as changes are consumed; there may be only one consumer.

        A consumer that stops may call this again: it continues after the last change consumed.
        """
        failures = 0
        while True:
            source = self._resume() if self._resource_version else self._stream() if self._can_stream else self._list()
            try:
                async with aclosing(source):
                    async for change in source:
                        self.current_error = None
                        yield change
                self.current_error = None
            except KubeError as error:
                failures = failures + 1 if self.current_error else 1
                self.current_error = error
                if not self._should_retry(error, failures):
                    raise
                if isinstance(error, Expired):
                    self._resource_version = ""
                await self._reader.clock.sleep(backoff(failures, self._reader.clock.random()))

    def _should_retry(self, error: KubeError, failures: int) -> bool:
        if not self._has_synced and failures >= MAX_ATTEMPTS:
            return False
        if isinstance(error, Unreachable):
            return error.temporary
        return isinstance(error, Expired | ConnectionLost | DeadlineExceeded | ServerError | TooManyRequests)

    async def _list(self) -> AsyncGenerator[ObjectChange[T], None]:
        listing = await self._reader.list(self._ref, self._into, select=self._select)
        for change in self._replace(listing.items, listing.resource_version):
            yield change

    async def _stream(self) -> AsyncGenerator[ObjectChange[T], None]:
        """Get state and changes in one stream (WatchList). If the server cannot do that, list from then on."""
        async with aclosing(self._watch(WatchStart())) as events:
            try:
                async with asyncio.timeout(INITIAL_EVENTS_TIMEOUT):
                    state, resource_version = await _collect_initial_state(events)
            except (BadRequest, Invalid, ConnectionLost, TimeoutError):
                self._can_stream = False
                return
            for change in self._replace(state, resource_version):
                yield change
            async for change in self._apply(events):
                yield change

    async def _resume(self) -> AsyncGenerator[ObjectChange[T], None]:
        started, start_version = self._reader.clock.monotonic(), self._resource_version
        async with aclosing(self._watch(WatchStart(self._resource_version))) as events:
            async for change in self._apply(events):
                yield change
        if self._resource_version == start_version and self._reader.clock.monotonic() - started < MIN_WATCH_SECONDS:
            raise ConnectionLost("the server ended the watch at once", where=str(self._ref))

    def _watch(self, since: WatchStart) -> AsyncGenerator[WatchEvent[T] | Bookmark, None]:
        return self._reader.watch(self._ref, since, self._into, select=self._select)

    async def _apply(self, events: AsyncIterator[WatchEvent[T] | Bookmark]) -> AsyncGenerator[ObjectChange[T], None]:
        async for event in events:
            if isinstance(event, Bookmark):
                self._resource_version = event.resource_version
                self.current_error = None
                continue
            version = object_version(event.item)
            for change in self._remove(version) if event.type == "DELETED" else self._upsert(version, event.item):
                yield change
            self._resource_version = version.resource_version

    def _replace(self, items: Iterable[T], resource_version: str) -> Iterator[ObjectChange[T]]:
        """Replace the view; objects missing from `items` were deleted while no watch was open."""
        if not resource_version:
            raise BadAnswer("a list without a resourceVersion cannot be followed", where=str(self._ref))
        fresh = {(version := object_version(item)).key: (version, item) for item in items}
        for key in [key for key in self._view if key not in fresh]:
            yield ObjectChange(self._view.pop(key), None)
        for version, item in fresh.values():
            yield from self._upsert(version, item)
        self._resource_version = resource_version
        self._has_synced = True
        yield ObjectChange(None, None)

    def _upsert(self, version: ObjectVersion, item: T) -> Iterator[ObjectChange[T]]:
        old = self._view.get(version.key)
        if old is not None:
            old_version = object_version(old)
            if old_version == version:
                return
            if old_version.uid != version.uid:  # deleted and recreated under the same name: two changes
                yield ObjectChange(self._view.pop(version.key), None)
                old = None
        self._view[version.key] = item
        yield ObjectChange(old, item)

    def _remove(self, version: ObjectVersion) -> Iterator[ObjectChange[T]]:
        if version.key in self._view:
            yield ObjectChange(self._view.pop(version.key), None)


async def _collect_initial_state(events: AsyncIterator[WatchEvent[T] | Bookmark]) -> tuple[list[T], str]:
    """The objects of the initial events and the resourceVersion of the bookmark that ends them."""
    state: dict[tuple[str, str], T] = {}
    async for event in events:
        if isinstance(event, Bookmark):
            if event.ends_initial_events:
                return list(state.values()), event.resource_version
        elif event.type == "DELETED":
            state.pop(object_version(event.item).key, None)
        else:
            state[object_version(event.item).key] = event.item
    raise ConnectionLost("the watch ended before the state was complete")
