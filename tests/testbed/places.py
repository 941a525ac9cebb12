"""Where the test bed keeps things: everything below one cache directory outside the checkout."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = Path(__file__).resolve().parent
CHECKOUT = SOURCE.parent.parent


def cache() -> Path:
    """The test bed's part of the cache: WINDLASS_CACHE, or windlass in the user's cache directory."""
    own = os.environ.get("WINDLASS_CACHE")
    if own:
        return Path(own).resolve() / "testbed"
    user = os.environ.get("XDG_CACHE_HOME")
    return (Path(user) if user else Path.home() / ".cache") / "windlass" / "testbed"


def go_caches() -> Path:
    """Go's module and build caches: large, only needed while building, and nobody else's."""
    return cache() / "go"


@contextlib.contextmanager
def building(wait: Callable[[], None]) -> Iterator[None]:
    """One build at a time; what a killed one left unfinished is removed."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        for unfinished in cache().glob(".*-*"):
            shutil.rmtree(unfinished)
        yield


def state_parent() -> Path:
    """Where the state directory of a node is made."""
    return Path(tempfile.gettempdir())


def existing(path: Path) -> Path:
    """The path, or the nearest directory above it that is there."""
    while not path.exists():
        path = path.parent
    return path


def kept_logs(name: str) -> Path:
    """A directory that is not there yet, for logs worth keeping."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S")
    parent = CHECKOUT / "build" / "e2e-logs"
    parent.mkdir(parents=True, exist_ok=True)
    return parent / f"{stamp}-{name}-{os.getpid()}"
