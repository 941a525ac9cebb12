"""What a bed could leave on the machine, looked at before and after."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path

from tests.testbed import cgroups, lock


@dataclass(frozen=True, slots=True)
class Traces:
    """Everything outside the node that it might touch."""

    processes: frozenset[str]
    mounts: frozenset[str]
    interfaces: frozenset[str]
    rules: frozenset[str]
    cgroups: frozenset[str]
    directories: frozenset[str]

    def beyond(self, before: Traces, *, only: tuple[str, ...] = ()) -> dict[str, list[str]]:
        """What is there now and was not before, by kind."""
        kinds = only or tuple(field.name for field in fields(self))
        added = {kind: sorted(getattr(self, kind) - getattr(before, kind)) for kind in kinds}
        return {kind: found for kind, found in added.items() if found}


def look() -> Traces:
    """Look at the machine now."""
    return Traces(
        processes=_processes(),
        mounts=frozenset(line.split(" ", 3)[3] for line in _lines(Path("/proc/self/mountinfo"))),
        interfaces=frozenset(path.name for path in Path("/sys/class/net").iterdir())
        | frozenset(_output("ip", "netns", "list")),
        rules=frozenset(
            f"{command}: {line}"
            for command in ("iptables-save", "ip6tables-save", "iptables-legacy-save")
            for line in _output(command)
            if not line.startswith(("#", ":"))
        ),
        cgroups=frozenset(str(path) for path in _cgroup_directories()),
        directories=frozenset(str(path) for path in Path(tempfile.gettempdir()).glob(f"{lock.STATE_PREFIX}*")),
    )


def _processes() -> frozenset[str]:
    """Processes of a bed: in its cgroup, with its state directory among their arguments, or its warden."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            inside = f"/{cgroups.NAME}" in (entry / "cgroup").read_text()
        except OSError:  # ended while we looked
            continue
        if inside or lock.STATE_PREFIX in command or "tests.testbed.warden" in command:
            found.add(f"{entry.name} {command}")
    return frozenset(found)


def _cgroup_directories() -> list[Path]:
    names = (cgroups.NAME, "kubepods", "k8s.io", "system.slice/containerd.service")
    return [h.mountpoint / name for h in cgroups.hierarchies() for name in names if (h.mountpoint / name).exists()]


def _output(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.splitlines()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
