"""What a seed may draw beside its basis: each dimension adds to a scenario from a chance of its own. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulation.foreign_parents import FOREIGN_PARENTS
from tests.simulation.process_dimensions import (
    add_deleted_leases,
    add_interruptions,
    add_lease_outages,
    add_pauses,
    moment,
    undisturbed,
    with_slow_parts,
)
from tests.simulation.repository_dimensions import (
    add_annotations,
    add_changes_after_plans,
    add_late_breakages,
    add_vanishing_commits,
)
from tests.simulation.request_dimensions import (
    add_approved_teardowns,
    add_critical_nodes,
    add_observers,
    add_other_environments,
    add_refused_definitions,
    add_several_sources,
    add_stacks,
)
from tests.simulation.scenarios import US, Act, Event, TeardownScenario
from windlass.core.platform.model.applications import ApplicationNode, ApplicationRef, Stack
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.scopes import Scope, ScopeKind
from windlass.core.platform.reporting.reports import Action
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    import random  # noqa: TID251 - seeded, handed on as a value
    from collections.abc import Callable

    from tests.simulation.scenarios import Scenario
    from windlass.core.platform.model.applications import Platform

    Chance = random.Random

SHARE = 0.25  # the share of seeds that a dimension adds to
SELDOM = 0.15  # of one that makes many runs fail
RARE = 0.05  # of one that replaces the runs of a seed
REASONS = {401: "Unauthorized", 403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable"}
DENIED_KINDS = (
    *("applications.argoproj.io", "applications.argoproj.io", "leases.coordination.k8s.io", "*", "*reviews*"),
    *("pods", "deployments.apps", "configmaps", "persistentvolume*", "namespaces", "customresourcedefinitions.*"),
)
DENIED_VERBS = ("*", "get", "list", "watch", "create", "patch", "update", "delete")
THIRD_PARTY_EVENTS = ("rollback", "selective-sync", "terminate", "orphan", "recreate", "automate", "contest")
ROOT_EVENTS = ("edit", "root-automate", "root-label", "root-source")


@dataclass(frozen=True, slots=True)
class Dimension:
    add: Callable[[Chance, Scenario], Scenario]
    is_drawn: bool = True
    """Whether it is drawn by default."""
    share: float = SHARE


def _with_events(scenario: Scenario, draw: Callable[[], list[Event]]) -> Scenario:
    """The scenario with further events in each of its deploys."""
    acts = tuple(replace(act, events=(*act.events, *draw())) for act in scenario.acts)
    return replace(scenario, acts=acts)


def _outages(chance: Chance, scenario: Scenario) -> Scenario:
    """Pods that become unready at any time, and ready again."""
    names = [name for name, part in scenario.commits[0].items() if part.kind]
    scenario = with_slow_parts(chance, scenario)

    def draw() -> list[Event]:
        seconds = (20.0, 100.0, 300.0, 900.0)
        return [
            Event(moment(chance, scenario), "outage", chance.choice(names), chance.choice(seconds))
            for _ in range(chance.choice((1, 1, 2, 4)))
        ]

    return _with_events(scenario, draw) if names else scenario


def _third_parties(chance: Chance, scenario: Scenario) -> Scenario:
    """Other clients that sync, delete and edit Applications, the root included."""

    def draw() -> list[Event]:
        kinds = (*THIRD_PARTY_EVENTS, *(ROOT_EVENTS if scenario.has_root else ()))
        return [_third_party_event(chance, scenario, kinds) for _ in range(chance.choice((1, 1, 2, 4)))]

    scenario = undisturbed(scenario) if chance.random() < 0.5 else scenario
    return _with_events(_with_pushes(scenario), draw)


def _takeovers(chance: Chance, scenario: Scenario) -> Scenario:
    """One operation of another client in a deploy of a new commit in which nothing else happens."""
    target, soon = chance.choice(list(scenario.commits[0])), chance.choice((0.5, 1.5, 3.0, 6.0, 10.0))
    event = Event(soon, chance.choice(("rollback", "selective-sync", "terminate")), target, after_operation=True)
    commits = tuple(
        {name: replace(part, version=part.version + 10 * number) for name, part in commit.items()}
        for number, commit in enumerate(scenario.commits)
    )  # everything is new in every commit
    acts = (Act(), Act(pushes_first=True, events=(event,)))
    return undisturbed(replace(scenario, commits=commits, acts=acts, lies={}, overlooked={}))


def _deletions(chance: Chance, scenario: Scenario) -> Scenario:
    """Another client that deletes an Application with everything in it."""
    return _with_events(
        _with_pushes(scenario), lambda: [_third_party_event(chance, scenario, ("delete",)) for _ in range(2)]
    )


def _deleted_roots(chance: Chance, scenario: Scenario) -> Scenario:
    """Another client that deletes the root, without its children."""
    if not scenario.has_root:
        return scenario
    return _with_events(_with_pushes(scenario), lambda: [Event(moment(chance, scenario), "root-delete")])


def _third_party_event(chance: Chance, scenario: Scenario, kinds: tuple[str, ...]) -> Event:
    """At any time, or soon after the run has requested an operation of its target."""
    kind, target, at = chance.choice(kinds), chance.choice(list(scenario.commits[0])), moment(chance, scenario)
    soon = chance.choice((0.0, 0.5, 1.0, 3.0, 10.0))
    return Event(soon, kind, target, after_operation=True) if chance.random() < 0.5 else Event(at, kind, target)


def _with_pushes(scenario: Scenario) -> Scenario:
    """The scenario with at least two deploys, each of a commit of its own where there is one."""
    acts = scenario.acts if len(scenario.acts) > 1 else (Act(), *scenario.acts)
    return replace(scenario, acts=(acts[0], *(replace(act, pushes_first=True) for act in acts[1:])))


def _broken_commits(chance: Chance, scenario: Scenario) -> Scenario:
    """Commits whose root cannot be rendered, or does not define an application; never the last one."""
    if not scenario.has_root:
        return scenario
    numbers = range(len(scenario.commits) - 1)
    broken = frozenset(number for number in numbers if chance.random() < 0.3)
    undefined = {
        number: frozenset(name for name in scenario.commits[0] if chance.random() < 0.15)
        for number in numbers
        if chance.random() < 0.5
    }
    return replace(_with_pushes(scenario), broken_roots=broken, undefined=undefined)


def _dead_services(chance: Chance, scenario: Scenario) -> Scenario:
    """Git, or Argo CD's application controller, that does not answer for a while."""

    def draw() -> list[Event]:
        at = chance.choice((0.0, moment(chance, scenario)))
        seconds = chance.choice((5.0, 60.0, 400.0, 2000.0))
        return [Event(at, chance.choice(("git-down", "controller-down")), seconds=seconds)]

    return _with_events(scenario, draw)


def _denied(chance: Chance, scenario: Scenario) -> Scenario:
    """Requests of a run that fail until it ends."""

    def deny(act: Act) -> Act:
        code = chance.choice(list(REASONS))
        verb, kind, skip = chance.choice(DENIED_VERBS), chance.choice(DENIED_KINDS), chance.choice((0, 0, 1, 10, 50))
        fault = Fault(verb=verb, kind=kind, user=US, skip=skip, times=None, code=code, reason=REASONS[code])
        return replace(act, faults=(*act.faults, fault))

    teardown = scenario.teardown
    if teardown:
        teardown = replace(teardown, acts=tuple(deny(act) for act in teardown.acts))
    return replace(scenario, acts=tuple(deny(act) for act in scenario.acts), teardown=teardown)


def _clocks(chance: Chance, scenario: Scenario) -> Scenario:
    """Argo CD's clock differs from the API server's, and the wall clock of a run is set while it runs."""
    steps = (-600.0, -60.0, -5.0, 5.0, 60.0, 600.0)
    scenario = replace(scenario, skew=chance.choice((0.0, *steps)))
    return _with_events(
        scenario,
        lambda: [
            Event(moment(chance, scenario), "clock-step", seconds=chance.choice(steps))
            for _ in range(chance.choice((0, 1)))
        ],
    )


def _late_writes(chance: Chance, scenario: Scenario) -> Scenario:
    """Requests that arrive long after they were sent, when their sender may have given up."""

    def delay(act: Act) -> Act:
        writes = 2 + 5 * len(scenario.commits[0])
        late = {chance.randint(1, writes): chance.choice((6.0, 20.0, 70.0)) for _ in range(chance.choice((1, 2, 4)))}
        rival_at = chance.choice((0.0, chance.uniform(1.0, 30.0)))
        return replace(act, late_writes=late, rival_at=act.rival_at or rival_at)

    return replace(scenario, acts=tuple(delay(act) for act in scenario.acts))


def _foreign_objects(chance: Chance, scenario: Scenario) -> Scenario:
    """Applications with CRDs and namespaces, in which other clients have put objects, at a teardown.

    With some seeds the run may not list what it would have to see.
    """
    parts = scenario.commits[0]
    extras = {
        name: frozenset(each for each in ("crd", "namespace") if chance.random() < 0.3)
        | frozenset(chance.choice(((), (), ("created-namespace",), ("old-namespace",))))
        for name in parts
    }
    foreign = [(kind, name) for name, has in extras.items() for kind in _foreign_kinds(has)]
    chosen = tuple(each for each in foreign if chance.random() < 0.5)
    teardown = scenario.teardown or TeardownScenario((Act(Action.TEARDOWN),))
    kind = chance.choice(("secrets", "widgets.*", "persistentvolumeclaims", "*"))
    denied = Fault(verb="list", kind=kind, user=US, times=None, code=403, reason="Forbidden")
    acts = tuple(replace(act, faults=(*act.faults, denied)) if chance.random() < 0.3 else act for act in teardown.acts)
    return replace(scenario, extras=extras, teardown=replace(teardown, foreign=chosen, acts=acts))


def _foreign_kinds(extras: frozenset[str]) -> list[str]:
    return [{"crd": "instance", "namespace": "secret"}.get(each, "created-secret") for each in sorted(extras)]


def _owned_claims(chance: Chance, scenario: Scenario) -> Scenario:
    """Claims that an operator has made: no Application tracks them, only their owner tells whose they are."""
    owners = [name for name, part in scenario.commits[-1].items() if part.kind]
    teardown = scenario.teardown or TeardownScenario((Act(Action.TEARDOWN),))
    chosen = tuple(("owned-claim", name) for name in owners if chance.random() < 0.5)
    return replace(scenario, teardown=replace(teardown, foreign=(*teardown.foreign, *chosen)))


def _orphaned(chance: Chance, scenario: Scenario) -> Scenario:
    """Applications that another client deleted without their objects, before a teardown of one application."""
    teardown = scenario.teardown or TeardownScenario()
    names = list(scenario.commits[0])
    orphaned = tuple(name for name in names if chance.random() < 0.3 and name not in teardown.volumes)
    acts = (Act(Action.TEARDOWN, scope=Scope(ScopeKind.APP, chance.choice(names))), *teardown.acts)
    return replace(scenario, teardown=replace(teardown, acts=acts, orphaned=orphaned))


def _approvals(chance: Chance, scenario: Scenario) -> Scenario:
    """Runs that execute an approved plan, with commits that are pushed after the plan."""

    def approve(act: Act) -> Act:
        if chance.random() < 0.3:
            return act
        push_at = chance.choice((0.0, 0.5, 2.0, 5.0, 20.0))
        return replace(act, is_approved=True, pushes_after_plan=chance.random() < 0.3, push_at=push_at)

    scenario = _with_pushes(scenario)
    return replace(scenario, acts=tuple(approve(act) for act in scenario.acts))


def _without_root(scenario: Scenario) -> Scenario:
    """Without what only a root of ours has; until it is compared, no run can know what another parent defines."""
    pushed = _with_pushes(scenario)
    return replace(pushed, has_root=False, automated=frozenset(), broken_roots=frozenset(), undefined={})


def _parents(chance: Chance, scenario: Scenario) -> Scenario:
    """Applications that a parent of another client defines, and that only a run moves."""
    parent = chance.choice(("application", "set", "node"))
    changed = replace(_without_root(scenario), parent=parent)
    return replace(changed, platform=_with_parent_node(scenario.platform)) if parent == "node" else changed


def _automated_parents(chance: Chance, scenario: Scenario) -> Scenario:
    """Applications whose parent, or the parent of their parent, moves by itself."""
    parent = chance.choice(("automated", "nested"))
    return replace(_without_root(scenario), parent=parent)


def _with_parent_node(platform: Platform) -> Platform:
    first, timing = FOREIGN_PARENTS[0], next(iter(platform.applications.values())).timing
    nodes = {**platform.applications, first: ApplicationNode(first, "all", ApplicationRef(first), timing=timing)}
    needs = {**{name: list(each) for name, each in platform.graph.dependencies.items()}, first: []}
    stacks = (Stack("all", tuple(sorted(nodes))),)
    graph = Graph.build(needs)
    return replace(platform, stacks=stacks, applications=nodes, graph=graph, managed_nodes=frozenset(nodes))


def _validation(chance: Chance, scenario: Scenario) -> Scenario:
    return replace(scenario, validates=True)


DIMENSIONS: dict[str, Dimension] = {
    "outages": Dimension(_outages),
    "third-parties": Dimension(_third_parties),
    "takeovers": Dimension(_takeovers, share=RARE),
    "deletions": Dimension(_deletions),
    "deleted-roots": Dimension(_deleted_roots),
    "broken-commits": Dimension(_broken_commits),
    "dead-services": Dimension(_dead_services),
    "denied": Dimension(_denied),
    "clocks": Dimension(_clocks),
    "late-writes": Dimension(_late_writes),
    "foreign-objects": Dimension(_foreign_objects),
    "owned-claims": Dimension(_owned_claims),
    "orphaned": Dimension(_orphaned),
    "approvals": Dimension(_approvals),
    "parents": Dimension(_parents),
    "automated-parents": Dimension(_automated_parents),
    "interruptions": Dimension(add_interruptions, share=RARE),
    "pauses": Dimension(add_pauses, share=RARE),
    "deleted-leases": Dimension(add_deleted_leases, share=RARE),
    "lease-outages": Dimension(add_lease_outages, share=RARE),
    "validation": Dimension(_validation),
    "critical": Dimension(add_critical_nodes),
    "stacks": Dimension(add_stacks),
    "approved-teardowns": Dimension(add_approved_teardowns),
    "observers": Dimension(add_observers),
    "other-environments": Dimension(add_other_environments),
    "refused-definitions": Dimension(add_refused_definitions, share=SELDOM),
    "several-sources": Dimension(add_several_sources),
    "annotations": Dimension(add_annotations),
    "vanishing-commits": Dimension(add_vanishing_commits, share=SELDOM),
    "changes-after-plans": Dimension(add_changes_after_plans, share=SELDOM),
    "late-breakages": Dimension(add_late_breakages, share=RARE),
}
