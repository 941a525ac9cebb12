"""Outlives nobody: starts the node, waits until its owner or the node ends, and removes every trace.

The chain of deaths: the owner ends, in whatever way, and the warden sees it (pipe and pidfd); the warden ends, and the
kernel kills the node's process 1 (parent death signal); process 1 ends, and the kernel kills all in its PID namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.testbed import cgroups, images, kernel, lock, pki, places, settings
from tests.testbed.addresses import API_PORT
from tests.testbed.progress import say

if TYPE_CHECKING:
    from pathlib import Path

START_TIMEOUT = 150.0
_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "WINDLASS_CACHE", "XDG_CACHE_HOME", "PYTHONDONTWRITEBYTECODE")


class OwnerGone(Exception):
    """Nobody needs the bed any more."""


def main() -> int:
    """python -m tests.testbed.warden: prints the state directory when the node is ready; ends when its input does."""
    asked_to_leave = _signals()
    owner = os.pidfd_open(os.getppid())
    try:
        held = lock.take()
    except lock.BedInUse as problem:
        say(f"testbed: {problem}")
        return 3
    hierarchies = cgroups.hierarchies()
    try:
        cgroups.remove(hierarchies)
        return _guard(held, hierarchies, (0, owner, asked_to_leave))
    except OwnerGone:
        return 0
    finally:
        cgroups.remove(hierarchies)
        shutil.rmtree(held.directory, ignore_errors=True)


def _signals() -> int:
    """A descriptor that becomes readable when somebody asks this process to end; nothing is interrupted by it."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader


def _guard(held: lock.Lock, hierarchies: list[cgroups.Hierarchy], ends: tuple[int, ...]) -> int:
    state = held.directory
    begin = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _prepare(state, listener.getsockname()[1])
        cgroups.create(hierarchies)
        node = _spawn(held, hierarchies, listener.fileno())
    try:
        assert node.stdout is not None
        _wait(node, ends, node.stdout.fileno())
        (state / "bed.json").write_text(json.dumps({"node": node.pid, "warden": os.getpid()}))
        say(f"testbed: node ready after {time.monotonic() - begin:.1f} s")
        with contextlib.suppress(BrokenPipeError):
            print(state, flush=True)
        _wait(node, ends, None)
    except RuntimeError as problem:
        say(f"testbed: {problem}")
        say(f"testbed: logs are in {_keep_logs(state)}")
        return 1
    finally:
        node.kill()
        node.wait()
    return 0


def _prepare(state: Path, port: int) -> None:
    for name in ("log", "git"):
        (state / name).mkdir()
    pki.create(state / "pki")
    settings.write(state, images.registry())
    for name, number in (("kubeconfig", port), ("kubeconfig-node", API_PORT)):
        (state / name).touch(mode=0o600)
        (state / name).write_text(pki.kubeconfig(state / "pki", number))


def _spawn(held: lock.Lock, hierarchies: list[cgroups.Hierarchy], listener: int) -> subprocess.Popen[bytes]:
    """The node as process 1 of a PID namespace: this process's children live in there from now on."""
    tie = kernel.dies_with_us()

    def enter() -> None:
        tie()
        cgroups.join(hierarchies)

    with (held.directory / "log" / "node.log").open("wb") as log:
        kernel.unshare(kernel.NEW_PIDS)
        return subprocess.Popen(
            [sys.executable, "-m", "tests.testbed.node", str(held.directory), str(listener)],
            cwd=places.CHECKOUT,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # Holding the lock as well, the node keeps it until it is gone.
            pass_fds=(held.descriptor, listener),
            preexec_fn=enter,  # noqa: PLW1509 - this process has one thread
        )


def _wait(node: subprocess.Popen[bytes], ends: tuple[int, ...], ready: int | None) -> None:
    """Until the node says that it is ready, or else for as long as it is needed."""
    inside = os.pidfd_open(node.pid)
    sources = [*ends, inside, *([] if ready is None else [ready])]
    found = select.select(sources, [], [], None if ready is None else START_TIMEOUT)[0]
    os.close(inside)
    if set(ends) & set(found):
        raise OwnerGone
    if ready is not None and ready in found and os.read(ready, 16).startswith(b"ready"):
        return
    if not found:
        raise RuntimeError(f"the node was not ready within {START_TIMEOUT:.0f} s")
    raise RuntimeError("the node ended")


def _keep_logs(state: Path) -> Path:
    target = places.kept_logs("node")
    shutil.copytree(state / "log", target, symlinks=True)
    say((target / "node.log").read_text(errors="replace")[-3000:])
    return target


if __name__ == "__main__":
    sys.exit(main())
