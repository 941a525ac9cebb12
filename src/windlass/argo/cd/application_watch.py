"""A watch of all Applications, shared by all waiters: each waiter receives every state of its Application in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, Application, Place, children, parse
from windlass.kube.client.reflectors import Reflector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from windlass.core.platform.model.snapshots import ApplicationState
    from windlass.kube.client.readers import KubeReader


TICK = 1.0  # seconds after which waiters re-evaluate even though nothing has changed
FIRST_REMINDER = 5  # polls without an update before Argo CD is reminded of a request; doubles each time

Remind = Callable[[Application], Awaitable[Application | None]]
"""Writes to an Application whose request Argo CD missed and returns the result; `None` if no reminder was needed."""


class Follower:
    """The states of one Application, for one waiter. States older than our own last write are skipped as stale.

    Argo CD can miss a request that is written while it writes the Application itself: its cache is overwritten with
    the response to its own, by then older, write, and it notices the request only by chance, up to minutes later.
    `remind` is called for that case.
    """

    def __init__(self, first: Application | None, remind: Remind) -> None:
        self.current = first
        self._remind = remind
        self._ticks = 0
        self._next_reminder = FIRST_REMINDER
        self._reminded = 0
        self._queue: asyncio.Queue[Application | None] = asyncio.Queue()

    @property
    def state(self) -> ApplicationState | None:
        return None if self.current is None else parse(self.current)

    def put(self, application: Application | None) -> None:
        self._queue.put_nowait(application)

    def wrote(self, answer: Application) -> None:
        """Make the response to our own write the current state: no newer one is known."""
        self.current = answer

    def catch_up(self) -> None:
        """Skip to the newest state received so far; no waiter needs the states in between."""
        while not self._queue.empty():
            found = self._queue.get_nowait()
            if not _is_older(found, self.current):
                self.current = found

    async def next(self) -> bool:
        """Wait up to one poll interval for a newer state; return whether one arrived, which is then `current`."""
        if await self._heard():
            return True
        self._ticks += 1
        if self._ticks < self._next_reminder or self.current is None:
            return False
        self._next_reminder *= 2
        answer = await self._remind(self.current)
        if answer is None:
            return False
        # Only keep its version: the response may be ahead of what the watch has delivered for other Applications,
        # such as those it has just synced.
        self._reminded = _version(answer)
        return await self._heard()

    async def _heard(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK):
                while True:
                    found = await self._queue.get()
                    if not _is_older(found, self.current):
                        self.current = found
                        # Otherwise it is our own reminder, or older: not an answer from Argo CD.
                        if found is None or _version(found) > self._reminded:
                            self._ticks, self._next_reminder = 0, FIRST_REMINDER
                        return True
        return False


def _is_older(found: Application | None, than: Application | None) -> bool:
    """Whether the first is older than, or the same as, `reference`; never if either is absent or the UIDs differ."""
    if found is None or than is None or found.metadata.uid != than.metadata.uid:
        return False
    return _version(found) <= _version(than)


def _version(application: Application) -> int:
    text = application.metadata.resource_version
    return int(text) if text.isdecimal() else 0


class Applications:
    """All Applications of the cluster or of one namespace.

    `run` must run next to the waiters; an error it raises must end all of them.
    """

    def __init__(self, reader: KubeReader, namespaces: Collection[str], remind: Remind) -> None:
        only = next(iter(namespaces)) if len(namespaces) == 1 else ""
        ref = APPLICATIONS.within(only) if only else APPLICATIONS.everywhere
        self._reflector = Reflector(reader, ref, Application)
        self._remind = remind
        self._followers: dict[Place, list[Follower]] = {}
        self.is_complete = asyncio.Event()

    @property
    def view(self) -> Mapping[Place, Application]:
        return self._reflector.view

    @property
    def trouble(self) -> str:
        """Why no updates arrive from the server; empty if the watch works."""
        return self._reflector.trouble.what if self._reflector.trouble else ""

    async def follow(self) -> None:
        async for change in self._reflector.changes():
            if change.new is None and change.old is None:
                self.is_complete.set()
                continue
            found = change.new or change.old
            assert found is not None
            for follower in self._followers.get((found.metadata.namespace, found.metadata.name), ()):
                follower.put(change.new)

    @contextmanager
    def following(self, place: Place) -> Iterator[Follower]:
        follower = Follower(self.view.get(place), self._remind)
        self._followers.setdefault(place, []).append(follower)
        try:
            yield follower
        finally:
            self._followers[place].remove(follower)

    def parent_of(self, place: Place) -> Application | None:
        """The Application that defines the one with this key."""
        for candidate in self.view.values():
            if any(child == place for child, _ in children(candidate)):
                return candidate
        return None
