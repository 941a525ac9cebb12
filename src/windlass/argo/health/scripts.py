"""Health checks written in Lua: those we bring, those mounted, and those in Argo CD's own ConfigMap. Pure."""

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
PREFIX = "resource.customizations.health."
TOGETHER = "resource.customizations"
"""The older form: all kinds in one document, in which a name may be a pattern."""


@dataclass(frozen=True, slots=True)
class HealthScript:
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class HealthScripts:
    """By kind; a pattern counts where no kind is named."""

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
def embedded() -> HealthScripts:
    """Ours: for the kinds whose health decides most."""
    files = resources.files("windlass.argo.health").joinpath("checks").iterdir()
    named = {file.name.removesuffix(".lua"): file.read_text() for file in sorted(files, key=lambda file: file.name)}
    return HealthScripts({_kind(name): HealthScript(text, "windlass") for name, text in named.items()})


def mounted(files: Mapping[tuple[str, str], str], origin: str = "a mounted file") -> HealthScripts:
    """By group and kind."""
    return HealthScripts({ResourceKind(*key): HealthScript(text, origin) for key, text in files.items()})


def of_config_map(data: Mapping[str, str]) -> HealthScripts:
    """As Argo CD reads it: a key of its own wins over the document of all kinds."""
    exact: dict[ResourceKind, HealthScript] = {}
    patterns = []
    for name, text in _together(data.get(TOGETHER) or ""):
        script = HealthScript(text, CONFIG_MAP)
        if "*" in name:
            patterns.append((name, script))
        else:
            group, _, kind = name.rpartition("/")
            exact[ResourceKind(group, kind)] = script
    for key, text in data.items():
        if key.startswith(PREFIX) and text:
            exact[_kind(key.removeprefix(PREFIX))] = HealthScript(text, CONFIG_MAP)
    return HealthScripts(exact, tuple(patterns))


def _together(text: str) -> Iterator[tuple[str, str]]:
    """Nothing of a document that is none: Argo CD cannot use it either."""
    try:
        document = yaml_documents.load(text.encode(), f"{CONFIG_MAP} {TOGETHER}") if text.strip() else {}
    except InvalidInput:
        return
    for name, rules in document.items() if isinstance(document, dict) else ():
        script = rules.get("health.lua") if isinstance(rules, dict) else None
        if isinstance(script, str) and script:
            yield name, script


def _kind(name: str) -> ResourceKind:
    """`<group>_<Kind>`; of the core group the kind alone, or with the underscore."""
    group, _, kind = name.rpartition("_")
    return ResourceKind(group, kind)
