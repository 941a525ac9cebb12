"""Who may start: priorities, limits, barriers, skips. The properties are what INV-1 and INV-4 ask of any run."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import graph, seconds
from tests.core.platform.strategies import graphs, timed_graphs
from windlass.core.platform.model.applications import Barrier
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.planning import schedules
from windlass.core.platform.planning.schedules import Schedule, ScheduleLimits

Timed = tuple[Graph, dict[str, timedelta]]
LIMITS = st.builds(ScheduleLimits, st.integers(1, 5), st.sampled_from(Barrier))


def times(made: Graph, **known: float) -> dict[str, timedelta]:
    return {name: seconds(known.get(name, 1)) for name in made.names}


def started(text: str, limits: ScheduleLimits, **known: float) -> list[str]:
    made = graph(text)
    return [
        f"{span.name}@{span.start.total_seconds():g}"
        for span in schedules.estimate_timeline(made, times(made, **known), limits)
    ]


@pytest.mark.parametrize(
    ("text", "limits", "expected"),
    [
        ("", ScheduleLimits(), []),
        ("b: a; c: a; d: b", ScheduleLimits(), ["a@0", "b@1", "c@1", "d@2"]),
        ("z: y; y: x; a; b", ScheduleLimits(1), ["x@0", "y@1", "a@2", "b@3", "z@4"]),
        ("slow; quick; after: quick", ScheduleLimits(), ["slow@0", "quick@0", "after@1"]),
        ("slow; quick; after: quick", ScheduleLimits(barrier=Barrier.WAVE), ["slow@0", "quick@0", "after@9"]),
    ],
    ids=["nothing", "edge by edge", "the longest way first, then the name", "no barrier", "a barrier of waves"],
)
def test_the_order_of_starting(text: str, limits: ScheduleLimits, expected: list[str]) -> None:
    assert started(text, limits, slow=9) == expected


def test_a_long_chain_starts_before_a_long_single() -> None:
    assert started("end: middle; middle: first; big", ScheduleLimits(1), big=1.5)[:2] == ["first@0", "middle@1"]


@given(timed_graphs(), LIMITS, st.data())
def test_nothing_starts_before_all_it_waits_for_succeeded(
    made: Timed, limits: ScheduleLimits, data: st.DataObject
) -> None:
    graph, durations = made
    schedule = Schedule(graph, durations, limits)
    running: list[str] = []
    done: set[str] = set()
    failed: set[str] = set()
    skipped: set[str] = set()
    while True:
        for name in schedule.start():
            assert set(graph.dependencies[name]) <= done
            assert name not in skipped | done | failed
            running.append(name)
        assert len(running) <= limits.max_parallel
        assert schedule.running == set(running)
        if not running:
            break
        name = running.pop(data.draw(st.integers(0, len(running) - 1)))
        if data.draw(st.booleans()):
            schedule.succeed(name)
            done.add(name)
        else:
            failed.add(name)
            new = set(schedule.fail(name))
            assert not new & (skipped | done | failed)
            skipped |= new
    assert schedule.is_finished
    assert done | failed | skipped == set(graph.names)
    behind = graph.reversed().closure(failed) - failed
    assert skipped == behind, "skipped is exactly what depends on a failure"
    causes = schedules.skip_causes(graph, {name: (name,) for name in failed})
    assert set(causes) == skipped
    for name, found in causes.items():
        assert set(found) == (graph.closure([name]) - {name}) & failed


@given(timed_graphs(), LIMITS)
def test_a_rehearsal_obeys_the_limits_and_is_always_the_same(made: Timed, limits: ScheduleLimits) -> None:
    graph, durations = made
    spans = schedules.estimate_timeline(graph, durations, limits)
    assert spans == schedules.estimate_timeline(graph, durations, limits)
    at = {span.name: span for span in spans}
    assert set(at) == set(graph.names)
    for name, span in at.items():
        assert all(at[dependency].end <= span.start for dependency in graph.dependencies[name])
        together = [other for other in spans if other.start <= span.start < other.end]
        assert len(together) <= limits.max_parallel
    if limits.barrier is Barrier.WAVE:
        for before, after in zip(graph.waves, graph.waves[1:], strict=False):
            assert max(at[name].end for name in before) <= min(at[name].start for name in after)
    assert schedules.makespan(spans) >= graph.critical_path(durations).duration


@given(timed_graphs())
def test_without_limits_a_run_takes_as_long_as_its_critical_path(made: Timed) -> None:
    graph, durations = made
    spans = schedules.estimate_timeline(graph, durations, ScheduleLimits(max_parallel=99))
    assert schedules.makespan(spans) == graph.critical_path(durations).duration


@given(graphs())
def test_no_failure_no_cause(made: Graph) -> None:
    assert schedules.skip_causes(made, {}) == {}


def test_what_was_blocked_hands_on_what_blocked_it() -> None:
    made = graph("d: c other; c: b; b: a; other:")
    assert schedules.skip_causes(made, {"b": ("a",), "other": ("other",)}) == {
        "c": ("a",),
        "d": ("a", "other"),
    }
