"""python -m tests.advisories [DIRECTORY]: checks the pinned requirements against a database of advisories, offline.

DIRECTORY holds advisories in OSV format, one per YAML or JSON file: a checkout of github.com/pypa/advisory-database, or
the unpacked PyPI archive of osv.dev. Exit codes: 0 no known vulnerability, 1 at least one, 2 not audited, because there
is no database or a stale one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

REQUIREMENTS = Path(__file__).parent.parent / "requirements"
MAX_AGE = timedelta(days=30)  # an active database gets an advisory every few days
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class AuditResult:
    findings: list[str] = field(default_factory=list)
    newest: str = ""
    """Date of the newest advisory; empty if there is none at all."""


def pins(files: Iterable[Path]) -> dict[str, set[str]]:
    """The pinned versions by package name."""
    found: dict[str, set[str]] = {}
    for file in files:
        for name, version in _PIN.findall(file.read_text()):
            found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def audit(directory: Path, pinned: Mapping[str, set[str]]) -> AuditResult:
    result = AuditResult()
    for advisory in _advisories(directory):
        result.newest = max(result.newest, str(advisory.get("modified") or "")[:10])
        if advisory.get("withdrawn"):
            continue
        for affected in advisory.get("affected") or ():
            package = affected.get("package") or {}
            name = canonicalize_name(str(package.get("name")))
            if package.get("ecosystem") == "PyPI":
                versions = sorted(version for version in pinned.get(name, ()) if _is_affected(version, affected))
                result.findings += [f"{name} {version}: {_title(advisory)}" for version in versions]
    return result


def _advisories(directory: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(directory.rglob("*")):
        if path.suffix in {".yaml", ".json"} and path.is_file():
            text = path.read_text("utf-8")
            document = json.loads(text) if path.suffix == ".json" else yaml.load(text, _Loader)
            if isinstance(document, dict) and "affected" in document:
                yield document


def _is_affected(version: str, affected: Mapping[str, Any]) -> bool:
    if version in (affected.get("versions") or ()):
        return True
    ranges = [each for each in affected.get("ranges") or () if each.get("type") == "ECOSYSTEM"]
    return any(_is_in_range(Version(version), each.get("events") or ()) for each in ranges)


def _is_in_range(version: Version, events: Iterable[Mapping[str, str]]) -> bool:
    """Events are in ascending order: the last one at or below the version decides."""
    is_in = False
    for event in events:
        [(kind, text)] = event.items()
        try:
            limit = Version(str(text))
        except InvalidVersion:
            continue
        if kind == "introduced" and version >= limit:
            is_in = True
        elif (kind == "fixed" and version >= limit) or (kind == "last_affected" and version > limit):
            is_in = False
    return is_in


def _title(advisory: Mapping[str, Any]) -> str:
    details = " ".join(str(advisory.get("summary") or advisory.get("details") or "").split())
    return f"{' '.join([str(advisory.get('id')), *(advisory.get('aliases') or ())])}: {details[:120]}"


def main(arguments: list[str], today: date) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.advisories", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path)
    directory = parser.parse_args(arguments).directory
    pinned = pins(sorted(REQUIREMENTS.glob("*.txt")))
    if directory is None or not directory.is_dir():
        print(f"NOT AUDITED: there is no database of advisories to check {len(pinned)} pinned packages against.")
        print("Clone https://github.com/pypa/advisory-database and run: make audit ADVISORIES=advisory-database")
        return 2
    result = audit(directory, pinned)
    for finding in result.findings:
        print(finding)
    if result.findings:
        print(f"{len(result.findings)} advisories affect what is pinned.")
        return 1
    if not result.newest or today - date.fromisoformat(result.newest) > MAX_AGE:
        print(
            f"NOT AUDITED: the newest advisory in {directory} is of {result.newest or 'no date'}; update the database."
        )
        return 2
    print(f"No advisory up to {result.newest} affects the {len(pinned)} pinned packages.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], date.today()))  # noqa: DTZ011 - the age is counted in days
