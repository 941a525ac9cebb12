"""Who waits for whom. A `Graph` that exists is whole: every name is known and nothing goes round in a circle."""

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
    """`name` waits for something that does not exist."""

    name: str
    dependency: str
    hint: str

    def __str__(self) -> str:
        return f"{self.name} depends on {self.dependency}, which does not exist"


@dataclass(frozen=True, slots=True)
class Cycle:
    """Each waits for the next; the first stands at the end again."""

    path: tuple[str, ...]
    hint: str = "remove one of these dependencies"

    def __str__(self) -> str:
        return f"dependencies go round in a circle: {' -> '.join(self.path)}"


Problem = UnknownName | Cycle


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The chain that no parallelism can shorten, first to start first."""

    names: tuple[str, ...]
    duration: timedelta


def problems_of(needs: Mapping[str, Iterable[str]]) -> tuple[Problem, ...]:
    """All that keeps these dependencies from being a graph: unknown names, and one cycle for each knot."""
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
    """`needs[a]` is what `a` waits for itself, sorted. Made by `build`; what is derived here needs no check."""

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
        """Wave n holds what waits for nothing later than wave n - 1; names sorted."""
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
        """These and all they wait for, however far away."""
        found = set(names)
        queue = deque(found)
        while queue:
            for dependency in self.needs[queue.popleft()]:
                if dependency not in found:
                    found.add(dependency)
                    queue.append(dependency)
        return frozenset(found)

    def restricted_to(self, names: Collection[str]) -> Graph:
        """Only these. What waited for one of them through others waits for it directly: the order stays."""
        inside = frozenset(names)
        behind: dict[str, frozenset[str]] = {}  # of an outsider: the insiders it stands in front of
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
        """What these wait for that is not one of them, and which of them wait for it."""
        inside = frozenset(names)
        found: dict[str, list[str]] = {}
        for name in sorted(inside):
            for dependency in self.needs[name]:
                if dependency not in inside:
                    found.setdefault(dependency, []).append(name)
        return {name: tuple(found[name]) for name in sorted(found)}

    def remaining(self, durations: Mapping[str, timedelta]) -> Mapping[str, timedelta]:
        """From a name's start to the end of the longest chain behind it: what is longest starts first."""
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
        """(name, dependency) that other dependencies of the name imply already."""
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
