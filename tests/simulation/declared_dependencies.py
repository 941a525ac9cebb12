"""The dependencies that Applications declare in their annotation, as they were when a run began.

A run is held to the order that they give. What it deploys itself may declare others: the next run is held to those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.scenarios import APPLICATIONS, ARGOCD
from windlass.core.platform.model.annotations import DEPENDS_ON

if TYPE_CHECKING:
    from windlass.core.platform.model.graphs import Graph
    from windlass.sandbox.sandbox import Sandbox


class DeclaredDependencies:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._by_name: dict[str, tuple[str, list[str]]] = {}
        """The uid of each Application, and the names in its annotation."""

    def note(self) -> None:
        """A run begins: remember what Applications declare now."""
        self._by_name.clear()
        for item in self._sandbox.server.store.list(APPLICATIONS, ARGOCD):
            text = (item.load()["metadata"].get("annotations") or {}).get(DEPENDS_ON, "")
            if text:
                names = [name.strip().removeprefix(f"{ARGOCD}/") for name in text.split(",")]
                self._by_name[item.name] = (item.uid, names)

    def needs(self, node: str, graph: Graph) -> set[str]:
        """What a node depends on, by the platform and by the annotation that its Application still has."""
        return {*graph.dependencies[node], *(self._valid(node, graph) if self._is_same(node) else ())}

    def dependents(self, name: str, dependents: Graph) -> set[str]:
        """All nodes that depend on a node, in one or more steps."""
        graph = dependents.reversed()
        found: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            declared = {each for each in self._by_name if current in self._valid(each, graph)}
            waiting += (new := {*dependents.dependencies[current], *declared} - found)
            found |= new
        return found - {name}

    def ignoring(self, graph: Graph) -> list[str]:
        """The Applications that declare something that a run has to ignore."""
        declared = [(name, names) for name, (_, names) in sorted(self._by_name.items()) if self._is_same(name)]
        return [name for name, names in declared if {*names} - self._valid(name, graph)]

    def _is_same(self, name: str) -> bool:
        """Whether the Application is the one that was there when the run began."""
        found = self._sandbox.server.store.get(APPLICATIONS, ARGOCD, name)
        return bool(found and name in self._by_name and found.uid == self._by_name[name][0])

    def _valid(self, node: str, graph: Graph) -> set[str]:
        """The generator numbers the nodes, and lets those that are valid lead to a lower number."""
        _, names = self._by_name.get(node, ("", []))
        return {each for each in names if each in graph.dependencies and each < node}
