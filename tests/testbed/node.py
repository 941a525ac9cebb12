"""Process 1 of the node: makes its surroundings, starts the services, and ends the whole node when one of them ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tests.testbed import addresses, cgroups, kernel, places
from tests.testbed.services import NODE_NAME, services

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.testbed.services import Service

START_TIMEOUT = 120.0
_MEMORY = "8g"
_COVERED = ("/etc", "/run", "/var/lib", "/var/log")


class Node:
    """The services that run, each with a log of its own."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._running: dict[int, Service] = {}
        self._deadline = time.monotonic() + START_TIMEOUT

    def start(self, service: Service, forwarded: int) -> None:
        """Start it, and wait until it is ready."""
        with (self._state / "log" / f"{service.name}.log").open("wb") as log:
            process = subprocess.Popen(
                service.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=places.CHECKOUT,
                pass_fds=(forwarded,) if service.name == "forward" else (),
            )
        self._running[process.pid] = service
        process.returncode = 0  # this process reaps by itself, orphans of containers included
        if service.ready is not None:
            self._wait(service.name, service.ready)

    def watch(self) -> NoReturn:
        """Reap until a service ends."""
        while True:
            self._reap(0)

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        while not ready():
            self._reap(os.WNOHANG)
            if time.monotonic() > self._deadline:
                raise TimeoutError(f"{name} was not ready within {START_TIMEOUT:.0f} s")
            time.sleep(0.05)

    def _reap(self, options: int) -> None:
        while True:
            pid, status = os.waitpid(-1, options)
            if pid in self._running:
                name = self._running[pid].name
                raise RuntimeError(f"{name} ended with status {os.waitstatus_to_exitcode(status)}")
            if pid == 0 or options == 0:
                return


def main() -> None:
    """python -m tests.testbed.node STATE LISTENER: says `ready` on its output, ends only when something is wrong."""
    state, forwarded = Path(sys.argv[1]), int(sys.argv[2])
    hierarchies = cgroups.hierarchies()
    kernel.unshare(
        kernel.NEW_MOUNTS | kernel.NEW_NETWORK | kernel.NEW_HOSTNAME | kernel.NEW_IPC | kernel.NEW_CGROUPS,
    )
    _mounts(state, hierarchies)
    _network()
    node = Node(state)
    for service in services(state, forwarded):
        node.start(service, forwarded)
    print("ready", flush=True)
    node.watch()


def _mounts(state: Path, hierarchies: list[cgroups.Hierarchy]) -> None:
    """Whatever the services write outside the state directory lands in it nevertheless."""
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("proc", "/proc", "proc")
    kernel.mount("sysfs", "/sys", "sysfs")
    cgroups.mount_inside(hierarchies)
    for covered in _COVERED:
        upper, work = (state / "written" / covered.replace("/", "_") / name for name in ("upper", "work"))
        upper.mkdir(parents=True)
        work.mkdir()
        kernel.mount("overlay", covered, "overlay", options=f"lowerdir={covered},upperdir={upper},workdir={work}")
    # What is large or written often lives in memory: quick, and gone with the node. Overlays do not stack, so that
    # containers need another file system below theirs in any case.
    (state / "memory").mkdir()
    kernel.mount("tmpfs", str(state / "memory"), "tmpfs", options=f"size={_MEMORY}")
    for inside, outside in (
        ("/var/lib/containerd", "memory/containerd"),
        ("/var/lib/kubelet", "memory/kubelet"),
        ("/var/log/pods", "log/pods"),
    ):
        (state / outside).mkdir()
        Path(inside).mkdir(exist_ok=True)
        kernel.mount(str(state / outside), inside, flags=kernel.BIND)
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").write_text(f"nameserver {addresses.NODE}\n")
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.SHARED)


def _network() -> None:
    """An interface that leads nowhere carries the node's address; every foreign address is refused at once."""
    socket.sethostname(NODE_NAME)
    for command in (
        "link set lo up",
        "link add node0 type veth peer name nowhere",
        "link set nowhere up",
        "link set node0 up",
        f"addr add {addresses.NODE_WITH_PREFIX} dev node0",
        f"route add {addresses.SERVICES} dev node0",
        "route add unreachable default",
    ):
        subprocess.run(["ip", *command.split()], check=True, timeout=20)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


if __name__ == "__main__":
    main()
