"""`windlass sandbox`: serves a sandbox in the foreground until a signal, with a kubeconfig to connect to it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.cli.commands import sandbox_programs
from windlass.errors import InvalidInput
from windlass.sandbox import clock
from windlass.sandbox.apiserver.access import certificates
from windlass.sandbox.apiserver.access import kubeconfig as kubeconfigs
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.http_server import served
from windlass.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JOURNAL = 100_000  # limits memory use of a sandbox that runs for days
DEFAULT = "windlass-sandbox.kubeconfig"


@dataclass(frozen=True, slots=True)
class Serving:
    port: int = 0
    kubeconfig: str = DEFAULT
    speed: float = 1.0
    tls: bool = False


def serve(serving: Serving, tell: Callable[[str], None]) -> None:
    try:
        asyncio.run(_serve(serving, tell))
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        what = f"port {serving.port} cannot be had: {os.strerror(error.errno)}"
        raise InvalidInput(what, where="--port", hint="choose another one, or none") from None


async def _serve(serving: Serving, tell: Callable[[str], None]) -> None:
    context, authority = certificates.made() if serving.tls else (None, b"")
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    async with Sandbox(clock.real(serving.speed)) as sandbox, served(sandbox, serving.port, context) as address:
        sandbox.server.journal.keep(JOURNAL)
        workloads = await install_workloads(sandbox)
        workloads.programs.by_image.update(
            dict.fromkeys(sandbox_programs.IMAGES, sandbox_programs.program(address, authority))
        )
        await install_argocd(sandbox)
        content = kubeconfigs.rendered(address, sandbox.server.identities.admin_token, authority)
        with _written(Path(serving.kubeconfig), content) as place:
            tell(f"sandbox    {address}  (stop it with Ctrl-C; it forgets everything)")
            tell(f"kubectl    export KUBECONFIG={place} && kubectl get namespaces")
            tell(f"windlass   windlass cluster --kubeconfig {place}")
            await end.wait()


@contextmanager
def _written(path: Path, content: str) -> Iterator[Path]:
    """Write the kubeconfig and delete it at the end. A file that no sandbox wrote is never overwritten."""
    try:
        if path.exists() and not path.read_text().startswith(kubeconfigs.MARK):
            raise InvalidInput("there is a kubeconfig that no sandbox wrote", where=str(path), hint="name another file")
        path.touch(mode=0o600)
        path.write_text(content)
    except OSError as error:
        raise InvalidInput(f"cannot write the kubeconfig: {error.strerror}", where=str(path)) from None
    try:
        yield path.resolve()
    finally:
        if path.exists() and path.read_text() == content:
            path.unlink()
