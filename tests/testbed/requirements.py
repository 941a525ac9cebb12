"""What this machine must have: looked at before anything is built, and everything that is missing is said at once."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.testbed import cgroups, gobuild, images, packages, places
from tests.testbed.components import COMPONENTS

GIB = 2**30
RUN_DISK = 2 * GIB
"""Room for the logs of a running node."""
IMAGES_DISK = 3 * GIB
"""Room for the images while they are made."""
BUILD_DISK = 16 * GIB
"""Room for the Go caches and the programs."""
RUN_MEMORY = 6 * GIB
"""Room for a running node, its images included."""
BUILD_MEMORY = 6 * GIB
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "uts")


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on the machine."""

    system: str
    machine: str
    root: bool
    namespaces: frozenset[str]
    cgroups: frozenset[str]
    overlay: bool
    apt: bool
    missing_packages: tuple[str, ...]
    go: tuple[int, int] | None
    go_may_switch: bool
    unbuilt: tuple[str, ...]
    images_built: bool
    memory: int
    cache: Path
    cache_disk: int
    state: Path
    state_disk: int
    same_disk: bool


def problems(facts: Facts) -> list[str]:
    """A sentence for each thing that is missing; empty when the bed can be built and run."""
    return [*_kernel(facts), *_tools(facts), *_room(facts)]


def _kernel(facts: Facts) -> list[str]:
    found = []
    if facts.system != "Linux" or facts.machine != "x86_64":
        found.append(f"Linux on x86_64 is needed, this is {facts.system} on {facts.machine}")
    if not facts.root:
        found.append("root is needed: namespaces, mounts and cgroups are made")
    if lacking := sorted(set(_NAMESPACES) - facts.namespaces):
        found.append(f"the kernel lacks namespaces: {', '.join(lacking)}")
    if lacking := sorted(set(cgroups.NEEDED) - facts.cgroups):
        found.append(f"cgroup v1 hierarchies are not mounted: {', '.join(lacking)} (cgroup v2 alone is not supported)")
    if not facts.overlay:
        found.append("the kernel lacks the overlay file system")
    return found


def _tools(facts: Facts) -> list[str]:
    found = []
    if facts.missing_packages and not facts.apt:
        found.append(f"not installed, and there is no apt-get to install it: {', '.join(facts.missing_packages)}")
    if facts.unbuilt:
        needed = go_needed()
        text = ".".join(map(str, needed))
        if facts.go is None:
            found.append(f"no `go` on PATH: Go {text} or newer is needed to build {', '.join(facts.unbuilt)}")
        elif facts.go < needed and not (facts.go_may_switch and facts.go >= (1, 21)):
            found.append(f"Go {text} or newer is needed, `go` on PATH is {facts.go[0]}.{facts.go[1]}")
    return found


def _room(facts: Facts) -> list[str]:
    found = []
    memory = BUILD_MEMORY if facts.unbuilt else RUN_MEMORY
    if facts.memory < memory:
        found.append(f"{_gib(memory)} of free memory are needed, there are {_gib(facts.memory)}")
    cache = (BUILD_DISK if facts.unbuilt else 0) + (0 if facts.images_built else IMAGES_DISK)
    needs = {facts.cache: (cache, facts.cache_disk), facts.state: (RUN_DISK, facts.state_disk)}
    if facts.same_disk:
        needs = {facts.cache: (cache + RUN_DISK, facts.cache_disk)}
    for place, (need, available) in needs.items():
        if available < need:
            found.append(f"{_gib(need)} of free disk are needed at {place}, there are {_gib(available)}")
    return found


def probe() -> Facts:
    """Look at the machine."""
    cache, state = places.existing(places.cache()), places.state_parent()
    on_path = shutil.which("go")
    return Facts(
        system=platform.system(),
        machine=platform.machine(),
        root=os.geteuid() == 0,
        namespaces=frozenset(name for name in _NAMESPACES if Path(f"/proc/self/ns/{name}").exists()),
        cgroups=frozenset(c for h in cgroups.hierarchies() for c in h.controllers),
        overlay="overlay" in _read("/proc/filesystems") or _loadable("overlay"),
        apt=shutil.which("apt-get") is not None,
        missing_packages=tuple(packages.missing()),
        go=_go_version() if on_path else None,
        go_may_switch=bool(on_path) and not _go("env", "GOTOOLCHAIN").startswith("local"),
        unbuilt=tuple(c.name for c in COMPONENTS if not gobuild.built(c).is_dir()),
        images_built=images.registry().is_dir(),
        memory=_available_memory(),
        cache=places.cache(),
        cache_disk=shutil.disk_usage(cache).free,
        state=state,
        state_disk=shutil.disk_usage(state).free,
        same_disk=cache.stat().st_dev == state.stat().st_dev,
    )


def go_needed() -> tuple[int, int]:
    """The newest Go that a pinned module asks for."""
    lines = (line for c in COMPONENTS for line in (places.SOURCE / "go" / c.name / "go.mod").read_text().splitlines())
    return max(_version(line) for line in lines if line.startswith("go "))


def _version(text: str) -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _go_version() -> tuple[int, int]:
    return _version(_go("version"))


def _go(*arguments: str) -> str:
    done = subprocess.run(["go", *arguments], check=False, capture_output=True, text=True, cwd="/", timeout=60)
    return done.stdout.strip()


def _available_memory() -> int:
    found = re.search(r"MemAvailable:\s+(\d+) kB", _read("/proc/meminfo"))
    return int(found[1]) * 1024 if found else 0


def _loadable(module: str) -> bool:
    return (
        shutil.which("modprobe") is not None
        and not subprocess.run(["modprobe", "--quiet", module], check=False, timeout=30).returncode
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
