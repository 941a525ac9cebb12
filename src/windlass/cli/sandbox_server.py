"""The server of `windlass sandbox`: runs in the foreground until a signal, with a kubeconfig to connect to it."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.cli import sandbox_programs
from windlass.errors import InvalidInput
from windlass.sandbox import clock
from windlass.sandbox.apiserver.access import certificates
from windlass.sandbox.apiserver.access import kubeconfig as kubeconfigs
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.http_server import serve_http
from windlass.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_JOURNAL_REQUESTS = 100_000  # limits memory use of a sandbox that runs for days
DEFAULT_KUBECONFIG = "windlass-sandbox.kubeconfig"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    port: int = 0
    kubeconfig: str = DEFAULT_KUBECONFIG
    speed: float = 1.0
    tls: bool = False


def serve_sandbox(options: SandboxOptions, print_line: Callable[[str], None]) -> None:
    try:
        asyncio.run(_serve(options, print_line))
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        what = f"port {options.port} cannot be had: {os.strerror(error.errno)}"
        raise InvalidInput(what, where="--port", hint="choose another one, or none") from None


async def _serve(options: SandboxOptions, print_line: Callable[[str], None]) -> None:
    tls_context, authority = certificates.create_certificates() if options.tls else (None, b"")
    stopped = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stopped.set)
    async with (
        Sandbox(clock.real_clock(options.speed)) as sandbox,
        serve_http(sandbox, options.port, tls_context) as address,
    ):
        sandbox.server.journal.limit(MAX_JOURNAL_REQUESTS)
        workloads = await install_workloads(sandbox)
        workloads.programs.by_image.update(
            dict.fromkeys(sandbox_programs.IMAGES, sandbox_programs.windlass_program(address, authority))
        )
        await install_argocd(sandbox)
        content = kubeconfigs.render_kubeconfig(address, sandbox.server.authenticator.admin_token, authority)
        with _kubeconfig_file(Path(options.kubeconfig), content) as kubeconfig_path:
            print_line(f"sandbox    {address}  (stop it with Ctrl-C; it forgets everything)")
            print_line(f"kubectl    export KUBECONFIG={kubeconfig_path} && kubectl get namespaces")
            print_line(f"windlass   windlass cluster --kubeconfig {kubeconfig_path}")
            await stopped.wait()


@contextmanager
def _kubeconfig_file(path: Path, content: str) -> Iterator[Path]:
    """Write the kubeconfig and delete it at the end. A file that no sandbox wrote is never overwritten."""
    try:
        if path.exists() and not path.read_text().startswith(kubeconfigs.GENERATED_MARK):
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
