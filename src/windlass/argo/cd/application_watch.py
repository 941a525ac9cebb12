"""Every Application, followed once for all who wait for one: each of them sees every state, in order."""

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


TICK = 1.0  # seconds after which it is looked at again although nothing changed
FIRST_REMINDER = 5  # ticks without news after which Argo CD is reminded of what it was asked for; then doubling

Remind = Callable[[Application], Awaitable[Application | None]]
"""Answers with what was written, if there was anything to remind of."""


class Follower:
    """What one of them waits with. States older than our own last write are not shown: they are from before it.

    Argo CD overlooks what is written in the very moment in which it writes itself: it puts its own answer, which is
    older by then, over what it had just heard, and comes upon the wish by chance, up to minutes later.
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
        """The answer to a write of ours is the newest state there is."""
        self.current = answer

    def catch_up(self) -> None:
        """To the newest state that is known: what lies between did not matter to anybody."""
        while not self._queue.empty():
            found = self._queue.get_nowait()
            if not _is_older(found, self.current):
                self.current = found

    async def next(self) -> bool:
        """Whether there was a newer state within a tick; it is `current` then."""
        if await self._heard():
            return True
        self._ticks += 1
        if self._ticks < self._next_reminder or self.current is None:
            return False
        self._next_reminder *= 2
        answer = await self._remind(self.current)
        if answer is None:
            return False
        # No more than its version counts: it may be ahead of what is known of others, such as what it has just synced.
        self._reminded = _version(answer)
        return await self._heard()

    async def _heard(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK):
                while True:
                    found = await self._queue.get()
                    if not _is_older(found, self.current):
                        self.current = found
                        if found is None or _version(found) > self._reminded:  # else it is our own write, or before it
                            self._ticks, self._next_reminder = 0, FIRST_REMINDER
                        return True
        return False


def _is_older(found: Application | None, than: Application | None) -> bool:
    """Or the same; of another life it never is."""
    if found is None or than is None or found.metadata.uid != than.metadata.uid:
        return False
    return _version(found) <= _version(than)


def _version(application: Application) -> int:
    text = application.metadata.resource_version
    return int(text) if text.isdecimal() else 0


class Applications:
    """Run `follow` beside those who wait; what it raises ends them all."""

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
        """Why there is no news from the server, if there is none."""
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
        """The Application that defines another one."""
        for candidate in self.view.values():
            if any(child == place for child, _ in children(candidate)):
                return candidate
        return None
