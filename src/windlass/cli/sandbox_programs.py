"""Pods of the windlass image on a served sandbox: each runs windlass with the pod's arguments and token."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.access import kubeconfig as kubeconfigs

if TYPE_CHECKING:
    from windlass.sandbox.controllers.programs import Process, Program

IMAGES = ("windlass", "windlass[:@]*", "*/windlass", "*/windlass[:@]*")
MAX_LINE_BYTES = 2**24


def windlass_program(address: str, authority: bytes) -> Program:
    """Run windlass as a child process, because a run needs its own environment and signal handlers."""

    async def run(process: Process) -> int:
        with tempfile.TemporaryDirectory(prefix="windlass-pod-") as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.touch(mode=0o600)
            kubeconfig.write_text(kubeconfigs.render_kubeconfig(address, process.token(), authority))
            return await _run_windlass(process, kubeconfig)

    return run


async def _run_windlass(process: Process, kubeconfig: Path) -> int:
    argv = process.argv[process.argv[:1] == ("windlass",) :]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "windlass", *argv),
        env={"KUBECONFIG_PATH": str(kubeconfig), **process.env},
        cwd=kubeconfig.parent,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        limit=MAX_LINE_BYTES,
    )
    assert child.stdout is not None
    try:
        async for line in child.stdout:
            process.log(line.decode(errors="replace").rstrip("\n"))
        return await child.wait()
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()
