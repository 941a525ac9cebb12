"""What is mounted: credential files and health checks, by name. Contents are read by who needs them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.settings.mistakes import Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECRETS = ("git-username", "git-password", "git-ssh-key", "registry.json", "argocd-token", "pushgateway-auth")
_HEALTH_CHECK = re.compile(r"([a-z0-9.-]*)_([A-Z][A-Za-z0-9]*)\.lua")


@dataclass(frozen=True, slots=True)
class Mounts:
    secrets: Mapping[str, Path] = field(default_factory=dict)
    health_checks: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    """By group and kind."""
    notices: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


def read_mounts(secrets: Path, health_checks: Path) -> Mounts:
    """A directory that is not there is empty."""
    known: dict[str, Path] = {}
    checks: dict[tuple[str, str], Path] = {}
    notices, mistakes = [], []
    for path in _files(secrets):
        if path.name in SECRETS:
            known[path.name] = path
        else:
            notices.append(f"{path} is ignored: known are {', '.join(SECRETS)}")
    for path in _files(health_checks):
        if found := _HEALTH_CHECK.fullmatch(path.name):
            checks[found[1], found[2]] = path
        else:
            mistakes.append(
                Mistake(str(path), "is not named <group>_<Kind>.lua", "for example ceph.rook.io_CephCluster.lua")
            )
    return Mounts(known, checks, tuple(notices), tuple(mistakes))


def _files(directory: Path) -> Iterator[Path]:
    """Kubernetes keeps its own entries, whose names begin with two dots, in a mounted volume."""
    if directory.is_dir():
        yield from sorted(path for path in directory.iterdir() if not path.name.startswith(".."))
