"""Dimensions of what other clients do to git, to annotations, and between a plan and its execution. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.process_dimensions import moment, undisturbed
from tests.simulation.scenarios import ARGOCD, Act, Event, TeardownScenario
from windlass.core.platform.reporting.reports import Action

if TYPE_CHECKING:
    import random  # noqa: TID251 - seeded, handed on as a value

    from tests.simulation.scenarios import Scenario

    Chance = random.Random

UNKNOWN_NAMES = ("nothing-here", "other/nothing-here", "n00", "-", "x" * 300)


def add_annotations(chance: Chance, scenario: Scenario) -> Scenario:
    """Applications that declare dependencies: further ones, unknown names, and some that would close a cycle.

    Dependencies lead to an application with a lower number, so that no two of them close a cycle.
    """
    names, graph = list(scenario.commits[0]), scenario.platform.graph
    dependents = graph.reversed()
    found: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names):
        needs = chance.sample(names[:place], min(place, chance.choice((0, 1, 1, 2, 3))))
        closing = sorted((dependents.closure([name]) - {name}) & set(names))
        ignored = [chance.choice(UNKNOWN_NAMES)] if chance.random() < 0.3 else []
        ignored += [chance.choice(closing)] if closing and chance.random() < 0.3 else []
        if chance.random() < 0.7 and (needs or ignored):
            references = [f"{ARGOCD}/{each}" if chance.random() < 0.1 else each for each in (*needs, *ignored)]
            found[name] = tuple(chance.sample(references, len(references)))
    first = chance.choice((0, 0, len(scenario.commits) - 1))
    acts = scenario.acts if len(scenario.acts) > 1 else (Act(), *scenario.acts)
    acts = (acts[0], *(replace(act, pushes_first=chance.random() < 0.7) for act in acts[1:]))
    return replace(scenario, annotations=found, annotated_since=first, acts=acts)


def add_vanishing_commits(chance: Chance, scenario: Scenario) -> Scenario:
    """Force pushes after which older commits, or even the newest one, cannot be resolved any more."""

    def vanish(act: Act) -> Act:
        if chance.random() < 0.3:
            return act
        kind = chance.choice(("force-push", "force-push", "lost-commit"))
        at = chance.choice((0.0, 0.5, 2.0, moment(chance, scenario)))
        event = Event(at, kind)
        if chance.random() < 0.3:
            return replace(act, is_approved=True, after_plan=(replace(event, at=0.0),))
        return replace(act, events=(*act.events, event))

    scenario = undisturbed(scenario) if chance.random() < 0.5 else scenario
    acts = scenario.acts if len(scenario.acts) > 1 else (*scenario.acts, Act(pushes_first=True))
    return replace(scenario, acts=(acts[0], *map(vanish, acts[1:])))


def add_changes_after_plans(chance: Chance, scenario: Scenario) -> Scenario:
    """Another client that deletes, creates or gives a volume to an Application between `plan` and `teardown --plan`."""
    if scenario.parent:
        return scenario  # which creates again what another client deletes
    names = list(scenario.commits[-1])
    teardown = scenario.teardown or TeardownScenario((Act(Action.TEARDOWN),))
    kind, target = chance.choice(("delete", "create", "bind")), chance.choice(names)
    if target in {*teardown.volumes, *(name for _, name in teardown.foreign)}:
        kind = "bind"  # whoever deletes it destroys what a run would have to keep
    seconds = chance.choice((0.0, 1.0, 40.0))
    before = (Event(0.0, "delete", target, 60.0),) if kind == "create" else ()
    after = (Event(0.0, kind, target, seconds), *(Event(seconds, "pass") for _ in [0] if seconds))
    first = Act(Action.TEARDOWN, is_approved=True, before_plan=before, after_plan=after)
    return replace(scenario, teardown=replace(teardown, acts=(first, *teardown.acts)))


def add_late_breakages(chance: Chance, scenario: Scenario) -> Scenario:
    """A commit that breaks the root, or leaves out an application, in the last steps of a run or right before one.

    Nothing else happens, and everything that could hide it is left out: every application is new in the second commit.
    """
    if not scenario.has_root:
        return scenario
    whole, names = scenario.commits[-1], list(scenario.commits[-1])
    newer = {name: replace(part, version=part.version + 1) for name, part in whole.items()}
    last = {name: replace(part, ready_after=chance.choice((5.0, 60.0, 110.0))) for name, part in newer.items()}
    is_broken = chance.random() < 0.6
    broken = frozenset({2}) if is_broken else frozenset[int]()
    undefined = {} if is_broken else {2: frozenset(chance.sample(names, 1))}
    event = Event(chance.choice((0.5, 3.0, 20.0)), "seen-push", chance.choice(names), after_operation=True)
    runs = (Act(pushes_first=True, events=(event,)), Act(pushes_first=chance.random() < 0.5))
    quiet = replace(undisturbed(scenario), lies={}, overlooked={}, acts=(Act(), *runs), automated=frozenset())
    return replace(quiet, commits=(whole, last, last, last), undefined=undefined, broken_roots=broken)
