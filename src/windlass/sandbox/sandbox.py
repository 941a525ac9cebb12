"""`Sandbox`: a simulated cluster with an API server, usable over HTTP or in process, that runs controllers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Self

from windlass.sandbox import clock
from windlass.sandbox.apiserver import http_routes
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.sandbox.apiserver.server import Server
from windlass.sandbox.garbage_collection import Collecting
from windlass.sandbox.in_process_client import Caller

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from types import TracebackType

    from windlass.sandbox.apiserver.http_routes import Answer
    from windlass.sandbox.apiserver.requests import User
    from windlass.sandbox.clock import Sources

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Sandbox:
    """Use as `async with Sandbox() as sandbox`; leaving the context cancels every task started in it."""

    def __init__(self, given: Sources | None = None, *, enforce_rbac: bool = False) -> None:
        self.sources = given or clock.real()
        self.server = Server(self.sources, enforce_rbac=enforce_rbac)
        self._collecting = Collecting(self.server)
        self._tasks = asyncio.TaskGroup()
        self._running: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self.start(self._collecting.run(), name="collecting")
        for name in NAMESPACES:
            await self.caller().create("namespaces", {"metadata": {"name": name}})
        await self._collecting.settle()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._running:
            task.cancel()
        if isinstance(error, asyncio.CancelledError):
            # If a failed controller caused the cancellation, this raises its error.
            await self._tasks.__aexit__(kind, error, trace)
        else:
            # An error in the body propagates unchanged, not wrapped in an exception group.
            await self._tasks.__aexit__(None, None, None)

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run a controller until the sandbox ends; an error in it ends the sandbox."""
        task = self._tasks.create_task(work, name=name)
        self._running.append(task)
        return task

    def caller(self, user: User = ADMIN, *, agent: str = "", shares: bool = False) -> Caller:
        """A client for controllers and tests in the same process."""
        return Caller(self.server, user, agent or user.name.rpartition(":")[2], shares=shares)

    async def handle(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"", user: User | None = None
    ) -> Answer:
        """Handle one HTTP request without a socket. Header names must be in canonical form: `Content-Type`."""
        answer = await http_routes.handle(self.server, method, target, headers, body, user)
        date = format_datetime(self.sources.now(), usegmt=True)
        return replace(answer, headers=(*answer.headers, ("Date", date)))
