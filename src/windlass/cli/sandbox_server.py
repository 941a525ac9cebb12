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

from windlass import output_files
from windlass.cli import sandbox_programs
from windlass.cli.printed_lines import print_text
from windlass.errors import InvalidInput
from windlass.kube.bounded_files import read_file
from windlass.printable_text import one_line
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
MAX_ERROR_LENGTH = 500  # characters; it may quote an object
DEFAULT_KUBECONFIG = "windlass-sandbox.kubeconfig"


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    port: int = 0
    kubeconfig: str = DEFAULT_KUBECONFIG
    speed: float = 1.0
    programs: bool = False
    """Whether pods of the image windlass run windlass on this machine."""


def serve_sandbox(options: SandboxOptions, print_line: Callable[[str], None]) -> None:
    try:
        asyncio.run(_serve(options, print_line))
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        what = f"port {options.port} cannot be had: {os.strerror(error.errno)}"
        raise InvalidInput(what, where="--port", hint="choose another one, or none") from None


async def _serve(options: SandboxOptions, print_line: Callable[[str], None]) -> None:
    tls_context, authority = certificates.create_certificates()
    stopped = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stopped.set)
    async with (
        Sandbox(clock.real_clock(options.speed), report_error=_print_error) as sandbox,
        serve_http(sandbox, options.port, tls_context) as address,
    ):
        sandbox.server.journal.limit(MAX_JOURNAL_REQUESTS)
        workloads = await install_workloads(sandbox)
        if options.programs:
            program = sandbox_programs.windlass_program(address, authority)
            workloads.programs.by_image.update(dict.fromkeys(sandbox_programs.IMAGES, program))
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
        output_files.require_regular_file(path)
        if path.exists() and not read_file(path).startswith(kubeconfigs.GENERATED_MARK.encode()):
            raise InvalidInput("there is a kubeconfig that no sandbox wrote", where=str(path), hint="name another file")
        output_files.write_file(path, content, mode=output_files.SECRET_MODE)
    except OSError as error:
        raise InvalidInput(f"cannot write the kubeconfig: {error.strerror}", where=str(path)) from None
    try:
        yield path.resolve()
    finally:
        if path.is_file() and read_file(path) == content.encode():
            path.unlink()


def _print_error(line: str) -> None:
    print_text(f"error: {one_line(line[:MAX_ERROR_LENGTH])}", err=True)
