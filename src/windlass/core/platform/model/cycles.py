"""Detection of dependency cycles: deterministic and without recursion."""

from __future__ import annotations

from collections import deque
from functools import reduce
from graphlib import TopologicalSorter
from operator import or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


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


def closing_additions(
    dependencies: Mapping[str, Collection[str]], additions: Mapping[str, Collection[str]]
) -> Mapping[str, tuple[str, ...]]:
    """The additions to an acyclic graph that must be dropped to keep it acyclic; which ones depends on names alone.

    Each of them closes a cycle with what is kept.
    """
    merged = {name: {*needed, *additions.get(name, ())} for name, needed in dependencies.items()}
    candidates = _cycle_candidates(merged)
    graph = {name: candidates.intersection(dependencies[name]) for name in candidates}
    added = {name: candidates.intersection(additions.get(name, ())) - graph[name] for name in candidates}
    search = _AdditionSearch(graph, added)
    for name in sorted(candidates):
        search.visit(name)
    return {name: tuple(closing) for name, closing in sorted(search.dropped.items())}


def cycle_through(name: str, dependency: str, dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The shortest cycle in which the name depends on this dependency; empty if there is none."""
    return _shortest_cycle(name, {**dependencies, name: (dependency,)}, dependencies.keys())


class _AdditionSearch:
    """A search in depth through an acyclic graph and additions to it: one pass, however many additions there are.

    The path leads from a root to the node that is visited, along edges that are kept. An addition is dropped if the
    graph leads from its end back to the path. So no node is entered from which the graph leads to the path, and no edge
    of the graph itself ever closes a cycle.
    """

    def __init__(self, graph: Mapping[str, Collection[str]], additions: Mapping[str, Collection[str]]) -> None:
        self.dropped: dict[str, list[str]] = {}
        self._graph = graph
        self._additions = additions
        self._bits = {name: 1 << index for index, name in enumerate(graph)}
        self._reach: dict[str, int] = {}
        """The nodes to which the graph leads from each node, and the node itself, as bits."""
        for name in TopologicalSorter(graph).static_order():
            self._reach[name] = reduce(or_, (self._reach[each] for each in graph[name]), self._bits[name])
        self._visited: set[str] = set()
        self._path_bits = 0

    def visit(self, root: str) -> None:
        path = [] if root in self._visited else [self._enter(root)]
        while path:
            name, edges = path[-1]
            dependency = next((each for each in edges if self._is_next(name, each)), None)
            if dependency is None:
                path.pop()
                self._path_bits ^= self._bits[name]
            else:
                path.append(self._enter(dependency))

    def _enter(self, name: str) -> tuple[str, Iterator[str]]:
        self._visited.add(name)
        self._path_bits |= self._bits[name]
        return name, iter(sorted((*self._graph[name], *self._additions[name])))

    def _is_next(self, name: str, dependency: str) -> bool:
        if self._reach[dependency] & self._path_bits:
            self.dropped.setdefault(name, []).append(dependency)
            return False
        return dependency not in self._visited


def _cycle_candidates(dependencies: Mapping[str, Collection[str]]) -> set[str]:
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


def _shortest_cycle(
    start: str, dependencies: Mapping[str, Sequence[str]], candidates: Collection[str]
) -> tuple[str, ...]:
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
