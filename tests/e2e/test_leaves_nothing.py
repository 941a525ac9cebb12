"""Killed at any moment, a bed leaves nothing on the machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.traces import Traces, look
from tests.testbed import lock, places
from tests.testbed.bed import Bed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.own_bed

OWNER = """
import sys
from tests.testbed.bed import Bed
bed = Bed()
cluster = bed.cluster()
if sys.argv[1] == "pod":
    cluster.kubectl("run", "sleeper", "--image=busybox", "--", "sleep", "1000")
    cluster.wait("pod/sleeper", "condition=Ready")
print("there", flush=True)
bed.wait()
"""
ENDED_BY_THE_KERNEL = ("processes", "mounts", "interfaces", "rules")


@pytest.fixture(autouse=True)
def no_other_bed() -> None:
    """A bed that is refused leaves nothing either, which would show nothing."""
    taken = lock.take()
    os.close(taken.descriptor)
    taken.directory.rmdir()


@pytest.mark.parametrize("moment", [0.2, 0.6, 1.2, 2.0, 3.5, 5.0, "ready", "pod"])
def test_when_the_owner_is_killed_nothing_is_left(moment: float | str) -> None:
    before = look()
    with _owner(moment) as owner:
        owner.kill()
    assert _left(before) == {}


@pytest.mark.parametrize("moment", [1.2, 3.5, "pod"])
def test_when_the_warden_is_killed_as_well_the_next_start_removes_the_rest(moment: float | str) -> None:
    before = look()
    with _owner(moment) as owner:
        owner.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(_warden(), signal.SIGKILL)
    assert _left(before, ENDED_BY_THE_KERNEL) == {}
    with Bed() as bed:
        bed.cluster()
    assert _left(before) == {}


def test_when_the_node_dies_the_owner_learns_it_and_nothing_is_left() -> None:
    before = look()
    with Bed() as bed:
        os.kill(bed.cluster().node_pid, signal.SIGKILL)
        assert bed.wait() == 1
    assert _left(before) == {}


def test_an_orderly_end_leaves_nothing() -> None:
    before = look()
    with Bed() as bed:
        cluster = bed.cluster()
        assert look().beyond(before), "the comparison sees a running bed"
        state = cluster.state
    assert look().beyond(before) == {}
    assert not state.exists()


@contextlib.contextmanager
def _owner(moment: float | str) -> Iterator[subprocess.Popen[str]]:
    """A process that owns a bed, brought to the moment: seconds after its start, or a state."""
    command = [sys.executable, "-c", OWNER, str(moment)]
    owner = subprocess.Popen(command, cwd=places.CHECKOUT, stdout=subprocess.PIPE, text=True)
    try:
        if isinstance(moment, float):
            time.sleep(moment)
        else:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "there\n"
        yield owner
    finally:
        owner.kill()
        owner.communicate()


def _warden() -> int:
    holder = lock.holder()
    assert holder is not None
    return holder.pid


def _left(before: Traces, kinds: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """What is left once there was a little time to go away."""
    deadline = time.monotonic() + 20
    while (left := look().beyond(before, only=kinds)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left
