"""The dependency graph. `Graph.build` checks it: every dependency exists and there are no cycles."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from windlass.core.platform.model.cycles import cycles_of
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class UnknownName:
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


Problem = UnknownName | Cycle


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The longest chain of dependencies, in starting order; more parallelism cannot shorten it."""

    names: tuple[str, ...]
    duration: timedelta


def problems_of(needs: Mapping[str, Iterable[str]]) -> tuple[Problem, ...]:
    """Unknown dependencies, and one cycle for each strongly connected component."""
    unknown = [
        UnknownName(name, dependency, did_you_mean(dependency, needs.keys() - {name}))
        for name in sorted(needs)
        for dependency in sorted(set(needs[name]))
        if dependency not in needs
    ]
    known = {name: sorted(each for each in set(needs[name]) if each in needs) for name in sorted(needs)}
    return (*unknown, *(Cycle(path) for path in cycles_of(known)))


@dataclass(frozen=True)
class Graph:
    """An acyclic graph; `dependencies[a]` are the direct dependencies of `a`, sorted. Create it with `build`."""

    needs: Mapping[str, tuple[str, ...]]

    @classmethod
    def build(cls, needs: Mapping[str, Iterable[str]]) -> Graph:
        if problems := problems_of(needs):
            raise InvalidInput("; ".join(map(str, problems)), hint=problems[0].hint)
        return cls({name: tuple(sorted(set(needs[name]))) for name in sorted(needs)})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.needs)

    @cached_property
    def dependents(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {name: [] for name in self.needs}
        for name, needed in self.needs.items():
            for dependency in needed:
                found[dependency].append(name)
        return {name: tuple(waiting) for name, waiting in found.items()}

    @cached_property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Wave n contains the nodes whose last dependency is in wave n - 1; names sorted."""
        missing = {name: len(needed) for name, needed in self.needs.items()}
        wave = [name for name, count in missing.items() if not count]
        found = []
        while wave:
            found.append(tuple(wave))
            following = []
            for name in wave:
                for dependent in self.dependents[name]:
                    missing[dependent] -= 1
                    if not missing[dependent]:
                        following.append(dependent)
            wave = sorted(following)
        return tuple(found)

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
            for dependency in self.needs[queue.popleft()]:
                if dependency not in found:
                    found.add(dependency)
                    queue.append(dependency)
        return frozenset(found)

    def restricted_to(self, names: Collection[str]) -> Graph:
        """Only these nodes. An indirect dependency through a removed node becomes direct, so the order is preserved."""
        inside = frozenset(names)
        behind: dict[str, frozenset[str]] = {}  # removed node: the selected nodes it depends on
        needs: dict[str, tuple[str, ...]] = {}
        for name in self.order:
            found: set[str] = set()
            for dependency in self.needs[name]:
                found |= {dependency} if dependency in inside else behind[dependency]
            if name in inside:
                needs[name] = tuple(sorted(found))
            else:
                behind[name] = frozenset(found)
        return Graph(dict(sorted(needs.items())))

    def needed_from_outside(self, names: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Direct dependencies outside the given nodes, and which of these nodes depend on each."""
        inside = frozenset(names)
        found: dict[str, list[str]] = {}
        for name in sorted(inside):
            for dependency in self.needs[name]:
                if dependency not in inside:
                    found.setdefault(dependency, []).append(name)
        return {name: tuple(found[name]) for name in sorted(found)}

    def remaining(self, durations: Mapping[str, timedelta]) -> Mapping[str, timedelta]:
        """Time from the start of each node to the end of its longest chain of dependents; the longest starts first."""
        found: dict[str, timedelta] = {}
        for name in reversed(self.order):
            behind = max((found[dependent] for dependent in self.dependents[name]), default=ZERO)
            found[name] = durations[name] + behind
        return found

    def critical_path(self, durations: Mapping[str, timedelta]) -> CriticalPath:
        remaining = self.remaining(durations)
        path: list[str] = []
        candidates: Iterable[str] = self.needs
        while candidates := sorted(candidates, key=lambda name: (-remaining[name], name)):
            path.append(candidates[0])
            candidates = self.dependents[path[-1]]
        return CriticalPath(tuple(path), remaining[path[0]] if path else ZERO)

    def implied_edges(self) -> tuple[tuple[str, str], ...]:
        """Redundant edges (name, dependency): another dependency of the name already depends on that one."""
        bits = {name: 1 << place for place, name in enumerate(self.order)}
        reach: dict[str, int] = {}
        found = []
        for name in self.order:
            reach[name] = bits[name]
            through = 0
            for dependency in self.needs[name]:
                reach[name] |= reach[dependency]
                through |= reach[dependency] & ~bits[dependency]
            found += [(name, dependency) for dependency in self.needs[name] if through & bits[dependency]]
        return tuple(sorted(found))
