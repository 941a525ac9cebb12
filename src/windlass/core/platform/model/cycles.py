"""Detection of dependency cycles: deterministic and without recursion."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def find_cycles(dependencies: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """One cycle for each strongly connected component: the shortest through its first name; sorted."""
    cycles: list[tuple[str, ...]] = []
    covered: set[str] = set()
    candidates = _cycle_candidates(dependencies)
    for name in sorted(candidates):
        if name not in covered and (path := _shortest_cycle(name, dependencies, candidates)):
            cycles.append(path)
            covered |= _strong_component(name, dependencies, candidates)
    return tuple(cycles)


def _cycle_candidates(dependencies: Mapping[str, Sequence[str]]) -> set[str]:
    """The nodes left after repeatedly removing those without dependencies, then those without dependents."""
    dependents: dict[str, list[str]] = {name: [] for name in dependencies}
    for name, needed in dependencies.items():
        for dependency in needed:
            dependents[dependency].append(name)
    candidates = set(dependencies)
    for edges, reverse_edges in ((dependencies, dependents), (dependents, dependencies)):
        count = {name: sum(other in candidates for other in edges[name]) for name in candidates}
        removable = deque(name for name, left in count.items() if not left)
        while removable:
            name = removable.popleft()
            candidates.discard(name)
            for other in reverse_edges[name]:
                if other in candidates:
                    count[other] -= 1
                    if not count[other]:
                        removable.append(other)
    return candidates


def _shortest_cycle(start: str, dependencies: Mapping[str, Sequence[str]], candidates: set[str]) -> tuple[str, ...]:
    """The shortest path from a name back to itself, with the name at both ends; empty if there is none."""
    predecessors: dict[str, str] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for dependency in dependencies[name]:
            if dependency == start:
                return _path(predecessors, start, name)
            if dependency in candidates and dependency not in predecessors:
                predecessors[dependency] = name
                queue.append(dependency)
    return ()


def _path(predecessors: Mapping[str, str], start: str, end: str) -> tuple[str, ...]:
    path = [start]
    while end != start:
        path.append(end)
        end = predecessors[end]
    return (start, *reversed(path))


def _strong_component(name: str, dependencies: Mapping[str, Sequence[str]], candidates: set[str]) -> set[str]:
    """All nodes that can be reached from the name and from which it can be reached."""
    dependents: dict[str, list[str]] = {other: [] for other in candidates}
    for other in candidates:
        for dependency in dependencies[other]:
            if dependency in candidates:
                dependents[dependency].append(other)
    return _reachable(name, dependencies, candidates) & _reachable(name, dependents, candidates)


def _reachable(start: str, edges: Mapping[str, Sequence[str]], candidates: set[str]) -> set[str]:
    found = {start}
    queue = deque(found)
    while queue:
        for other in edges[queue.popleft()]:
            if other in candidates and other not in found:
                found.add(other)
                queue.append(other)
    return found
