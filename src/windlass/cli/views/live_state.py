"""State of the live view: built from events, with a forecast computed from it. Pure: times are passed in as seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import NodeFinished, NodeStarted, NodeWaiting, PhaseStarted, PlanReady
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.outcomes import SUCCESSFUL_RESULTS, Result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from windlass.core.platform.events import Event, RunPhase
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Plan

MAX_NOTICES = 3


class NodeStatus(StrEnum):
    """Status of a node, in the order of the progress bar."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    RUNNING = "running"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A node that has started and not finished.

    `started` is when its first attempt started, `attempt_started` when the current one did.
    """

    name: str
    started: float
    attempt_started: float
    attempt: int = 1
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True)
class LiveState:
    """What the events so far say about a run. `title`, `expected` and `max_parallel` are known from the start."""

    title: str
    started: float
    expected: Mapping[str, timedelta]
    max_parallel: int
    phase: RunPhase | None = None
    plan: Plan | None = None
    running: Mapping[str, RunningNode] = field(default_factory=dict)
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    notices: tuple[tuple[float, LogLine], ...] = ()


def apply_event(state: LiveState, event: Event, now: float) -> LiveState:  # noqa: PLR0911 - one return per event type
    """The state after one more event. A NodeWaiting event for a node that is not running changes nothing."""
    match event:
        case PhaseStarted(phase):
            return replace(state, phase=phase)
        case PlanReady(plan):
            return replace(state, plan=plan)
        case NodeStarted(name, _, attempt):
            started = state.running[name].started if name in state.running else now
            return replace(state, running={**state.running, name: RunningNode(name, started, now, attempt)})
        case NodeWaiting(name, reason, detail):
            if name not in state.running:
                return state
            updated = replace(state.running[name], reason=reason, detail=detail)
            return replace(state, running={**state.running, name: updated})
        case NodeFinished(outcome):
            running = {name: each for name, each in state.running.items() if name != outcome.name}
            return replace(state, running=running, outcomes={**state.outcomes, outcome.name: outcome})
        case LogLine():
            if event.level not in {Level.WARN, Level.ERROR}:
                return state
            return replace(state, notices=(*state.notices, (now, event))[-MAX_NOTICES:])
        case _:
            assert_never(event)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a state implies at one moment; computed once per redraw."""

    statuses: Mapping[str, NodeStatus]
    """Status of every node of the plan, and of every other node that an event named."""
    blocked: Mapping[str, frozenset[str]]
    """By failed node: its direct and transitive dependents, which cannot run any more."""
    chain_seconds: Mapping[str, float]
    """By unfinished node: expected seconds until the longest chain of dependents that starts with it is finished."""
    remaining_seconds: float | None
    """Expected seconds until the end of the run; `None` before there is a plan."""


def compute_forecast(state: LiveState, now: float) -> Forecast:
    blocked = _blocked_nodes(state)
    statuses = _node_statuses(state, blocked)
    if state.plan is None:
        return Forecast(statuses, blocked, {}, None)
    remaining = {
        name: _remaining_seconds(state, name, now)
        for name in state.plan.graph.names
        if _is_unfinished(state, statuses, name)
    }
    chain_seconds = _chain_seconds(state.plan.graph, remaining)
    # Two lower bounds: the longest chain, and the total work divided by the number of parallel nodes.
    total = max(max(chain_seconds.values(), default=0.0), sum(remaining.values()) / max(1, state.max_parallel))
    return Forecast(statuses, blocked, chain_seconds, total)


def _is_unfinished(state: LiveState, statuses: Mapping[str, NodeStatus], name: str) -> bool:
    return name not in state.outcomes and statuses[name] in {NodeStatus.RUNNING, NodeStatus.WAITING}


def _node_statuses(state: LiveState, blocked: Mapping[str, frozenset[str]]) -> Mapping[str, NodeStatus]:
    planned = dict.fromkeys(state.plan.graph.names, NodeStatus.WAITING) if state.plan else {}
    unchanged = dict.fromkeys(state.plan.unchanged, NodeStatus.DONE) if state.plan else {}
    skipped = {name: NodeStatus.SKIPPED for names in blocked.values() for name in names}
    running = dict.fromkeys(state.running, NodeStatus.RUNNING)
    finished = {name: _outcome_status(outcome) for name, outcome in state.outcomes.items()}
    return planned | unchanged | skipped | running | finished


def _outcome_status(outcome: Outcome) -> NodeStatus:
    if outcome.result in SUCCESSFUL_RESULTS:
        return NodeStatus.DONE
    if outcome.result is Result.SKIPPED:
        return NodeStatus.SKIPPED
    return NodeStatus.WAITING if outcome.result is Result.NOT_STARTED else NodeStatus.FAILED


def _blocked_nodes(state: LiveState) -> Mapping[str, frozenset[str]]:
    failed = [name for name, outcome in state.outcomes.items() if _outcome_status(outcome) is NodeStatus.FAILED]
    dependents = state.plan.graph.reversed() if state.plan and failed else Graph({})
    return {
        name: dependents.closure([name]) - {name} if name in dependents.dependencies else frozenset() for name in failed
    }


def _chain_seconds(graph: Graph, remaining: Mapping[str, float]) -> Mapping[str, float]:
    seconds: dict[str, float] = {}
    for name in reversed(graph.order):
        if name in remaining:
            longest = max((seconds[each] for each in graph.dependents[name] if each in seconds), default=0.0)
            seconds[name] = remaining[name] + longest
    return seconds


def _remaining_seconds(state: LiveState, name: str, now: float) -> float:
    expected = expected_seconds(state, name)
    return max(0.0, expected - (now - state.running[name].attempt_started)) if name in state.running else expected


def expected_seconds(state: LiveState, name: str) -> float:
    return state.expected[name].total_seconds() if name in state.expected else 0.0
