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
from windlass.sandbox.apiserver.faults import Severed
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from datetime import datetime

    from windlass.sandbox.apiserver.requests import Ask
    from windlass.sandbox.apiserver.store import Change, Store, Stored
    from windlass.sandbox.clock import Sources

BOOKMARK_EVERY = 60.0  # seconds
LAST_BOOKMARK = 2.0  # seconds before the end of the watch
PIECE = 64  # initial events per chunk
DEFAULT_SECONDS = 1800.0  # the real server ends watches after 30 to 60 minutes


class Watch:
    """One client's watch on a collection."""

    def __init__(self, ask: Ask, store: Store, sources: Sources, lag: float = 0.0) -> None:
        self.ask = ask
        self.lag = lag
        """Seconds by which this client receives changes late."""
        self._store = store
        self._sources = sources
        self._wanted = reads.filter_of(ask)
        self._pending: deque[Change] = deque()
        self._wakened = asyncio.Event()
        self._trouble = ""

    def disturb(self, how: str) -> None:
        """Disrupt the watch from now on.

        `cut`: the connection breaks. `silent`: no more events arrive. `expired`: an ERROR event with code 410 ends it.
        """
        self._trouble = how
        self._wakened.set()

    async def lines(self) -> AsyncGenerator[bytes, None]:
        kind_id, namespace = self.ask.kind.id, self.ask.namespace
        first = self._beginning()
        stop = self._store.listen(kind_id, namespace, self._take)
        try:
            for piece in first:
                yield piece
            if not self._trouble:
                async for chunk in self._changes():
                    yield chunk
            if self._trouble == "cut":
                raise Severed(sent=True)
            if self._trouble == "silent":
                await asyncio.Event().wait()
            if self._trouble == "expired":
                yield self._error(api_status.expired("The resourceVersion for the provided watch is too old."))
        finally:
            stop()

    def _take(self, change: Change) -> None:
        self._pending.append(change)
        self._wakened.set()

    def _beginning(self) -> Iterator[bytes]:
        """Without a resource version, all existing objects; else queue the changes after that version."""
        options, kind = self.ask.options, self.ask.kind
        version = options.resource_version
        if options.initial_events or version in {"", "0"}:
            items = self._store.list(kind.id, self.ask.namespace)
            is_marked = options.initial_events and options.bookmarks
            mark = [self._bookmark({"k8s.io/initial-events-end": "true"})] if is_marked else []
            return chain(self._pieces([item for item in items if self._wanted.admits(item)]), mark)
        floor = self._store.floor_of(kind.id)
        if int(version) < floor:
            self._trouble = "expired already"
            return iter([self._error(api_status.expired(f"too old resource version: {version} ({floor})"))])
        missed = self._store.since(kind.id, int(version))
        self._pending.extend(c for c in missed if self.ask.namespace in {"", c.new.namespace})
        return iter(())

    def _pieces(self, items: list[Stored]) -> Iterator[bytes]:
        """ADDED events in chunks: else many clients of a large collection would each hold all of it in memory."""
        for start in range(0, len(items), PIECE):
            yield b"".join(self._line("ADDED", item.tail) for item in items[start : start + PIECE])

    async def _changes(self) -> AsyncGenerator[bytes, None]:
        options, now = self.ask.options, self._sources.now
        ends = now() + timedelta(seconds=DEFAULT_SECONDS if options.seconds is None else options.seconds)
        marks = self._next_mark(ends)
        while not self._trouble:
            self._wakened.clear()
            if chunk := b"".join(self._ripe()):
                yield chunk
            elif now() >= ends:
                return
            elif options.bookmarks and now() >= marks:
                marks = self._next_mark(ends)
                if not self._pending:
                    yield self._bookmark({})
            else:
                due = [ends, *([marks] if options.bookmarks else ())]
                wakes = (change.at + timedelta(seconds=self.lag) for change in [*self._pending][:1])
                await self._sources.wait(self._wakened, [*due, *wakes])

    def _next_mark(self, ends: datetime) -> datetime:
        last = ends - timedelta(seconds=LAST_BOOKMARK)
        now = self._sources.now()
        return ends if now >= last else min(now + timedelta(seconds=BOOKMARK_EVERY), last)

    def _ripe(self) -> Iterator[bytes]:
        """Events of the pending changes, except those that are still held back by `lag`."""
        known = self._sources.now() - timedelta(seconds=self.lag) if self.lag else None
        while self._pending and (known is None or self._pending[0].at <= known):
            if line := self._seen(self._pending.popleft()):
                yield line

    def _seen(self, change: Change) -> bytes:
        """A change as seen through the selectors; empty if they match neither state.

        An object that starts to match is ADDED, one that no longer matches is DELETED.
        """
        old, new = change.old, change.new
        was = old is not None and self._wanted.admits(old)
        matches = change.type != "DELETED" and self._wanted.admits(new)
        if was and not matches:
            if change.type == "DELETED" or old is None:
                return self._line("DELETED", new.tail)
            return self._line("DELETED", stores.stored(old.kind_id, old.body, new.version).tail)
        if not matches:
            return b""
        return self._line("MODIFIED" if was else "ADDED", new.tail)

    def _line(self, kind: str, tail: bytes) -> bytes:
        return _rendered(kind, self.ask.kind.prefix, tail)

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        return self._line("BOOKMARK", msgspec.json.encode({"metadata": meta})[1:])

    def _error(self, refusal: api_status.Refusal) -> bytes:
        return msgspec.json.encode({"type": "ERROR", "object": refusal.body}) + b"\n"


@lru_cache(maxsize=256)
def _rendered(kind: str, prefix: bytes, tail: bytes) -> bytes:
    """Cached, so that an event is rendered once for all watches."""
    return b'{"type":"%b","object":%b%b}\n' % (kind.encode(), prefix, tail)
