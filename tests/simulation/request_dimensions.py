"""Dimensions of what is requested and defined: scopes, plans, other environments, critical nodes, sources. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.process_dimensions import moment, undisturbed, with_slow_parts
from tests.simulation.scenarios import WHOLE, Act, Event, Part, TeardownScenario
from windlass.core.platform.model.applications import Stack
from windlass.core.platform.model.scopes import Scope, ScopeKind
from windlass.core.platform.reporting.reports import Action

if TYPE_CHECKING:
    import random  # noqa: TID251 - seeded, handed on as a value
    from collections.abc import Callable

    from tests.simulation.scenarios import Scenario

    Chance = random.Random

REFUSED_DEFINITIONS = ("invalid", "unpermitted")
"""The API server refuses the Application; its project does not exist."""
ACTIONS = (Action.DEPLOY, Action.TEARDOWN)
OBSERVERS = ("validate", "wait", "plan")


def _with_acts(scenario: Scenario, change: Callable[[Act], Act]) -> Scenario:
    """The scenario with each of its runs changed, teardowns included."""
    teardown = scenario.teardown
    if teardown:
        teardown = replace(teardown, acts=tuple(change(act) for act in teardown.acts))
    return replace(scenario, acts=tuple(change(act) for act in scenario.acts), teardown=teardown)


def add_critical_nodes(chance: Chance, scenario: Scenario) -> Scenario:
    """Critical nodes; a first deploy in which the pods of one become unready and Argo CD goes on showing Healthy."""
    parts, graph = scenario.commits[0], scenario.platform.graph
    critical = [name for name in parts if chance.random() < 0.6]
    nodes = {name: replace(node, critical=name in critical) for name, node in scenario.platform.applications.items()}
    scenario = replace(scenario, platform=replace(scenario.platform, applications=nodes))
    workloads = [name for name in critical if parts[name].kind]
    needed = [name for name in workloads if any(name in each for each in graph.dependencies.values())]
    if not workloads:
        return scenario
    scenario = with_slow_parts(chance, undisturbed(scenario) if chance.random() < 0.8 else scenario)
    at, seconds = chance.choice((5.0, 10.0, 20.0, 40.0)), chance.choice((60.0, 200.0, 900.0))
    target = chance.choice(needed if needed and chance.random() < 0.7 else workloads)
    first = Act(events=(Event(at, "unseen-outage", target, seconds, after_operation=True),))
    return replace(scenario, acts=(first, *scenario.acts))


def add_stacks(chance: Chance, scenario: Scenario) -> Scenario:
    """Several stacks, one of which may be empty, and runs that concern one of them."""
    stacks = [f"stack-{number}" for number in range(chance.randint(2, 4))]
    nodes = {name: replace(node, stack=chance.choice(stacks)) for name, node in scenario.platform.applications.items()}
    members = {stack: tuple(sorted(name for name, node in nodes.items() if node.stack == stack)) for stack in stacks}
    made = tuple(Stack(stack, names) for stack, names in members.items())

    def narrow(act: Act) -> Act:
        is_narrowed = act.scope == WHOLE and chance.random() < 0.5
        return replace(act, scope=Scope(ScopeKind.STACK, chance.choice(stacks))) if is_narrowed else act

    changed = replace(scenario, platform=replace(scenario.platform, applications=nodes, stacks=made))
    return _with_acts(changed, narrow)


def add_approved_teardowns(chance: Chance, scenario: Scenario) -> Scenario:
    """Teardowns that execute an approved plan."""
    teardown = scenario.teardown or TeardownScenario((Act(Action.TEARDOWN),))
    acts = tuple(replace(act, is_approved=chance.random() < 0.7) for act in teardown.acts)
    return replace(scenario, teardown=replace(teardown, acts=acts))


def add_observers(chance: Chance, scenario: Scenario) -> Scenario:
    """`validate`, `wait` and `plan` beside and between runs: they change nothing."""
    names = list(scenario.commits[0])

    def observe(act: Act) -> Act:
        events = [
            Event(chance.choice((0.0, moment(chance, scenario))), chance.choice(OBSERVERS), chance.choice(names), 60.0)
            for _ in range(chance.choice((1, 2, 4)))
        ]
        return replace(act, events=(*act.events, *events))

    return _with_acts(scenario, observe)


def add_other_environments(chance: Chance, scenario: Scenario) -> Scenario:
    """Runs for another environment or another platform than the one that the cluster belongs to."""

    def request(action: Action) -> Act:
        return chance.choice((Act(action, environment="production"), Act(action, platform_name="another")))

    acts = tuple(each for act in scenario.acts for each in (act, request(chance.choice(ACTIONS))))
    teardown = scenario.teardown
    if teardown:
        teardown = replace(teardown, acts=(request(Action.TEARDOWN), *teardown.acts))
    return replace(scenario, acts=acts, teardown=teardown)


def add_refused_definitions(chance: Chance, scenario: Scenario) -> Scenario:
    """Commits in which an Application is refused by the API server or by its project; never the last one."""
    if not scenario.has_root:
        return scenario

    def refuse(part: Part) -> Part:
        return replace(part, trouble=chance.choice(REFUSED_DEFINITIONS)) if chance.random() < 0.2 else part

    commits = tuple({name: refuse(part) for name, part in commit.items()} for commit in scenario.commits[:-1])
    return replace(scenario, commits=(*commits, scenario.commits[-1]))


def add_several_sources(chance: Chance, scenario: Scenario) -> Scenario:
    """Applications with two sources."""
    if scenario.parent == "set":
        return scenario
    return replace(scenario, two_sources=frozenset(name for name in scenario.commits[0] if chance.random() < 0.4))
