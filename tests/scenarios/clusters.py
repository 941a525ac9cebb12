"""A cluster with Argo CD on loopback, on a thread of its own: processes talk to it, and its journal is the witness."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.processes import Ended, windlass
from tests.sandbox.controllers.objects import URL, application
from windlass.sandbox.apiserver.access import kubeconfig as kubeconfigs
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.http_server import serve_http
from windlass.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping
    from pathlib import Path

    from windlass.sandbox.apiserver.journal import JournalEntry
    from windlass.sandbox.argocd.application_controller import ApplicationController

REFRESH = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
APPS = "applications.argoproj.io"
SYNC = {"operation": {"initiatedBy": {"username": "jane"}, "sync": {"revision": "main"}}}


@dataclass(frozen=True, slots=True)
class Running:
    sandbox: Sandbox
    argocd: ApplicationController
    repository: MemoryRepository
    loop: asyncio.AbstractEventLoop
    kubeconfig: Path

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """On the cluster's own thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def deploy(self, *names: str) -> None:
        """Creates Applications, syncs them, and has them compared once more, so that nothing is stale."""
        self.do(self._deploy(names))

    async def _deploy(self, names: tuple[str, ...]) -> None:
        calls, rest = self.sandbox.client(), self.sandbox.clock.sleep
        for name in names:
            await calls.create(APPS, application(name))
        await rest(0.5)
        for change, seconds in ((SYNC, 3.0), (REFRESH, 1.0)):
            for name in names:
                await calls.patch(APPS, name, change, "argocd")
            await rest(seconds)

    def patch(self, name: str, change: Any) -> None:
        self.do(self.sandbox.client().patch(APPS, name, change, "argocd"))

    def shown(self, name: str) -> Any:
        return self.do(self.sandbox.client().get(APPS, name, "argocd"))

    def rest(self, seconds: float) -> None:
        self.do(self._rest(seconds))

    async def _rest(self, seconds: float) -> None:
        await self.sandbox.clock.sleep(seconds)

    def windlass(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Ended:
        access = {"KUBECONFIG_PATH": str(self.kubeconfig)}
        return windlass(*arguments, environ={**access, **(environ or {})})

    def asked(self) -> list[JournalEntry]:
        """Every request that came over the network."""
        return [entry for entry in list(self.sandbox.server.journal.entries) if entry.agent.startswith("windlass")]


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    ready: Future[tuple[Running, asyncio.Event]] = Future()

    async def serve() -> None:
        async with Sandbox() as sandbox, serve_http(sandbox) as address:
            await install_workloads(sandbox)
            argocd = await install_argocd(sandbox)
            repository = argocd.repositories[URL] = MemoryRepository()
            path = folder / "kubeconfig"
            path.write_text(kubeconfigs.render_kubeconfig(address, sandbox.server.authenticator.admin_token))
            end = asyncio.Event()
            ready.set_result((Running(sandbox, argocd, repository, asyncio.get_running_loop(), path), end))
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    found, end = ready.result(20)
    try:
        yield found
    finally:
        found.loop.call_soon_threadsafe(end.set)
        thread.join(10)
