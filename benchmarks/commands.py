"""How long the command line takes to say something."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.results import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.results import Figure

ROUNDS = 15


def figures() -> Iterator[Figure]:
    """What `windlass --help` takes beyond an interpreter that does nothing; the two take turns."""
    ours = [sys.executable, "-c", "from windlass.__main__ import run; run()", "--help"]
    bare = [sys.executable, "-c", "pass"]
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(ROUNDS):
        for command in (ours, bare):
            began = perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            times[command is ours].append(perf_counter() - began)
    over = (median(times[True]) - median(times[False])) * 1000
    yield figure("cli.help_ms", over, "ms", "<= 150", "the bare interpreter")
