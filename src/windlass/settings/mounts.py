"""Mounted files: secrets, which are found here but read where they are used, and health checks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.settings.problems import Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.variables import Value

SECRETS = ("git-username", "git-password", "git-ssh-key", "registry.json", "argocd-token", "pushgateway-auth")
LARGEST_SCRIPT = 256 << 10  # 256 KiB
_HEALTH_CHECK = re.compile(r"([a-z0-9.-]*)_([A-Za-z][A-Za-z0-9]*)\.lua")


@dataclass(frozen=True, slots=True)
class Mounts:
    secrets: Mapping[str, Path] = field(default_factory=dict)
    health_checks: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    """Paths by group and kind."""
    health_scripts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Contents by group and kind: Lua without syntax errors."""
    notices: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


def read_mounts(values: Mapping[str, Value]) -> Mounts:
    """List both directories. Only a directory at its default path may be missing."""
    known: dict[str, Path] = {}
    checks: dict[tuple[str, str], Path] = {}
    notices: list[str] = []
    mistakes: list[Mistake] = []
    for path in _files(values["secrets"], mistakes):
        if path.name in SECRETS:
            known[path.name] = path
            mistakes += _unreadable(path)
        else:
            notices.append(f"{path} is ignored: known are {', '.join(SECRETS)}")
    for path in _files(values["health-checks"], mistakes):
        if found := _HEALTH_CHECK.fullmatch(path.name):
            checks[found[1], found[2]] = path
        else:
            mistakes.append(
                Mistake(str(path), "is not named <group>_<Kind>.lua", "for example ceph.rook.io_CephCluster.lua")
            )
    scripts = {key: _script(path) for key, path in checks.items()}
    mistakes += [each for each in scripts.values() if isinstance(each, Mistake)]
    texts = {key: each for key, each in scripts.items() if isinstance(each, str)}
    return Mounts(known, checks, texts, tuple(notices), tuple(mistakes))


def _unreadable(path: Path) -> Iterator[Mistake]:
    try:
        path.open("rb").close()
    except OSError as error:
        yield Mistake(str(path), f"the file cannot be read: {error.strerror}", "mount it as a file")


def _script(path: Path) -> str | Mistake:
    from windlass.lua.interpreter import mistake_in  # noqa: PLC0415 - lazy: Lua is needed only for a check

    try:
        if path.stat().st_size > LARGEST_SCRIPT:
            return Mistake(str(path), f"is larger than {LARGEST_SCRIPT >> 10} KiB", "a health check is a page or two")
        text = path.read_text("utf-8")
    except OSError as error:
        return Mistake(str(path), f"the file cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return Mistake(str(path), "this is no text in UTF-8")
    wrong = mistake_in(text)
    return Mistake(f"{path}:{wrong[0]}", f"this is no Lua: {wrong[1]}") if wrong else text


def _files(value: Value, mistakes: list[Mistake]) -> list[Path]:
    """Files of a mounted directory, without the entries that Kubernetes adds (their names begin with two dots)."""
    directory = Path(str(value.value))
    try:
        return sorted(path for path in directory.iterdir() if not path.name.startswith(".."))
    except FileNotFoundError:
        if not value.is_default:
            mistakes.append(Mistake(value.origin, f"there is no directory {directory}"))
    except OSError as error:
        mistakes.append(Mistake(str(directory), f"the directory cannot be read: {error.strerror}"))
    return []
