"""One bed per machine: a lock that ends with its holders, and a note of who that is."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = Path("/run/lock/windlass-testbed.lock")
STATE_PREFIX = "windlass-testbed-"


class BedInUse(Exception):
    """Another bed is running."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has the lock, since when, and where its state is."""

    pid: int
    since: str
    directory: str


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock as held: a descriptor that may be handed to children, and the state directory that goes with it."""

    descriptor: int
    directory: Path


def patience() -> float:
    """Seconds to wait for another bed to end: WINDLASS_TESTBED_WAIT, or what one needs that is just ending."""
    return float(os.environ.get("WINDLASS_TESTBED_WAIT", "5"))


def take() -> Lock:
    """Take the lock, remove what a killed holder left behind, and make a fresh state directory."""
    PATH.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(PATH, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    begin = time.monotonic()
    while not _locked(descriptor):
        if time.monotonic() > begin + patience():
            os.close(descriptor)
            raise BedInUse(_describe(holder()))
        time.sleep(0.1)
    _remove_leftovers(holder())
    directory = Path(tempfile.mkdtemp(prefix=STATE_PREFIX))
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(Holder(os.getpid(), now, str(directory)))).encode(), 0)
    return Lock(descriptor, directory)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_leftovers(former: Holder | None) -> None:
    """Under the lock, every state directory is a dead one."""
    found = set(Path(tempfile.gettempdir()).glob(f"{STATE_PREFIX}*"))
    if former is not None and Path(former.directory).name.startswith(STATE_PREFIX):
        found.add(Path(former.directory))
    for directory in found:
        shutil.rmtree(directory, ignore_errors=True)


def holder() -> Holder | None:
    """Who took the lock last, as far as it is written down."""
    try:
        return Holder(**json.loads(PATH.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _describe(found: Holder | None) -> str:
    if found is None:
        return f"another test bed is just starting (lock: {PATH})"
    return f"a test bed is running: process {found.pid}, since {found.since}, in {found.directory} (lock: {PATH})"
