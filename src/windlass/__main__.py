"""The process: hands in arguments and environment, hands out the exit code."""

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
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as SIGINT is, from the first import on
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the end
    code = _code()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # how it ends is decided
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    sys.exit(code)


def _code() -> int:
    try:
        from windlass.cli.main import main  # noqa: PLC0415 - what it imports takes long enough to be interrupted

        return main(sys.argv[1:], os.environ)  # noqa: TID251 - the one place where the environment comes in
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return ExitCode.FAILURE


def _flush(stream: TextIO) -> None:
    """What cannot be written any more is left: at its end Python would make an exit code of its own of it."""
    try:
        stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    run()
