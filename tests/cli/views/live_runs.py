"""Runs for the live view: states after some events of a plan, on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.builders import platform, snapshot
from windlass.cli.views.live_state import LiveState, apply_event
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import NodeFinished, NodeStarted, NodeWaiting, PhaseStarted, PlanReady, RunPhase
from windlass.core.platform.gate_values import Failed, Reason
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans, schedules

if TYPE_CHECKING:
    from windlass.core.platform.events import Event
    from windlass.core.platform.model.applications import Platform

CHAIN = platform("ui: api; api: db vault; db: disk; vault: disk", minutes={"disk": 2, "db": 5})


def plan_of(made: Platform, cluster: str = "") -> plans.Plan:
    return plans.plan_deploy(made, snapshot(cluster), parse_scope("platform"))


def started(name: str, attempt: int = 1) -> NodeStarted:
    return NodeStarted(name, plans.Verb.SYNC, attempt)


def ended(name: str, result: Result = Result.SUCCEEDED, detail: str = "") -> NodeFinished:
    return NodeFinished(Outcome(name, result, Failed(Reason.DEGRADED, detail) if detail else None))


def state_after(*events: Event | tuple[float, Event], made: Platform = CHAIN, cluster: str = "") -> LiveState:
    """An event alone happens at once, one with a number so many seconds after the beginning."""
    state = LiveState("deploy platform in staging", 0.0, made.expected_durations, made.max_parallel)
    for event in (PlanReady(plan_of(made, cluster)), PhaseStarted(RunPhase.RUN), *events):
        when, what = event if isinstance(event, tuple) else (0.0, event)
        state = apply_event(state, what, when)
    return state


@st.composite
def states(draw: st.DrawFn, most: int = 60) -> LiveState:
    """Somewhere in a run of a random platform, with texts as hostile as they come."""
    size = draw(st.integers(0, most))
    needs = [
        (number, draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else ()) for number in range(size)
    ]
    made = platform("\n".join(f"n{name}: {' '.join(f'n{other}' for other in others)}" for name, others in needs))
    schedule = schedules.Schedule(
        made.graph, made.expected_durations, schedules.ScheduleLimits(draw(st.integers(1, 9)))
    )
    texts = st.text(st.characters(), max_size=300)
    events: list[Event] = [LogLine(Level.WARN, draw(texts)) for _ in range(draw(st.integers(0, 4)))]
    for _ in range(draw(st.integers(0, size))):
        events += map(started, schedule.start())
        for name in sorted(schedule.running):
            events.append(NodeWaiting(name, "Progressing", draw(texts)))
            if draw(st.booleans()):
                schedule.succeed(name)
                events.append(ended(name))
            elif draw(st.booleans()):
                schedule.fail(name)
                events.append(ended(name, Result.FAILED, draw(texts)))
    return state_after(*events, made=made)
