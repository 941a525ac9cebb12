"""The dependency graph. `Graph.build` checks it: every dependency exists and there are no cycles."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from windlass.core.platform.model.cycles import find_cycles
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class UnknownDependency:
    """`name` depends on a node that does not exist."""

    name: str
    dependency: str
    hint: str

    def __str__(self) -> str:
        return f"{self.name} depends on {self.dependency}, which does not exist"


@dataclass(frozen=True, slots=True)
class Cycle:
    """Each name depends on the next; the first is repeated at the end."""

    path: tuple[str, ...]
    hint: str = "remove one of these dependencies"

    def __str__(self) -> str:
        return f"dependencies go round in a circle: {' -> '.join(self.path)}"


GraphProblem = UnknownDependency | Cycle


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The longest chain of dependencies, in starting order; more parallelism cannot shorten it."""

    names: tuple[str, ...]
    duration: timedelta


def graph_problems(dependencies: Mapping[str, Iterable[str]]) -> tuple[GraphProblem, ...]:
    """Unknown dependencies, and one cycle for each strongly connected component."""
    unknown = [
        UnknownDependency(name, dependency, did_you_mean(dependency, dependencies.keys() - {name}))
        for name in sorted(dependencies)
        for dependency in sorted(set(dependencies[name]))
        if dependency not in dependencies
    ]
    known_dependencies = {
        name: sorted(each for each in set(dependencies[name]) if each in dependencies) for name in sorted(dependencies)
    }
    return (*unknown, *(Cycle(path) for path in find_cycles(known_dependencies)))


@dataclass(frozen=True)
class Graph:
    """An acyclic graph; `dependencies[a]` are the direct dependencies of `a`, sorted. Create it with `build`."""

    dependencies: Mapping[str, tuple[str, ...]]

    @classmethod
    def build(cls, dependencies: Mapping[str, Iterable[str]]) -> Graph:
        if problems := graph_problems(dependencies):
            raise InvalidInput("; ".join(map(str, problems)), hint=problems[0].hint)
        return cls({name: tuple(sorted(set(dependencies[name]))) for name in sorted(dependencies)})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.dependencies)

    @cached_property
    def dependents(self) -> Mapping[str, tuple[str, ...]]:
        dependents: dict[str, list[str]] = {name: [] for name in self.dependencies}
        for name, needed in self.dependencies.items():
            for dependency in needed:
                dependents[dependency].append(name)
        return {name: tuple(waiting) for name, waiting in dependents.items()}

    @cached_property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Wave n contains the nodes whose last dependency is in wave n - 1; names sorted."""
        pending_counts = {name: len(needed) for name, needed in self.dependencies.items()}
        wave = [name for name, count in pending_counts.items() if not count]
        waves = []
        while wave:
            waves.append(tuple(wave))
            next_wave = []
            for name in wave:
                for dependent in self.dependents[name]:
                    pending_counts[dependent] -= 1
                    if not pending_counts[dependent]:
                        next_wave.append(dependent)
            wave = sorted(next_wave)
        return tuple(waves)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Dependencies before dependents."""
        return tuple(name for wave in self.waves for name in wave)

    def reversed(self) -> Graph:
        return Graph(self.dependents)

    def closure(self, names: Iterable[str]) -> frozenset[str]:
        """These nodes and all their direct and indirect dependencies."""
        found = set(names)
        queue = deque(found)
        while queue:
            for dependency in self.dependencies[queue.popleft()]:
                if dependency not in found:
                    found.add(dependency)
                    queue.append(dependency)
        return frozenset(found)

    def subgraph(self, names: Collection[str]) -> Graph:
        """Only these nodes. An indirect dependency through a removed node becomes direct, so the order is preserved."""
        selected = frozenset(names)
        replacements: dict[str, frozenset[str]] = {}  # removed node: the selected nodes it depends on
        dependencies: dict[str, tuple[str, ...]] = {}
        for name in self.order:
            selected_dependencies: set[str] = set()
            for dependency in self.dependencies[name]:
                selected_dependencies |= {dependency} if dependency in selected else replacements[dependency]
            if name in selected:
                dependencies[name] = tuple(sorted(selected_dependencies))
            else:
                replacements[name] = frozenset(selected_dependencies)
        return Graph(dict(sorted(dependencies.items())))

    def external_dependencies(self, names: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Direct dependencies outside the given nodes, and which of these nodes depend on each."""
        selected = frozenset(names)
        needed_by: dict[str, list[str]] = {}
        for name in sorted(selected):
            for dependency in self.dependencies[name]:
                if dependency not in selected:
                    needed_by.setdefault(dependency, []).append(name)
        return {name: tuple(needed_by[name]) for name in sorted(needed_by)}

    def remaining_durations(self, durations: Mapping[str, timedelta]) -> Mapping[str, timedelta]:
        """Time from the start of each node to the end of its longest chain of dependents; the longest starts first."""
        remaining: dict[str, timedelta] = {}
        for name in reversed(self.order):
            longest_dependent = max((remaining[dependent] for dependent in self.dependents[name]), default=ZERO)
            remaining[name] = durations[name] + longest_dependent
        return remaining

    def critical_path(self, durations: Mapping[str, timedelta]) -> CriticalPath:
        remaining = self.remaining_durations(durations)
        path: list[str] = []
        candidates: Iterable[str] = self.dependencies
        while candidates := sorted(candidates, key=lambda name: (-remaining[name], name)):
            path.append(candidates[0])
            candidates = self.dependents[path[-1]]
        return CriticalPath(tuple(path), remaining[path[0]] if path else ZERO)

    def implied_edges(self) -> tuple[tuple[str, str], ...]:
        """Redundant edges (name, dependency): another dependency of the name already depends on that one."""
        bits = {name: 1 << index for index, name in enumerate(self.order)}
        reach: dict[str, int] = {}
        implied = []
        for name in self.order:
            reach[name] = bits[name]
            indirect = 0
            for dependency in self.dependencies[name]:
                reach[name] |= reach[dependency]
                indirect |= reach[dependency] & ~bits[dependency]
            implied += [(name, dependency) for dependency in self.dependencies[name] if indirect & bits[dependency]]
        return tuple(sorted(implied))
