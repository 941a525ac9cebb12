"""Health checks written in Lua: embedded in Windlass, mounted by the user, or in Argo CD's ConfigMap."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from windlass.core.platform.model.snapshots import ResourceKind
from windlass.errors import InvalidInput
from windlass.kube import yaml_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CONFIG_MAP = "argocd-cm"
HEALTH_KEY_PREFIX = "resource.customizations.health."
LEGACY_KEY = "resource.customizations"
"""Key of the legacy format: one YAML document for all kinds, in which a name may be a pattern."""


@dataclass(frozen=True, slots=True)
class HealthScript:
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class HealthScripts:
    """Scripts by kind; patterns apply to kinds without an exact entry."""

    exact: Mapping[ResourceKind, HealthScript] = field(default_factory=dict)
    patterns: tuple[tuple[str, HealthScript], ...] = ()

    def find(self, kind: ResourceKind) -> HealthScript | None:
        if kind in self.exact:
            return self.exact[kind]
        for pattern, script in self.patterns:
            if fnmatchcase(str(kind), pattern):
                return script
        return None


@cache
def embedded_scripts() -> HealthScripts:
    """Scripts shipped with Windlass, for the most important kinds."""
    files = resources.files("windlass.argo.health").joinpath("checks").iterdir()
    texts = {file.name.removesuffix(".lua"): file.read_text() for file in sorted(files, key=lambda file: file.name)}
    return HealthScripts({_parse_kind(name): HealthScript(text, "windlass") for name, text in texts.items()})


def mounted_scripts(files: Mapping[tuple[str, str], str], origin: str = "a mounted file") -> HealthScripts:
    """Scripts from files, keyed by group and kind."""
    return HealthScripts({ResourceKind(*key): HealthScript(text, origin) for key, text in files.items()})


def parse_config_map(data: Mapping[str, str]) -> HealthScripts:
    """Scripts in Argo CD's ConfigMap; as in Argo CD, a kind's own key takes precedence over the legacy document."""
    exact: dict[ResourceKind, HealthScript] = {}
    patterns = []
    for name, text in _parse_legacy_document(data.get(LEGACY_KEY) or ""):
        script = HealthScript(text, CONFIG_MAP)
        if "*" in name:
            patterns.append((name, script))
        else:
            group, _, kind = name.rpartition("/")
            exact[ResourceKind(group, kind)] = script
    for key, text in data.items():
        if key.startswith(HEALTH_KEY_PREFIX) and text:
            exact[_parse_kind(key.removeprefix(HEALTH_KEY_PREFIX))] = HealthScript(text, CONFIG_MAP)
    return HealthScripts(exact, tuple(patterns))


def _parse_legacy_document(text: str) -> Iterator[tuple[str, str]]:
    """Nothing if the document is invalid, which Argo CD cannot use either."""
    try:
        document = yaml_documents.load(text.encode(), f"{CONFIG_MAP} {LEGACY_KEY}") if text.strip() else {}
    except InvalidInput:
        return
    for name, rules in document.items() if isinstance(document, dict) else ():
        script = rules.get("health.lua") if isinstance(rules, dict) else None
        if isinstance(script, str) and script:
            yield name, script


def _parse_kind(name: str) -> ResourceKind:
    """Parse `<group>_<Kind>`; for the core group `<Kind>` or `_<Kind>`."""
    group, _, kind = name.rpartition("_")
    return ResourceKind(group, kind)
