"""State of the live view: built from events, with a forecast computed from it. Pure: times are passed in as seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from windlass.core.platform.events import (
    Level,
    NodeEnded,
    NodeStarted,
    NodeWaits,
    Noticed,
    PhaseBegan,
    Planned,
)
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.outcomes import GOOD, Result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from windlass.core.platform.events import Event, RunPhase
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Plan

NOTICES_KEPT = 3


class Lot(StrEnum):
    """Status of a node, in the order of the progress bar."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    RUNNING = "running"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Running:
    """A node that has started and not finished.

    `started` is when its first attempt started, `attempt_started` when the current one did.
    """

    name: str
    since: float
    tried_since: float
    attempt: int = 1
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True)
class State:
    """What the events so far say about a run. `title`, `expected` and `max_parallel` are known from the start."""

    title: str
    began: float
    expected: Mapping[str, timedelta]
    max_parallel: int
    phase: RunPhase | None = None
    plan: Plan | None = None
    running: Mapping[str, Running] = field(default_factory=dict)
    ended: Mapping[str, Outcome] = field(default_factory=dict)
    notices: tuple[tuple[float, Noticed], ...] = ()


def seen(state: State, event: Event, now: float) -> State:  # noqa: PLR0911 - one return per event type
    """The state after one more event. A NodeWaiting event for a node that is not running changes nothing."""
    match event:
        case PhaseBegan(phase):
            return replace(state, phase=phase)
        case Planned(plan):
            return replace(state, plan=plan)
        case NodeStarted(name, _, attempt):
            first = state.running[name].since if name in state.running else now
            return replace(state, running={**state.running, name: Running(name, first, now, attempt)})
        case NodeWaits(name, reason, detail):
            if name not in state.running:
                return state
            waiting = replace(state.running[name], reason=reason, detail=detail)
            return replace(state, running={**state.running, name: waiting})
        case NodeEnded(outcome):
            rest = {name: each for name, each in state.running.items() if name != outcome.name}
            return replace(state, running=rest, ended={**state.ended, outcome.name: outcome})
        case Noticed():
            if event.level not in {Level.WARN, Level.ERROR}:
                return state
            return replace(state, notices=(*state.notices, (now, event))[-NOTICES_KEPT:])
        case _:
            assert_never(event)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a state implies at one moment; computed once per redraw."""

    lots: Mapping[str, Lot]
    """Status of every node of the plan, and of every other node that an event named."""
    blocked: Mapping[str, frozenset[str]]
    """By failed node: its direct and transitive dependents, which cannot run any more."""
    chains: Mapping[str, float]
    """By unfinished node: expected seconds until the longest chain of dependents that starts with it is finished."""
    left: float | None
    """Expected seconds until the end of the run; `None` before there is a plan."""


def prospect(state: State, now: float) -> Prospect:
    behind = _blocked(state)
    lots = _lots(state, behind)
    if state.plan is None:
        return Prospect(lots, behind, {}, None)
    to_go = {name: _to_go(state, name, now) for name in state.plan.graph.names if _is_to_come(state, lots, name)}
    chains = _chains(state.plan.graph, to_go)
    # Two lower bounds: the longest chain, and the total work divided by the number of parallel nodes.
    left = max(max(chains.values(), default=0.0), sum(to_go.values()) / max(1, state.max_parallel))
    return Prospect(lots, behind, chains, left)


def _is_to_come(state: State, lots: Mapping[str, Lot], name: str) -> bool:
    return name not in state.ended and lots[name] in {Lot.RUNNING, Lot.WAITING}


def _lots(state: State, behind: Mapping[str, frozenset[str]]) -> Mapping[str, Lot]:
    planned = dict.fromkeys(state.plan.graph.names, Lot.WAITING) if state.plan else {}
    unchanged = dict.fromkeys(state.plan.unchanged, Lot.DONE) if state.plan else {}
    doomed = {name: Lot.SKIPPED for names in behind.values() for name in names}
    running = dict.fromkeys(state.running, Lot.RUNNING)
    ended = {name: _lot(outcome) for name, outcome in state.ended.items()}
    return planned | unchanged | doomed | running | ended


def _lot(outcome: Outcome) -> Lot:
    if outcome.result in GOOD:
        return Lot.DONE
    if outcome.result is Result.SKIPPED:
        return Lot.SKIPPED
    return Lot.WAITING if outcome.result is Result.NOT_STARTED else Lot.FAILED


def _blocked(state: State) -> Mapping[str, frozenset[str]]:
    failed = [name for name, outcome in state.ended.items() if _lot(outcome) is Lot.FAILED]
    behind = state.plan.graph.reversed() if state.plan and failed else Graph({})
    return {name: behind.closure([name]) - {name} if name in behind.needs else frozenset() for name in failed}


def _chains(graph: Graph, to_go: Mapping[str, float]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for name in reversed(graph.order):
        if name in to_go:
            behind = max((found[each] for each in graph.dependents[name] if each in found), default=0.0)
            found[name] = to_go[name] + behind
    return found


def _to_go(state: State, name: str, now: float) -> float:
    whole = expected_of(state, name)
    return max(0.0, whole - (now - state.running[name].tried_since)) if name in state.running else whole


def expected_of(state: State, name: str) -> float:
    return state.expected[name].total_seconds() if name in state.expected else 0.0
