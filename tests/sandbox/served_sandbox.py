"""A sandbox with its port, on a thread of its own: for tests whose event loops come and go."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.access import certificates
from windlass.sandbox.apiserver.access import kubeconfig as kubeconfigs
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.http_server import serve_http
from windlass.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def running_sandbox(*, enforce_rbac: bool = False) -> Iterator[str]:
    """Gives the kubeconfig."""
    context, authority = certificates.create_certificates()
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = Future()

    async def serve() -> None:
        async with Sandbox(enforce_rbac=enforce_rbac) as sandbox, serve_http(sandbox, tls=context) as address:
            await install_workloads(sandbox)
            end = asyncio.Event()
            kubeconfig = kubeconfigs.render_kubeconfig(address, sandbox.server.authenticator.admin_token, authority)
            ready.set_result((asyncio.get_running_loop(), end, kubeconfig))
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    loop, end, kubeconfig = ready.result(10)
    yield kubeconfig
    loop.call_soon_threadsafe(end.set)
    thread.join(10)
