"""Pods of the windlass image on a served sandbox: each runs windlass with the pod's arguments and token.

The process runs on the machine and as the user of the sandbox, and every user who can create a pod chooses its
arguments and variables. So it gets nothing but its own kubeconfig, and only settings that neither
replace that nor write files.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from pathlib import Path
from typing import TYPE_CHECKING

from windlass import output_files
from windlass.errors import ExitCode
from windlass.sandbox.apiserver.access import kubeconfig as kubeconfigs
from windlass.settings.variables import SETTINGS_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.controllers.programs import Process, Program

IMAGES = ("windlass", "windlass[:@]*", "*/windlass", "*/windlass[:@]*")
MAX_LINE_BYTES = 2**24
COMMANDS = ("cluster", "deploy", "plan", "teardown", "validate", "wait")
ALLOWED_SETTINGS = [
    SETTINGS_BY_NAME[name]
    for name in (
        *("environment", "scope", "dry-run", "timeout", "pv-policy", "confirm", "log-level", "log-format"),
        *("trace-id", "span-id", "traceparent", "environment-file", "dag", "health-checks"),
    )
]
"""Not among them: kubeconfigs, which may name a command to run, credentials, files to write, ports and addresses."""
OPTIONS = {setting.option for setting in ALLOWED_SETTINGS} | {
    *("--action", "--all", "--format", "--help", "--revision", "--strict")
}
VARIABLES = {setting.variable for setting in ALLOWED_SETTINGS if setting.variable}


def windlass_program(address: str, authority: bytes) -> Program:
    """Run windlass as a child process, because a run needs its own environment and signal handlers."""

    async def run(process: Process) -> int:
        argv = process.argv[process.argv[:1] == ("windlass",) :]
        refused = list(_refused_words(argv))
        if refused:
            process.log(f"error: a pod of the sandbox may not use {', '.join(refused)}")
            return ExitCode.INVALID
        with tempfile.TemporaryDirectory(prefix="windlass-pod-") as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            content = kubeconfigs.render_kubeconfig(address, process.token(), authority)
            output_files.write_file(kubeconfig, content, mode=output_files.SECRET_MODE)
            return await _run_windlass(process, argv, kubeconfig)

    return run


def _refused_words(argv: tuple[str, ...]) -> Iterator[str]:
    """Commands and options that are not allowed; a value that looks like an option counts as one."""
    if argv[:1] and argv[0] not in COMMANDS:
        yield argv[0]
    yield from (word for word in argv[1:] if word.startswith("-") and word.partition("=")[0] not in OPTIONS)


async def _run_windlass(process: Process, argv: tuple[str, ...], kubeconfig: Path) -> int:
    allowed = {name: value for name, value in process.env.items() if name in VARIABLES}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "windlass", *argv),
        env={**allowed, "KUBECONFIG_PATH": str(kubeconfig)},
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
