"""What the live view knows, and what it expects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import platform
from tests.cli.views.live_runs import CHAIN, ended, plan_of, started, state_after
from tests.core.platform.strategies import timed_graphs
from windlass.cli.views.live_state import LiveState, NodeStatus, apply_event, compute_forecast
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import NodeWaiting, PhaseStarted, PlanReady, RunPhase
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.outcomes import Result
from windlass.core.platform.planning import schedules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from windlass.core.platform.events import Event
    from windlass.core.platform.model.graphs import Graph

EMPTY = LiveState("deploy", 0.0, {}, 10)


def lots(state: LiveState) -> dict[str, str]:
    return dict(compute_forecast(state, 0).statuses)


def test_where_each_node_stands() -> None:
    state = state_after(started("disk"), ended("disk"), started("db"), started("vault"), ended("vault", Result.FAILED))
    assert lots(state) == {"disk": "done", "db": "running", "vault": "failed", "api": "skipped", "ui": "skipped"}
    assert compute_forecast(state, 0).blocked == {"vault": {"api", "ui"}}


@pytest.mark.parametrize(
    ("result", "lot"),
    [
        (Result.UNCHANGED, NodeStatus.DONE),
        (Result.SUCCEEDED, NodeStatus.DONE),
        (Result.FAILED, NodeStatus.FAILED),
        (Result.INTERRUPTED, NodeStatus.FAILED),
        (Result.SKIPPED, NodeStatus.SKIPPED),
        (Result.NOT_STARTED, NodeStatus.WAITING),
    ],
)
def test_where_a_node_stands_by_its_result(result: Result, lot: NodeStatus) -> None:
    assert lots(state_after(ended("ui", result)))["ui"] is lot


def test_what_was_as_wanted_is_done() -> None:
    state = state_after(cluster="disk=healthy vault=healthy")
    assert {name for name, lot in lots(state).items() if lot == "done"} == {"disk", "vault"}


def test_an_attempt_keeps_the_age_and_forgets_what_was_waited_for() -> None:
    state = state_after((5, started("disk")), (6, NodeWaiting("disk", "Progressing", "soon")), (90, started("disk", 2)))
    disk = state.running["disk"]
    assert (disk.started, disk.attempt_started, disk.attempt, disk.reason) == (5, 90, 2, "")


def test_what_a_node_waits_for_is_known_until_it_ends() -> None:
    state = state_after(started("disk"), NodeWaiting("disk", "Progressing", "1 of 3"))
    assert (state.running["disk"].reason, state.running["disk"].detail) == ("Progressing", "1 of 3")
    assert not apply_event(state, ended("disk"), 1).running


def test_what_fits_nothing_changes_nothing() -> None:
    assert apply_event(EMPTY, NodeWaiting("stranger", "Progressing", ""), 1) == EMPTY
    assert apply_event(EMPTY, LogLine(Level.INFO, "routine"), 1) == EMPTY
    assert compute_forecast(apply_event(EMPTY, ended("stranger", Result.FAILED), 1), 1).blocked == {
        "stranger": frozenset()
    }


def test_the_last_warnings_are_kept() -> None:
    state = EMPTY
    for number in range(5):
        state = apply_event(state, LogLine(Level.WARN, f"warning {number}"), number)
    assert [(when, notice.message) for when, notice in state.notices] == [
        (2, "warning 2"),
        (3, "warning 3"),
        (4, "warning 4"),
    ]


def test_before_there_is_a_plan_nobody_knows_how_long() -> None:
    state = apply_event(EMPTY, PhaseStarted(RunPhase.OBSERVE), 0)
    assert state.phase is RunPhase.OBSERVE
    assert compute_forecast(state, 1).remaining_seconds is None


@pytest.mark.parametrize(
    ("events", "now", "left"),
    [
        ([], 0, 9 * 60),  # disk 2, db 5, api 1, ui 1
        ([started("disk")], 30, 8.5 * 60),
        ([started("disk"), (100, started("disk", 2))], 100, 9 * 60),  # from the beginning again
        ([started("disk")], 1000, 7 * 60),  # late: what is behind it still takes its time
        ([ended("disk"), ended("db"), ended("vault", Result.FAILED)], 0, 0),
        ([ended("disk"), started("db"), ended("vault", Result.FAILED)], 60, 4 * 60),  # api and ui are not waited for
        ([ended(name, Result.NOT_STARTED) for name in CHAIN.graph.names], 0, 0),
    ],
)
def test_how_long_it_still_takes(events: list[Event | tuple[float, Event]], now: float, left: float) -> None:
    assert compute_forecast(state_after(*events), now).remaining_seconds == left


def test_few_at_a_time_take_as_long_as_the_work_there_is() -> None:
    wide = platform("a; b; c; d", max_parallel=2)
    assert compute_forecast(state_after(made=wide), 0).remaining_seconds == 2 * 60


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(timed_graphs(), st.integers(1, 12), st.floats(0, 1))
def test_on_paper_it_is_exact_and_with_few_at_a_time_never_too_long(
    timed: tuple[Graph, Mapping[str, timedelta]], parallel: int, part: float
) -> None:
    graph, durations = timed
    made = platform("\n".join(f"{name}: {' '.join(needed)}" for name, needed in graph.dependencies.items()))
    patient = {
        name: replace(each, timing=NodeTiming(expected=durations[name])) for name, each in made.applications.items()
    }
    made = replace(made, applications=patient, max_parallel=parallel)
    spans = schedules.estimate_timeline(made.graph, made.expected_durations, schedules.ScheduleLimits(parallel))
    whole = schedules.makespan(spans).total_seconds()
    now = whole * part
    state = apply_event(LiveState("deploy", 0.0, made.expected_durations, parallel), PlanReady(plan_of(made)), 0)
    for span in spans:
        if span.start.total_seconds() <= now:
            state = apply_event(state, started(span.name), span.start.total_seconds())
        if span.end.total_seconds() <= now:
            state = apply_event(state, ended(span.name), span.end.total_seconds())
    left = compute_forecast(state, now).remaining_seconds
    assert left is not None
    assert now + left <= whole + 1e-6
    if parallel >= len(made.graph.names):
        assert now + left == pytest.approx(whole)
