"""Mounted files: secrets, which are found here but read where they are used, and health checks."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.kube.bounded_files import read_file
from windlass.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.variables import SettingValue

ARGOCD_TOKEN_FILE = "argocd-token"  # noqa: S105 - a name
SECRET_FILES = ("git-username", "git-password", "git-ssh-key", "registry.json", ARGOCD_TOKEN_FILE, "pushgateway-auth")
MAX_SCRIPT_BYTES = 256 << 10  # 256 KiB
_HEALTH_CHECK_FILE = re.compile(r"([a-z0-9.-]*)_([A-Za-z][A-Za-z0-9]*)\.lua")


@dataclass(frozen=True, slots=True)
class Mounts:
    secrets: Mapping[str, Path] = field(default_factory=dict)
    health_checks: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    """Paths by group and kind."""
    health_scripts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Contents by group and kind: Lua without syntax errors."""
    notices: tuple[str, ...] = ()
    problems: tuple[SettingsProblem, ...] = ()


def read_mounts(values: Mapping[str, SettingValue]) -> Mounts:
    """List both directories. Only a directory at its default path may be missing."""
    secrets: dict[str, Path] = {}
    checks: dict[tuple[str, str], Path] = {}
    notices: list[str] = []
    problems: list[SettingsProblem] = []
    for path in _list_files(values["secrets"], problems):
        if path.name in SECRET_FILES:
            secrets[path.name] = path
            problems += _read_problems(path)
        else:
            notices.append(f"{path} is ignored: known are {', '.join(SECRET_FILES)}")
    if values["argocd-token"].value is not None:
        secrets[ARGOCD_TOKEN_FILE] = Path(str(values["argocd-token"].value))
        problems += _read_problems(secrets[ARGOCD_TOKEN_FILE])
    for path in _list_files(values["health-checks"], problems):
        if match := _HEALTH_CHECK_FILE.fullmatch(path.name):
            checks[match[1], match[2]] = path
        else:
            problems.append(
                SettingsProblem(
                    str(path), "is not named <group>_<Kind>.lua", "for example ceph.rook.io_CephCluster.lua"
                )
            )
    scripts = {key: _read_script(path) for key, path in checks.items()}
    problems += [each for each in scripts.values() if isinstance(each, SettingsProblem)]
    texts = {key: each for key, each in scripts.items() if isinstance(each, str)}
    return Mounts(secrets, checks, texts, tuple(notices), tuple(problems))


def _read_problems(path: Path) -> Iterator[SettingsProblem]:
    try:
        read_file(path)
    except OSError as error:
        yield SettingsProblem(str(path), f"the file cannot be read: {error.strerror}", "mount it as a file")


def _read_script(path: Path) -> str | SettingsProblem:
    from windlass.lua.interpreter import syntax_error  # noqa: PLC0415 - lazy: Lua is needed only for a check

    try:
        text = read_file(path, MAX_SCRIPT_BYTES).decode()
    except OSError as error:
        if error.errno == errno.EFBIG:
            return SettingsProblem(
                str(path), f"is larger than {MAX_SCRIPT_BYTES >> 10} KiB", "a health check is a page or two"
            )
        return SettingsProblem(str(path), f"the file cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return SettingsProblem(str(path), "this is no text in UTF-8")
    problem = syntax_error(text)
    return SettingsProblem(f"{path}:{problem[0]}", f"this is no Lua: {problem[1]}") if problem else text


def _list_files(value: SettingValue, problems: list[SettingsProblem]) -> list[Path]:
    """Files of a mounted directory, without the entries that Kubernetes adds (their names begin with two dots)."""
    directory = Path(str(value.value))
    try:
        return sorted(path for path in directory.iterdir() if not path.name.startswith(".."))
    except FileNotFoundError:
        if not value.is_default:
            problems.append(SettingsProblem(value.origin, f"there is no directory {directory}"))
    except OSError as error:
        problems.append(SettingsProblem(str(directory), f"the directory cannot be read: {error.strerror}"))
    return []
