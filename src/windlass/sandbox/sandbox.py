"""`Sandbox`: a simulated cluster with an API server, usable over HTTP or in process, that runs controllers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Self

from windlass.sandbox import clock
from windlass.sandbox.apiserver import http_routes
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.sandbox.apiserver.server import ApiServer
from windlass.sandbox.garbage_collection import GarbageCollector
from windlass.sandbox.in_process_client import InProcessClient

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from types import TracebackType

    from windlass.sandbox.apiserver.http_routes import HttpResponse
    from windlass.sandbox.apiserver.requests import UserInfo
    from windlass.sandbox.clock import SandboxClock

INITIAL_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
RESTART_DELAY = 1.0  # seconds until a controller that failed goes on


class Sandbox:
    """Use as `async with Sandbox() as sandbox`; leaving the context cancels every task started in it."""

    def __init__(
        self,
        sandbox_clock: SandboxClock | None = None,
        *,
        enforce_rbac: bool = False,
        report_error: Callable[[str], None] | None = None,
    ) -> None:
        """With `report_error`, an error in a controller or in a request is reported, and the sandbox goes on."""
        self.report_error = report_error
        self.clock = sandbox_clock or clock.real_clock()
        self.server = ApiServer(self.clock, enforce_rbac=enforce_rbac)
        self._garbage_collector = GarbageCollector(self.server)
        self._task_group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        await self._task_group.__aenter__()
        self.start(self.repeat(self._garbage_collector.run), name="collecting")
        for name in INITIAL_NAMESPACES:
            await self.client().create("namespaces", {"metadata": {"name": name}})
        await self._garbage_collector.process_queue()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        if isinstance(error, asyncio.CancelledError):
            # If a failed controller caused the cancellation, this raises its error.
            await self._task_group.__aexit__(kind, error, trace)
        else:
            # An error in the body propagates unchanged, not wrapped in an exception group.
            await self._task_group.__aexit__(None, None, None)

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run a controller until the sandbox ends; an error in it ends the sandbox."""
        task = self._task_group.create_task(work, name=name)
        self._tasks.append(task)
        return task

    async def repeat(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a controller, again after an error if errors are reported: one odd object must not stop the cluster."""
        while True:
            try:
                return await run()
            except Exception as error:
                if self.report_error is None:
                    raise
                self.report_error(f"{getattr(run, '__qualname__', run)}: {type(error).__name__}: {error}")
            await self.clock.sleep(RESTART_DELAY)

    def client(self, user: UserInfo = ADMIN, *, agent: str = "", share_objects: bool = False) -> InProcessClient:
        """A client for controllers and tests in the same process."""
        return InProcessClient(self.server, user, agent or user.name.rpartition(":")[2], share_objects=share_objects)

    async def handle(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"", user: UserInfo | None = None
    ) -> HttpResponse:
        """Handle one HTTP request without a socket. Header names must be in canonical form: `Content-Type`."""
        response = await http_routes.handle(self.server, method, target, headers, body, user)
        date = format_datetime(self.clock.now(), usegmt=True)
        return replace(response, headers=(*response.headers, ("Date", date)))
