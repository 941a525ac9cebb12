"""Overlays platform files: the embedded reference platform, then the user's file, which adds to it or overrides it.

Every dependency keeps its location in a file, for error messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windlass.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.platform_files import ApplicationEntry, PlatformFile, StackEntry
    from windlass.settings.yaml_positions import FieldPath, ParsedFile, YamlPositions

Locations = dict[str, str]
"""Locations in files, by name."""


@dataclass(slots=True)
class NodeLayer:
    """One application as described by all files; `fields` has only the fields that a file gives."""

    name: str
    stack: str
    location: str
    fields: dict[str, Any] = field(default_factory=dict)
    dependencies: Locations = field(default_factory=dict)
    has_explicit_dependencies: bool = False
    """Whether a file gives its `dependsOn`, even an empty one."""


@dataclass(slots=True)
class StackLayer:
    name: str
    location: str
    dependencies: Locations = field(default_factory=dict)


@dataclass(slots=True)
class PlatformLayers:
    stacks: dict[str, StackLayer] = field(default_factory=dict)
    nodes: dict[str, NodeLayer] = field(default_factory=dict)
    problems: list[SettingsProblem] = field(default_factory=list)

    def add(self, document: ParsedFile[PlatformFile]) -> None:
        locations: dict[str, str] = {}
        for number, stack in enumerate(document.model.spec.stacks):
            path: FieldPath = ("spec", "stacks", number)
            location = document.positions.location((*path, "name"))
            if f"stack {stack.name}" in locations:
                self._add_duplicate_problem("stack", stack.name, location, locations[f"stack {stack.name}"])
                continue
            locations[f"stack {stack.name}"] = location
            self._add_stack(stack, path, document.positions)
            for name, entry, entry_path in _entries(stack, path, document.positions):
                if name in locations:
                    self._add_duplicate_problem(
                        "application", name, document.positions.location((*entry_path, "name")), locations[name]
                    )
                else:
                    locations[name] = document.positions.location((*entry_path, "name"))
                    self._add_node(stack.name, entry, entry_path, document.positions)

    def _add_stack(self, stack: StackEntry, path: FieldPath, positions: YamlPositions) -> None:
        layer = self.stacks.setdefault(stack.name, StackLayer(stack.name, positions.location((*path, "name"))))
        if stack.depends_on is not None:
            layer.dependencies = _dependency_locations(stack.depends_on, (*path, "dependsOn"), positions)

    def _add_node(self, stack: str, entry: ApplicationEntry, path: FieldPath, positions: YamlPositions) -> None:
        location = positions.location((*path, "name"))
        node = self.nodes.setdefault(entry.name, NodeLayer(entry.name, stack, location))
        if node.stack != stack:
            hint = "change it there, or write a file that does not extend"
            self.problems.append(
                SettingsProblem(location, f"{entry.name} is in stack {node.stack}, not in {stack}", hint)
            )
            return
        node.location = location
        node.fields.update(_given_fields(entry))
        if entry.depends_on is not None:
            node.dependencies = _dependency_locations(entry.depends_on, (*path, "dependsOn"), positions)
            node.has_explicit_dependencies = True

    def _add_duplicate_problem(self, what: str, name: str, location: str, first_location: str) -> None:
        self.problems.append(SettingsProblem(location, f"{what} {name} is defined twice", f"first at {first_location}"))


def _entries(
    stack: StackEntry, path: FieldPath, positions: YamlPositions
) -> Iterator[tuple[str, ApplicationEntry, FieldPath]]:
    for number, entry in enumerate(stack.applications or []):
        yield entry.name, entry, (*path, "applications", number)


def _dependency_locations(names: list[str], path: FieldPath, positions: YamlPositions) -> Locations:
    return {name: positions.location((*path, number)) for number, name in enumerate(names)}


def _given_fields(entry: ApplicationEntry) -> Mapping[str, Any]:
    """The fields that are not null, by name, including those of `timeouts` and `retries`."""
    fields: dict[str, Any] = {
        "profile": entry.profile,
        "critical": entry.critical,
        "application": entry.application,
        "resource": entry.resource,
        "sync": entry.timeouts.sync,
        "health": entry.timeouts.health,
        "max_attempts": entry.retries.max_attempts,
        "backoff": entry.retries.backoff,
    }
    return {name: value for name, value in fields.items() if value is not None}
