"""Entry point of the process: passes arguments and environment to the CLI and exits with its exit code."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.errors import ExitCode

if TYPE_CHECKING:
    from typing import TextIO


def run() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # handled like SIGINT, also while modules are imported
    if sys.stdout is None:  # closed by the parent process: a report that is lost must be an error
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - stays open until the process ends
    code = _run_cli()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the exit code is final; a late signal must not change it
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    sys.exit(code)


def _run_cli() -> int:
    try:
        from windlass.cli.main import main  # noqa: PLC0415 - its imports take long enough to be interrupted

        return main(sys.argv[1:], os.environ)  # noqa: TID251 - the only place that reads the environment
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return ExitCode.FAILURE


def _flush(stream: TextIO) -> None:
    """Discard output that cannot be written; otherwise Python flushes it at exit and exits with a code of its own."""
    try:
        stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    run()
