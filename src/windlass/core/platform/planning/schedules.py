"""The schedule: which nodes may start now. Real runs and estimates use the same one."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.model.applications import Barrier
from windlass.core.platform.model.graphs import ZERO

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import timedelta

    from windlass.core.platform.model.graphs import Graph


@dataclass(frozen=True, slots=True)
class ScheduleLimits:
    max_parallel: int = 10
    barrier: Barrier = Barrier.NONE


@dataclass(frozen=True, slots=True)
class ScheduledSpan:
    """When a node starts and ends, relative to the start of the run."""

    name: str
    start: timedelta
    end: timedelta


class Schedule:
    """The scheduling state of one run: report finished nodes, get the nodes that may start. It has no clock."""

    def __init__(self, graph: Graph, durations: Mapping[str, timedelta], limits: ScheduleLimits) -> None:
        remaining = graph.remaining_durations(durations)
        self._graph = graph
        self._limits = limits
        self._priority = {name: (-remaining[name], name) for name in graph.dependencies}
        self._pending_dependencies = {name: len(needed) for name, needed in graph.dependencies.items()}
        self._wave_of = {name: number for number, wave in enumerate(graph.waves) for name in wave}
        self._unfinished_in_wave = [len(wave) for wave in graph.waves]
        self._current_wave = 0
        self._blocked_by_wave: dict[int, list[str]] = {}
        self._ready: list[tuple[timedelta, str]] = []
        self._running: set[str] = set()
        self._finished: set[str] = set()
        for name in graph.dependencies:
            if not self._pending_dependencies[name]:
                self._enqueue(name)

    @property
    def is_finished(self) -> bool:
        """No node is running and none can start."""
        return not self._running and not self._ready

    @property
    def running(self) -> frozenset[str]:
        return frozenset(self._running)

    def start(self) -> tuple[str, ...]:
        """The nodes to start now, marked as running: longest remaining duration first, then by name."""
        started = []
        while self._ready and len(self._running) < self._limits.max_parallel:
            name = heapq.heappop(self._ready)[1]
            self._running.add(name)
            started.append(name)
        return tuple(started)

    def succeed(self, name: str) -> None:
        self._finish_running(name)
        for dependent in self._graph.dependents[name]:
            self._pending_dependencies[dependent] -= 1
            if not self._pending_dependencies[dependent] and dependent not in self._finished:
                self._enqueue(dependent)

    def fail(self, name: str) -> tuple[str, ...]:
        """Mark the node as failed. Returns its direct and indirect dependents, which are skipped now; sorted."""
        self._finish_running(name)
        skipped = sorted(self._graph.reversed().closure([name]) - {name} - self._finished)
        for dependent in skipped:
            self._finish(dependent)
        return tuple(skipped)

    def _finish_running(self, name: str) -> None:
        self._running.remove(name)
        self._finish(name)

    def _finish(self, name: str) -> None:
        self._finished.add(name)
        self._unfinished_in_wave[self._wave_of[name]] -= 1
        while self._current_wave < len(self._unfinished_in_wave) and not self._unfinished_in_wave[self._current_wave]:
            self._current_wave += 1
            for unblocked in self._blocked_by_wave.pop(self._current_wave, []):
                heapq.heappush(self._ready, self._priority[unblocked])

    def _enqueue(self, name: str) -> None:
        """All dependencies have succeeded; with a barrier the node also waits for the whole previous wave."""
        wave = self._wave_of[name]
        if self._limits.barrier is Barrier.WAVE and wave > self._current_wave:
            self._blocked_by_wave.setdefault(wave, []).append(name)
        else:
            heapq.heappush(self._ready, self._priority[name])


def estimate_timeline(
    graph: Graph, durations: Mapping[str, timedelta], limits: ScheduleLimits
) -> tuple[ScheduledSpan, ...]:
    """The timeline of a run in which every node takes its expected duration, in starting order."""
    schedule = Schedule(graph, durations, limits)
    now = ZERO
    ends: list[tuple[timedelta, str]] = []
    spans = []
    while True:
        for name in schedule.start():
            spans.append(ScheduledSpan(name, now, now + durations[name]))
            heapq.heappush(ends, (now + durations[name], name))
        if not ends:
            return tuple(spans)
        now, name = heapq.heappop(ends)
        schedule.succeed(name)
        while ends and ends[0][0] == now:  # nodes that end at the same time count before any new one starts
            schedule.succeed(heapq.heappop(ends)[1])


def makespan(timeline: Sequence[ScheduledSpan]) -> timedelta:
    return max((span.end for span in timeline), default=ZERO)


def skip_causes(graph: Graph, failures: Mapping[str, Collection[str]]) -> Mapping[str, tuple[str, ...]]:
    """By skipped node: the causes of the failures it depends on, directly or not. Failed nodes have no entry.

    `failures`: by failed node, its causes, which may be the node itself.
    """
    causes: dict[str, frozenset[str]] = {}
    for name in graph.order:
        inherited = frozenset[str]().union(*(causes[dependency] for dependency in graph.dependencies[name]))
        causes[name] = inherited.union(failures.get(name, ()))
    return {name: tuple(sorted(causes[name])) for name in graph.names if causes[name] and name not in failures}
