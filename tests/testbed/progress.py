"""Lines for whoever is waiting: what is being done, and how long each step took."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def say(line: str) -> None:
    """Print at once, also into a pipe."""
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Announce a step and print the time it took."""
    say(f"testbed: {name} ...")
    begin = time.monotonic()
    yield
    say(f"testbed: {name}: {time.monotonic() - begin:.1f} s")
