"""The plan: which steps are needed to get from a snapshot to the desired state, in which order and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform import gates
from windlass.core.platform.gate_values import Failed, GateTarget, Open, Reason, Wait, abbreviate
from windlass.core.platform.model import scopes
from windlass.core.platform.model.applications import ResourceRef
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    NodeState,
    OperationPhase,
    Snapshot,
    SyncStatus,
    desired_revisions,
)
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import schedules
from windlass.core.platform.planning.definitions import definition_failure, with_outdated_parents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set

    from windlass.core.platform.model.applications import ApplicationNode, Platform
    from windlass.core.platform.model.graphs import CriticalPath
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.model.snapshots import ParentApplication


class Verb(StrEnum):
    SYNC = "sync"
    AWAIT = "await"
    """Change nothing: the node has the desired revisions but is not healthy yet."""
    RECHECK = "recheck"
    """Change nothing: the node is in the desired state, but a dependency is synced before it."""
    REMOVE = "remove"
    FAIL = "fail"
    """Change nothing: the definition of the node is not known."""


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
    is_known: bool = True
    """False for a dependent that counts as present because not all objects could be listed."""


@dataclass(frozen=True)
class Plan:
    """Steps in starting order. The plan is empty if the platform already is in the desired state."""

    scope: Scope
    steps: tuple[Step, ...]
    unchanged: tuple[str, ...]
    unmet: tuple[Unmet, ...]
    graph: Graph
    """The order of steps and rechecks."""
    critical_path: CriticalPath
    makespan: timedelta
    failures: Mapping[str, Failed] = field(default_factory=dict)
    """Why each step with the verb `fail` fails."""
    outdated_parents: Mapping[str, ParentApplication] = field(default_factory=dict)
    """By node: the parent that must be updated before the definition of the node is known."""
    rechecks: tuple[Step, ...] = ()
    """Unchanged nodes whose gates must open again because something they depend on is synced."""

    @property
    def is_empty(self) -> bool:
        """Whether no step changes something or waits."""
        return len(self.failures) == len(self.steps)

    @property
    def can_run(self) -> bool:
        return not self.unmet

    @property
    def changes(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.verb in {Verb.SYNC, Verb.REMOVE})


PlannedAction = tuple[Verb, str, tuple[str, ...]] | Failed
"""Verb, reason and revisions; or why nothing can be done."""
DOES_NOT_EXIST = "it does not exist"


@dataclass(frozen=True, slots=True)
class _PlanRules:
    """The rules of deploy or teardown: what to do with a node in scope, and what is wrong with one outside."""

    graph: Graph
    checked_nodes: Iterable[str]
    """Nodes that can block the plan when they are outside the scope; the order through all other nodes is preserved."""
    required_action: Callable[[str], PlannedAction | None]
    blocking_problem: Callable[[str], str]


def plan_deploy(
    platform: Platform,
    snapshot: Snapshot,
    scope: Scope,
    resolved_revisions: Mapping[str, tuple[str, ...]] | None = None,
) -> Plan:
    """`resolved_revisions`: revisions that this run resolved; for other nodes, those that the Application specifies."""
    resolved = resolved_revisions or {}
    names = scopes.selected_nodes(platform, scope) - platform.resource_nodes
    graph, outdated = with_outdated_parents(platform.graph, snapshot, names)

    def required_action(name: str) -> PlannedAction | None:
        failed = definition_failure(name, snapshot) if name in names else None
        if name in outdated and not failed:
            return Verb.SYNC, f"{outdated[name]}, which defines it, is updated first", ()
        return failed or _deploy_action(platform.applications[name], snapshot, resolved.get(name))

    rules = _PlanRules(
        graph,
        checked_nodes=platform.graph.names,
        required_action=required_action,
        blocking_problem=lambda name: _node_problem(platform.applications[name], snapshot),
    )
    return replace(_build_plan(platform, scope, rules), outdated_parents=outdated)


def plan_teardown(
    platform: Platform,
    snapshot: Snapshot,
    scope: Scope,
    left_behind: Mapping[str, str] | None = None,
    unlisted: str = "",
) -> Plan:
    """Plan on the reversed graph: dependents are deleted before their dependencies.

    `left_behind`: nodes whose Application is gone and whose objects are not, with a summary of these objects.
    `unlisted`: what could not be listed. If there is any, a node outside the scope counts as present also without an
    Application: nothing shows that its objects are gone.
    """
    left = left_behind or {}
    # Resource nodes are deleted together with the Application that created them.
    existing = (snapshot.states.keys() | left.keys()) - platform.resource_nodes
    problems = {name: f"its Application is gone, but {left[name]} still exists" for name in left}
    selected = scopes.selected_nodes(platform, scope)
    absent = {*platform.graph.names} - existing - platform.resource_nodes - selected
    unknown = absent if unlisted else set()

    def blocking_problem(name: str) -> str:
        if name in unknown:
            return f"may still depend on it: its Application is gone, but {unlisted}"
        return "still depends on it" + (f": {problems[name]}" if name in problems else "")

    rules = _PlanRules(
        platform.graph.reversed(),
        checked_nodes=existing | unknown,
        required_action=lambda name: (
            (Verb.REMOVE, problems.get(name, "it still exists"), ()) if name in existing else None
        ),
        blocking_problem=blocking_problem,
    )
    plan = _build_plan(platform, scope, rules)
    return replace(plan, unmet=tuple(replace(each, is_known=each.name not in unknown) for each in plan.unmet))


def _build_plan(platform: Platform, scope: Scope, rules: _PlanRules) -> Plan:
    names = scopes.selected_nodes(platform, scope)
    actions = {name: action for name in sorted(names) if (action := rules.required_action(name))}
    failures = {name: action for name, action in actions.items() if isinstance(action, Failed)}
    rechecks = tuple(_rechecks(rules.graph, names, actions))
    graph = _without_dependencies(rules.graph.subgraph(actions), failures)
    run_graph = _without_dependencies(rules.graph.subgraph([*actions, *(step.name for step in rechecks)]), failures)
    limits = schedules.ScheduleLimits(platform.max_parallel, platform.barrier)
    timeline = schedules.estimate_timeline(graph, platform.expected_durations, limits)
    outside = rules.graph.subgraph(names.union(rules.checked_nodes)).external_dependencies(names)
    return Plan(
        scope=scope,
        steps=tuple(_step(span.name, actions[span.name], graph) for span in timeline),
        unchanged=tuple(sorted(names - actions.keys())),
        unmet=tuple(Unmet(name, by, why) for name, by in outside.items() if (why := rules.blocking_problem(name))),
        graph=run_graph,
        critical_path=graph.critical_path(platform.expected_durations),
        makespan=schedules.makespan(timeline),
        failures=failures,
        rechecks=rechecks,
    )


def _without_dependencies(graph: Graph, names: Collection[str]) -> Graph:
    """The graph in which these nodes, which fail by themselves, wait for nothing."""
    return Graph({name: () if name in names else needed for name, needed in graph.dependencies.items()})


def _rechecks(graph: Graph, names: Set[str], actions: Mapping[str, PlannedAction]) -> Iterator[Step]:
    """Steps for the unchanged nodes that depend, directly or not, on a node that is synced."""
    synced = {name for name, action in actions.items() if not isinstance(action, Failed) and action[0] is Verb.SYNC}
    for name in sorted(names - actions.keys()):
        if dependencies := sorted(graph.closure([name]) & synced):
            why = f"it depends on {', '.join(dependencies)}, which this run syncs"
            yield Step(name, Verb.RECHECK, why, ())


def has_undefined_node(platform: Platform, snapshot: Snapshot, scope: Scope) -> bool:
    """Whether a missing node has no parent Application that would create it."""
    names = scopes.selected_nodes(platform, scope) - platform.resource_nodes
    return any(name not in snapshot.states and name not in snapshot.parents for name in names)


def _step(name: str, action: PlannedAction, graph: Graph) -> Step:
    verb, why, revisions = (Verb.FAIL, action.detail, ()) if isinstance(action, Failed) else action
    return Step(name, verb, why, graph.dependencies[name], revisions)


def _deploy_action(
    application: ApplicationNode, snapshot: Snapshot, resolved: tuple[str, ...] | None
) -> PlannedAction | None:
    state, parent = snapshot.states.get(application.name), snapshot.parents.get(application.name)
    if isinstance(application.target, ResourceRef):
        return (Verb.AWAIT, why, ()) if (why := _node_problem(application, snapshot)) else None
    if not isinstance(state, ApplicationState):
        return Verb.SYNC, DOES_NOT_EXIST, parent.revisions if parent else ()
    if parent and parent.updates_child:
        return Verb.SYNC, f"its definition in {parent} has changed", parent.revisions
    revisions = desired_revisions(state) if resolved is None else resolved
    if why := sync_reason(state, revisions):
        return Verb.SYNC, why, revisions
    why = _closed_reason(GateTarget(revisions, state.sources, application.timing), state, snapshot)
    return (Verb.AWAIT, why, revisions) if why else None


def seemingly_unchanged(platform: Platform, snapshot: Snapshot, scope: Scope) -> frozenset[str]:
    """The nodes about which the plan relies on Argo CD's verdict: Healthy, and in scope only if they need no sync."""
    selected = scopes.selected_nodes(platform, scope)
    healthy = {
        name: state
        for name in selected.union(platform.graph.external_dependencies(selected))
        if isinstance(state := snapshot.states.get(name), ApplicationState) and state.health is Health.HEALTHY
    }
    needing_sync = {name for name, state in healthy.items() if sync_reason(state, desired_revisions(state))}
    return frozenset(healthy.keys() - (needing_sync & selected))


def sync_reason(state: ApplicationState, desired: tuple[str, ...]) -> str:
    """Why the Application needs a sync; empty if a sync would change nothing."""
    operation = state.operation
    if state.revisions != desired:
        return f"it is at {abbreviate(state.revisions)}, desired is {abbreviate(desired)}"
    if state.has_abandoned_operation:
        return "its last operation was abandoned"
    if operation is not None and operation.phase in {OperationPhase.FAILED, OperationPhase.ERROR}:
        return f"its last operation ended {operation.phase}"
    if state.sync is SyncStatus.SYNCED or is_drifting(state, desired):
        return ""
    return f"it is {state.sync}"


def wait_before_sync(state: ApplicationState, revisions: tuple[str, ...]) -> Wait | None:
    """Why no sync can be requested now; `None` if one can."""
    if state.is_deleting:
        return Wait(Reason.DELETING, "it is being deleted")
    if state.operation_requested:
        return Wait(Reason.OPERATION_RUNNING, "an operation is pending or running")
    if not revisions or not state.sources:
        return Wait(Reason.NOT_COMPARED, "Argo CD has not compared it yet")
    return None


def is_drifting(state: ApplicationState, desired: tuple[str, ...]) -> bool:
    """OutOfSync although a sync of these revisions succeeded. Another sync would not help, so it is only reported."""
    operation = state.operation
    return (
        state.sync is SyncStatus.OUT_OF_SYNC
        and operation is not None
        and operation.phase is OperationPhase.SUCCEEDED
        and not operation.is_partial
        and operation.revisions == desired
    )


def _node_problem(application: ApplicationNode, snapshot: Snapshot) -> str:
    """What is wrong with a node; empty if it exists and is healthy, at any revision."""
    state = snapshot.states.get(application.name)
    if state is None:
        return DOES_NOT_EXIST
    return _closed_reason(gates.current_target(state, application.timing), state, snapshot)


def unchanged_outcomes(platform: Platform, plan: Plan, snapshot: Snapshot) -> tuple[Outcome, ...]:
    """Outcomes of the nodes that are already in the desired state, with evidence."""
    return tuple(_unchanged_outcome(platform.applications[name], snapshot) for name in plan.unchanged)


def failed_outcomes(plan: Plan) -> tuple[Outcome, ...]:
    """Outcomes of the nodes whose definition is not known, for a report without a run."""
    return tuple(Outcome(name, Result.FAILED, failed, failed.causes) for name, failed in plan.failures.items())


def _unchanged_outcome(application: ApplicationNode, snapshot: Snapshot) -> Outcome:
    state = snapshot.states.get(application.name)
    target = gates.current_target(state, replace(application.timing, stability=timedelta()))
    decision = gates.evaluate_gate(target, gates.start_history(state, snapshot.taken_at), snapshot.taken_at)
    return Outcome(application.name, Result.UNCHANGED, decision if isinstance(decision, Open) else None)


def _closed_reason(target: GateTarget, state: NodeState, snapshot: Snapshot) -> str:
    """Why the gate is closed when only observing; empty if it is open."""
    decision = gates.evaluate_gate(target, gates.start_history(state, snapshot.taken_at), snapshot.taken_at)
    if isinstance(decision, Open) or decision.reason is Reason.NOT_STABLE:
        return ""  # one snapshot cannot show how long it has been healthy
    return decision.detail
