"""A watch of all Applications, shared by all waiters: each waiter receives every state of its Application in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, Application, ObjectKey
from windlass.kube.client.reflectors import Reflector

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from windlass.core.platform.model.snapshots import ApplicationState
    from windlass.kube.client.readers import KubeReader


POLL_INTERVAL = 1.0  # seconds after which waiters re-evaluate even though nothing has changed
FIRST_REMINDER_POLLS = 5  # polls without an update before Argo CD is reminded of a request; doubles each time

RemindArgoCD = Callable[[Application], Awaitable[Application | None]]
"""Writes to an Application whose request Argo CD missed and returns the result; `None` if no reminder was needed."""


class ApplicationWatch:
    """The states of one Application, for one waiter. States older than our own last write are skipped as stale.

    Argo CD can miss a request that is written while it writes the Application itself: its cache is overwritten with
    the response to its own, by then older, write, and it notices the request only by chance, up to minutes later.
    `remind` is called for that case.
    """

    def __init__(self, application: Application | None, remind: RemindArgoCD) -> None:
        self.current = application
        self._remind = remind
        self._idle_polls = 0
        self._next_reminder = FIRST_REMINDER_POLLS
        self._reminder_version = 0
        self._queue: asyncio.Queue[Application | None] = asyncio.Queue()

    @property
    def state(self) -> ApplicationState | None:
        return None if self.current is None else self.current.state

    def enqueue(self, application: Application | None) -> None:
        self._queue.put_nowait(application)

    def record_write(self, response: Application) -> None:
        """Make the response to our own write the current state: no newer one is known."""
        self.current = response

    def catch_up(self) -> None:
        """Skip to the newest state received so far; no waiter needs the states in between."""
        while not self._queue.empty():
            application = self._queue.get_nowait()
            if not _is_older(application, self.current):
                self.current = application

    async def wait_for_change(self) -> bool:
        """Wait up to one poll interval for a newer state; return whether one arrived, which is then `current`."""
        if await self._receive():
            return True
        self._idle_polls += 1
        if self._idle_polls < self._next_reminder or self.current is None:
            return False
        self._next_reminder *= 2
        response = await self._remind(self.current)
        if response is None:
            return False
        # Only keep its version: the response may be ahead of what the watch has delivered for other Applications,
        # such as those it has just synced.
        self._reminder_version = response.version
        return await self._receive()

    async def _receive(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_INTERVAL):
                while True:
                    application = await self._queue.get()
                    if not _is_older(application, self.current):
                        self.current = application
                        # Otherwise it is our own reminder, or older: not an answer from Argo CD.
                        if application is None or application.version > self._reminder_version:
                            self._idle_polls, self._next_reminder = 0, FIRST_REMINDER_POLLS
                        return True
        return False


def _is_older(application: Application | None, reference: Application | None) -> bool:
    """Whether the first is older than, or the same as, `reference`; never if either is absent or the UIDs differ."""
    if application is None or reference is None or application.metadata.uid != reference.metadata.uid:
        return False
    return application.version <= reference.version


class ApplicationsWatch:
    """All Applications of the cluster or of one namespace.

    `run` must run next to the waiters; an error it raises must end all of them.
    """

    def __init__(self, reader: KubeReader, namespaces: Collection[str], remind: RemindArgoCD) -> None:
        single_namespace = next(iter(namespaces)) if len(namespaces) == 1 else ""
        ref = APPLICATIONS.in_namespace(single_namespace) if single_namespace else APPLICATIONS.everywhere
        self._reflector = Reflector(reader, ref, Application)
        self._remind = remind
        self._watches: dict[ObjectKey, list[ApplicationWatch]] = {}
        self.initial_list_done = asyncio.Event()

    @property
    def view(self) -> Mapping[ObjectKey, Application]:
        return self._reflector.view

    @property
    def connection_problem(self) -> str:
        """Why no updates arrive from the server; empty if the watch works."""
        return self._reflector.current_error.what if self._reflector.current_error else ""

    async def run(self) -> None:
        async for change in self._reflector.changes():
            if change.new is None and change.old is None:
                self.initial_list_done.set()
                continue
            application = change.new or change.old
            assert application is not None
            for watch in self._watches.get((application.metadata.namespace, application.metadata.name), ()):
                watch.enqueue(change.new)

    @contextmanager
    def watch(self, key: ObjectKey) -> Iterator[ApplicationWatch]:
        watch = ApplicationWatch(self.view.get(key), self._remind)
        self._watches.setdefault(key, []).append(watch)
        try:
            yield watch
        finally:
            self._watches[key].remove(watch)
