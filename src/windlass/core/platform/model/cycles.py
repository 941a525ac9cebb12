"""Detection of dependency cycles: deterministic and without recursion."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def cycles_of(needs: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """One cycle for each strongly connected component: the shortest through its first name; sorted."""
    found: list[tuple[str, ...]] = []
    explained: set[str] = set()
    rest = _inside_knots(needs)
    for name in sorted(rest):
        if name not in explained and (path := _way_back(name, needs, rest)):
            found.append(path)
            explained |= _knot(name, needs, rest)
    return tuple(found)


def _inside_knots(needs: Mapping[str, Sequence[str]]) -> set[str]:
    """The nodes left after repeatedly removing those without dependencies, then those without dependents."""
    waiting: dict[str, list[str]] = {name: [] for name in needs}
    for name, needed in needs.items():
        for dependency in needed:
            waiting[dependency].append(name)
    rest = set(needs)
    for ahead, behind in ((needs, waiting), (waiting, needs)):
        count = {name: sum(other in rest for other in ahead[name]) for name in rest}
        free = deque(name for name, left in count.items() if not left)
        while free:
            name = free.popleft()
            rest.discard(name)
            for other in behind[name]:
                if other in rest:
                    count[other] -= 1
                    if not count[other]:
                        free.append(other)
    return rest


def _way_back(start: str, needs: Mapping[str, Sequence[str]], within: set[str]) -> tuple[str, ...]:
    """The shortest path from a name back to itself, with the name at both ends; empty if there is none."""
    came_from: dict[str, str] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for dependency in needs[name]:
            if dependency == start:
                return _path(came_from, start, name)
            if dependency in within and dependency not in came_from:
                came_from[dependency] = name
                queue.append(dependency)
    return ()


def _path(came_from: Mapping[str, str], start: str, end: str) -> tuple[str, ...]:
    path = [start]
    while end != start:
        path.append(end)
        end = came_from[end]
    return (start, *reversed(path))


def _knot(name: str, needs: Mapping[str, Sequence[str]], within: set[str]) -> set[str]:
    """All nodes that can be reached from the name and from which it can be reached."""
    waiting: dict[str, list[str]] = {other: [] for other in within}
    for other in within:
        for dependency in needs[other]:
            if dependency in within:
                waiting[dependency].append(other)
    return _reached(name, needs, within) & _reached(name, waiting, within)


def _reached(start: str, edges: Mapping[str, Sequence[str]], within: set[str]) -> set[str]:
    found = {start}
    queue = deque(found)
    while queue:
        for other in edges[queue.popleft()]:
            if other in within and other not in found:
                found.add(other)
                queue.append(other)
    return found
