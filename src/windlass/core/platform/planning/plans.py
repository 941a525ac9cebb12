"""The plan: which steps are needed to get from a snapshot to the desired state, in which order and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform import gates
from windlass.core.platform.model import scopes
from windlass.core.platform.model.applications import ResourceRef
from windlass.core.platform.model.snapshots import ApplicationState, Phase, Snapshot, State, Sync, wanted_revisions
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import schedules

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from windlass.core.platform.model.applications import Application, Platform
    from windlass.core.platform.model.graphs import CriticalPath, Graph
    from windlass.core.platform.model.scopes import Scope


class Verb(StrEnum):
    SYNC = "sync"
    AWAIT = "await"
    """Change nothing: the node has the desired revisions but is not healthy yet."""
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    verb: Verb
    why: str
    after: tuple[str, ...]
    """Steps of this plan that must succeed first."""
    revisions: tuple[str, ...] = ()
    """The revisions it will have, if known."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A dependency outside the scope that is not in the required state."""

    name: str
    needed_by: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Plan:
    """Steps in starting order. The plan is empty if the platform already is in the desired state."""

    scope: Scope
    steps: tuple[Step, ...]
    unchanged: tuple[str, ...]
    unmet: tuple[Unmet, ...]
    graph: Graph
    critical_path: CriticalPath
    makespan: timedelta

    @property
    def is_empty(self) -> bool:
        return not self.steps

    @property
    def can_run(self) -> bool:
        return not self.unmet

    @property
    def changes(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.verb is not Verb.AWAIT)


Todo = tuple[Verb, str, tuple[str, ...]]
"""Verb, reason and revisions."""
NOT_THERE = "it does not exist"


@dataclass(frozen=True, slots=True)
class _Goal:
    """The rules of deploy or teardown: what to do with a node in scope, and what is wrong with one outside."""

    graph: Graph
    looked_at: Collection[str]
    """Nodes that can block the plan when they are outside the scope; the order through all other nodes is preserved."""
    todo: Callable[[str], Todo | None]
    amiss: Callable[[str], str]


def for_deploy(
    platform: Platform, snapshot: Snapshot, scope: Scope, wanted: Mapping[str, tuple[str, ...]] | None = None
) -> Plan:
    """`resolved_revisions`: revisions that this run resolved; for other nodes, those that the Application specifies."""
    resolved = wanted or {}
    goal = _Goal(
        platform.graph,
        looked_at=platform.graph.names,
        todo=lambda name: _to_deploy(platform.applications[name], snapshot, resolved.get(name)),
        amiss=lambda name: _what_is_amiss(platform.applications[name], snapshot),
    )
    return _plan(platform, scope, goal)


def for_teardown(platform: Platform, snapshot: Snapshot, scope: Scope) -> Plan:
    """Plan on the reversed graph: dependents are deleted before their dependencies."""
    there = snapshot.states.keys() - platform.resource_nodes  # deleted together with the Application that created them
    goal = _Goal(
        platform.graph.reversed(),
        looked_at=there,
        todo=lambda name: (Verb.REMOVE, "it is there", ()) if name in there else None,
        amiss=lambda _: "it is there and depends on what would be removed",
    )
    return _plan(platform, scope, goal)


def _plan(platform: Platform, scope: Scope, goal: _Goal) -> Plan:
    names = scopes.selected(platform, scope)
    found = {name: what for name in sorted(names) if (what := goal.todo(name))}
    rest = goal.graph.restricted_to(found)
    limits = schedules.Limits(platform.max_parallel, platform.barrier)
    timeline = schedules.rehearsed(rest, platform.expected, limits)
    outside = goal.graph.restricted_to(names.union(goal.looked_at)).needed_from_outside(names)
    return Plan(
        scope=scope,
        steps=tuple(_step(span.name, found[span.name], rest) for span in timeline),
        unchanged=tuple(sorted(names - found.keys())),
        unmet=tuple(Unmet(name, by, why) for name, by in outside.items() if (why := goal.amiss(name))),
        graph=rest,
        critical_path=rest.critical_path(platform.expected),
        makespan=schedules.makespan(timeline),
    )


def has_undefined(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether a missing node has no parent Application that would create it."""
    return any(step.why == NOT_THERE and step.name not in snapshot.parents for step in plan.steps)


def _step(name: str, todo: Todo, graph: Graph) -> Step:
    verb, why, revisions = todo
    return Step(name, verb, why, graph.needs[name], revisions)


def _to_deploy(application: Application, snapshot: Snapshot, wanted: tuple[str, ...] | None) -> Todo | None:
    state, parent = snapshot.states.get(application.name), snapshot.parents.get(application.name)
    if isinstance(application.target, ResourceRef):
        return (Verb.AWAIT, why, ()) if (why := _what_is_amiss(application, snapshot)) else None
    if not isinstance(state, ApplicationState):
        return Verb.SYNC, NOT_THERE, parent.revisions if parent else ()
    if parent and not (parent.is_followed or parent.is_automated):
        return Verb.SYNC, f"its definition in {parent} has changed", parent.revisions
    revisions = wanted_revisions(state) if wanted is None else wanted
    if why := why_sync(state, revisions):
        return Verb.SYNC, why, revisions
    why = _why_closed(gates.Wanted(revisions, state.sources, application.patience), state, snapshot)
    return (Verb.AWAIT, why, revisions) if why else None


def why_sync(state: ApplicationState, wanted: tuple[str, ...]) -> str:
    """Why the Application needs a sync; empty if a sync would change nothing."""
    operation = state.operation
    if state.revisions != wanted:
        return f"it is at {gates.short(state.revisions)}, wanted is {gates.short(wanted)}"
    if state.is_abandoned:
        return "its last operation was abandoned"
    if operation is not None and operation.phase in {Phase.FAILED, Phase.ERROR}:
        return f"its last operation ended {operation.phase}"
    if state.sync is Sync.SYNCED or is_drifting(state, wanted):
        return ""
    return f"it is {state.sync}"


def is_drifting(state: ApplicationState, wanted: tuple[str, ...]) -> bool:
    """OutOfSync although a sync of these revisions succeeded. Another sync would not help, so it is only reported."""
    operation = state.operation
    return (
        state.sync is Sync.OUT_OF_SYNC
        and operation is not None
        and operation.phase is Phase.SUCCEEDED
        and not operation.is_partial
        and operation.revisions == wanted
    )


def _what_is_amiss(application: Application, snapshot: Snapshot) -> str:
    """What is wrong with a node; empty if it exists and is healthy, at any revision."""
    state = snapshot.states.get(application.name)
    if state is None:
        return NOT_THERE
    return _why_closed(gates.as_shown(state, application.patience), state, snapshot)


def untouched(platform: Platform, plan: Plan, snapshot: Snapshot) -> tuple[Outcome, ...]:
    """Outcomes of the nodes that are already in the desired state, with evidence."""
    return tuple(_untouched(platform.applications[name], snapshot) for name in plan.unchanged)


def _untouched(application: Application, snapshot: Snapshot) -> Outcome:
    state = snapshot.states.get(application.name)
    wanted = gates.as_shown(state, replace(application.patience, stability=timedelta()))
    judgement = gates.judge(wanted, gates.first_seen(state, snapshot.taken_at), snapshot.taken_at)
    return Outcome(application.name, Result.UNCHANGED, judgement if isinstance(judgement, gates.Open) else None)


def _why_closed(wanted: gates.Wanted, state: State, snapshot: Snapshot) -> str:
    """Why the gate is closed when only observing; empty if it is open."""
    judgement = gates.judge(wanted, gates.first_seen(state, snapshot.taken_at), snapshot.taken_at)
    if isinstance(judgement, gates.Open) or judgement.reason is gates.Reason.NOT_STABLE:
        return ""  # one snapshot cannot show how long it has been healthy
    return judgement.detail
