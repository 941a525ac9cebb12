"""`ServedWatch`: a watch as the server sends it: initial events, changes and bookmarks.

It ends at its timeout, when the client disconnects, or by an injected fault.
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import timedelta
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver import reads
from windlass.sandbox.apiserver import store as stores
from windlass.sandbox.apiserver.faults import ConnectionSevered
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from datetime import datetime

    from windlass.sandbox.apiserver.requests import ApiRequest
    from windlass.sandbox.apiserver.store import Store, StoreChange, StoredObject
    from windlass.sandbox.clock import SandboxClock

BOOKMARK_INTERVAL = 60.0  # seconds
LAST_BOOKMARK_BEFORE_END = 2.0  # seconds before the end of the watch
INITIAL_EVENTS_PER_CHUNK = 64  # initial events per chunk
DEFAULT_TIMEOUT = 1800.0  # the real server ends watches after 30 to 60 minutes


class ServedWatch:
    """One client's watch on a collection."""

    def __init__(self, request: ApiRequest, store: Store, clock: SandboxClock, lag: float = 0.0) -> None:
        self.request = request
        self.lag = lag
        """Seconds by which this client receives changes late."""
        self._store = store
        self._clock = clock
        self._filter = reads.parse_filter(request)
        self._pending: deque[StoreChange] = deque()
        self._wake = asyncio.Event()
        self._disruption = ""

    def disrupt(self, mode: str) -> None:
        """Disrupt the watch from now on.

        `cut`: the connection breaks. `silent`: no more events arrive. `expired`: an ERROR event with code 410 ends it.
        """
        self._disruption = mode
        self._wake.set()

    async def lines(self) -> AsyncGenerator[bytes, None]:
        kind_id, namespace = self.request.kind.id, self.request.namespace
        initial = self._initial_events()
        stop = self._store.listen(kind_id, namespace, self._on_change)
        try:
            for piece in initial:
                yield piece
            if not self._disruption:
                async for chunk in self._change_events():
                    yield chunk
            if self._disruption == "cut":
                raise ConnectionSevered(sent=True)
            if self._disruption == "silent":
                await asyncio.Event().wait()
            if self._disruption == "expired":
                yield self._error_line(
                    api_status.expired_error("The resourceVersion for the provided watch is too old.")
                )
        finally:
            stop()

    def _on_change(self, change: StoreChange) -> None:
        self._pending.append(change)
        self._wake.set()

    def _initial_events(self) -> Iterator[bytes]:
        """Without a resource version, all existing objects; else queue the changes after that version."""
        options, kind = self.request.options, self.request.kind
        version = options.resource_version
        if options.initial_events or version in {"", "0"}:
            items = self._store.list(kind.id, self.request.namespace)
            sends_end_bookmark = options.initial_events and options.bookmarks
            end_bookmark = [self._bookmark_line({"k8s.io/initial-events-end": "true"})] if sends_end_bookmark else []
            return chain(self._added_events([item for item in items if self._filter.matches(item)]), end_bookmark)
        oldest = self._store.oldest_kind_version(kind.id)
        if int(version) < oldest:
            self._disruption = "expired already"
            return iter([self._error_line(api_status.expired_error(f"too old resource version: {version} ({oldest})"))])
        missed = self._store.changes_since(kind.id, int(version))
        self._pending.extend(c for c in missed if self.request.namespace in {"", c.new.namespace})
        return iter(())

    def _added_events(self, items: list[StoredObject]) -> Iterator[bytes]:
        """ADDED events in chunks: else many clients of a large collection would each hold all of it in memory."""
        for start in range(0, len(items), INITIAL_EVENTS_PER_CHUNK):
            yield b"".join(self._line("ADDED", item.tail) for item in items[start : start + INITIAL_EVENTS_PER_CHUNK])

    async def _change_events(self) -> AsyncGenerator[bytes, None]:
        options, now = self.request.options, self._clock.now
        end = now() + timedelta(seconds=DEFAULT_TIMEOUT if options.seconds is None else options.seconds)
        next_bookmark = self._next_bookmark_time(end)
        while not self._disruption:
            self._wake.clear()
            if chunk := b"".join(self._ready_events()):
                yield chunk
            elif now() >= end:
                return
            elif options.bookmarks and now() >= next_bookmark:
                next_bookmark = self._next_bookmark_time(end)
                if not self._pending:
                    yield self._bookmark_line({})
            else:
                due = [end, *([next_bookmark] if options.bookmarks else ())]
                ready_times = (change.at + timedelta(seconds=self.lag) for change in [*self._pending][:1])
                await self._clock.wait(self._wake, [*due, *ready_times])

    def _next_bookmark_time(self, end: datetime) -> datetime:
        last = end - timedelta(seconds=LAST_BOOKMARK_BEFORE_END)
        now = self._clock.now()
        return end if now >= last else min(now + timedelta(seconds=BOOKMARK_INTERVAL), last)

    def _ready_events(self) -> Iterator[bytes]:
        """Events of the pending changes, except those that are still delayed by `lag`."""
        cutoff = self._clock.now() - timedelta(seconds=self.lag) if self.lag else None
        while self._pending and (cutoff is None or self._pending[0].at <= cutoff):
            if line := self._event_line(self._pending.popleft()):
                yield line

    def _event_line(self, change: StoreChange) -> bytes:
        """A change as seen through the selectors; empty if they match neither state.

        An object that starts to match is ADDED, one that no longer matches is DELETED.
        """
        old, new = change.old, change.new
        matched_before = old is not None and self._filter.matches(old)
        matches = change.type != "DELETED" and self._filter.matches(new)
        if matched_before and not matches:
            if change.type == "DELETED" or old is None:
                return self._line("DELETED", new.tail)
            return self._line("DELETED", stores.make_stored_object(old.kind_id, old.body, new.version).tail)
        if not matches:
            return b""
        return self._line("MODIFIED" if matched_before else "ADDED", new.tail)

    def _line(self, event_type: str, tail: bytes) -> bytes:
        return _render_event(event_type, self.request.kind.json_prefix, tail)

    def _bookmark_line(self, annotations: dict[str, str]) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        return self._line("BOOKMARK", msgspec.json.encode({"metadata": meta})[1:])

    def _error_line(self, error: api_status.StatusError) -> bytes:
        return msgspec.json.encode({"type": "ERROR", "object": error.body}) + b"\n"


@lru_cache(maxsize=256)
def _render_event(event_type: str, prefix: bytes, tail: bytes) -> bytes:
    """Cached, so that an event is rendered once for all watches."""
    return b'{"type":"%b","object":%b%b}\n' % (event_type.encode(), prefix, tail)
