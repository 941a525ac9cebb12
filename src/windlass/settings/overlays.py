"""Overlays platform files: the embedded reference platform, then the user's file, which adds to it or overrides it.

Every dependency keeps its location in a file, for error messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windlass.settings.problems import Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.platform_files import ApplicationEntry, PlatformFile, StackEntry
    from windlass.settings.yaml_positions import Checked, Marks, Path

Places = dict[str, str]
"""Locations in files, by name."""


@dataclass(slots=True)
class Node:
    """One application as described by all files; `fields` has only the fields that a file gives."""

    name: str
    stack: str
    place: str
    fields: dict[str, Any] = field(default_factory=dict)
    needs: Places = field(default_factory=dict)
    states_needs: bool = False
    """Whether a file gives its `dependsOn`, even an empty one."""


@dataclass(slots=True)
class StackLayer:
    name: str
    place: str
    needs: Places = field(default_factory=dict)


@dataclass(slots=True)
class Layers:
    stacks: dict[str, StackLayer] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, document: Checked[PlatformFile]) -> None:
        own: dict[str, str] = {}
        for number, stack in enumerate(document.model.spec.stacks):
            path: Path = ("spec", "stacks", number)
            place = document.marks.place((*path, "name"))
            if f"stack {stack.name}" in own:
                self._twice("stack", stack.name, place, own[f"stack {stack.name}"])
                continue
            own[f"stack {stack.name}"] = place
            self._add_stack(stack, path, document.marks)
            for name, entry, at in _entries(stack, path, document.marks):
                if name in own:
                    self._twice("application", name, document.marks.place((*at, "name")), own[name])
                else:
                    own[name] = document.marks.place((*at, "name"))
                    self._add_node(stack.name, entry, at, document.marks)

    def _add_stack(self, stack: StackEntry, path: Path, marks: Marks) -> None:
        layer = self.stacks.setdefault(stack.name, StackLayer(stack.name, marks.place((*path, "name"))))
        if stack.depends_on is not None:
            layer.needs = _places(stack.depends_on, (*path, "dependsOn"), marks)

    def _add_node(self, stack: str, entry: ApplicationEntry, path: Path, marks: Marks) -> None:
        place = marks.place((*path, "name"))
        node = self.nodes.setdefault(entry.name, Node(entry.name, stack, place))
        if node.stack != stack:
            hint = "change it there, or write a file that does not extend"
            self.mistakes.append(Mistake(place, f"{entry.name} is in stack {node.stack}, not in {stack}", hint))
            return
        node.place = place
        node.fields.update(_given(entry))
        if entry.depends_on is not None:
            node.needs = _places(entry.depends_on, (*path, "dependsOn"), marks)
            node.states_needs = True

    def _twice(self, what: str, name: str, place: str, first: str) -> None:
        self.mistakes.append(Mistake(place, f"{what} {name} stands here a second time", f"first at {first}"))


def _entries(stack: StackEntry, path: Path, marks: Marks) -> Iterator[tuple[str, ApplicationEntry, Path]]:
    for number, entry in enumerate(stack.applications or []):
        yield entry.name, entry, (*path, "applications", number)


def _places(names: list[str], path: Path, marks: Marks) -> Places:
    return {name: marks.place((*path, number)) for number, name in enumerate(names)}


def _given(entry: ApplicationEntry) -> Mapping[str, Any]:
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
