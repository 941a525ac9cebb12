"""One cgroup per hierarchy that holds the whole node, so that nothing of it can hide or stay (cgroup v1)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tests.testbed import kernel

NAME = "windlass-testbed"
NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted cgroup v1 hierarchy."""

    mountpoint: Path
    controllers: tuple[str, ...]

    @property
    def node(self) -> Path:
        """The node's own directory in it."""
        return self.mountpoint / NAME


def hierarchies() -> list[Hierarchy]:
    """The cgroup v1 hierarchies of this machine, named ones included."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup":
            controllers = tuple(o for o in options.split(",") if o in NEEDED or o.startswith("name="))
            found.append(Hierarchy(Path(before.split(" ")[4]), controllers))
    return found


def create(found: list[Hierarchy]) -> None:
    """Make the node's directories."""
    for hierarchy in found:
        hierarchy.node.mkdir(exist_ok=True)
        if "cpuset" in hierarchy.controllers:
            # An empty cpuset takes no process.
            for name in ("cpuset.cpus", "cpuset.mems"):
                (hierarchy.node / name).write_text((hierarchy.mountpoint / name).read_text())
            (hierarchy.node / "cgroup.clone_children").write_text("1")


def join(found: list[Hierarchy]) -> None:
    """Move the calling process into the node's directories."""
    for hierarchy in found:
        (hierarchy.node / "cgroup.procs").write_text(str(os.getpid()))


def mount_inside(found: list[Hierarchy]) -> None:
    """In the node's cgroup and mount namespaces: mount every hierarchy, rooted at the node's directory."""
    root = Path("/sys/fs/cgroup")
    kernel.mount("tmpfs", str(root), "tmpfs")
    for hierarchy in found:
        name = hierarchy.mountpoint.name
        (root / name).mkdir()
        named = [c for c in hierarchy.controllers if c.startswith("name=")]
        options = ",".join(["none", *named] if named else hierarchy.controllers)
        kernel.mount("cgroup", str(root / name), "cgroup", options=options)
        for controller in hierarchy.controllers:
            if not named and controller != name:
                (root / controller).symlink_to(name)


def remove(found: list[Hierarchy], timeout: float = 20.0) -> None:
    """End what still runs in the node's directories and remove them."""
    deadline = time.monotonic() + timeout
    for hierarchy in found:
        while hierarchy.node.exists():
            _kill(hierarchy.node)
            _remove_tree(hierarchy.node)
            if not hierarchy.node.exists():
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"{hierarchy.node} cannot be removed: processes {_processes(hierarchy.node)}")
            time.sleep(0.05)


def _processes(directory: Path) -> list[int]:
    found: list[int] = []
    for path, _, _ in os.walk(directory):
        with contextlib.suppress(OSError):
            found += map(int, (Path(path) / "cgroup.procs").read_text().split())
    return found


def _kill(directory: Path) -> None:
    for process in _processes(directory):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _remove_tree(directory: Path) -> None:
    for path, _, _ in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):
            Path(path).rmdir()
