"""What a seed may draw beside its basis: each dimension adds to a scenario from a chance of its own. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulation.scenarios import US, Act, Event
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    import random  # noqa: TID251 - seeded, handed on as a value
    from collections.abc import Callable

    from tests.simulation.scenarios import Scenario

    Chance = random.Random

SHARE = 0.25  # the share of seeds that a dimension adds to
REASONS = {401: "Unauthorized", 403: "Forbidden", 500: "InternalError", 503: "ServiceUnavailable"}
DENIED_KINDS = (
    *("applications.argoproj.io", "applications.argoproj.io", "leases.coordination.k8s.io", "*", "*reviews*"),
    *("pods", "deployments.apps", "configmaps", "persistentvolume*", "namespaces", "customresourcedefinitions.*"),
)
DENIED_VERBS = ("*", "get", "list", "watch", "create", "patch", "update", "delete")
THIRD_PARTY_EVENTS = ("rollback", "selective-sync", "terminate", "delete", "orphan", "recreate", "automate")
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


def _moment(chance: Chance, scenario: Scenario) -> float:
    """A time at which a run probably still is in progress."""
    return chance.uniform(0.5, 5.0 + chance.choice((3.0, 6.0, 20.0)) * len(scenario.commits[0]))


def _outages(chance: Chance, scenario: Scenario) -> Scenario:
    """Pods that become unready at any time, and ready again."""
    names = [name for name, part in scenario.commits[0].items() if part.kind]
    slow = {name: chance.uniform(40.0, 110.0) for name in names if chance.random() < 0.3}
    commits = tuple(
        {name: replace(part, ready_after=slow.get(name, part.ready_after)) for name, part in commit.items()}
        for commit in scenario.commits
    )
    scenario = replace(scenario, commits=commits)  # so that dependents start long after their first dependency

    def draw() -> list[Event]:
        seconds = (20.0, 100.0, 300.0, 900.0)
        return [
            Event(_moment(chance, scenario), "outage", chance.choice(names), chance.choice(seconds))
            for _ in range(chance.choice((1, 1, 2, 4)))
        ]

    return _with_events(scenario, draw) if names else scenario


def _third_parties(chance: Chance, scenario: Scenario) -> Scenario:
    """Other clients that sync, delete and edit Applications, the root included."""

    def draw() -> list[Event]:
        kinds = (*THIRD_PARTY_EVENTS, *(ROOT_EVENTS if scenario.has_root else ()))
        return [_third_party_event(chance, scenario, kinds) for _ in range(chance.choice((1, 1, 2, 4)))]

    return _with_events(_with_pushes(scenario), draw)


def _deleted_roots(chance: Chance, scenario: Scenario) -> Scenario:
    """Another client that deletes the root, without its children."""
    if not scenario.has_root:
        return scenario
    return _with_events(_with_pushes(scenario), lambda: [Event(_moment(chance, scenario), "root-delete")])


def _third_party_event(chance: Chance, scenario: Scenario, kinds: tuple[str, ...]) -> Event:
    """At any time, or soon after the run has requested an operation of its target."""
    kind, target, moment = chance.choice(kinds), chance.choice(list(scenario.commits[0])), _moment(chance, scenario)
    soon = chance.choice((0.0, 0.5, 1.0, 3.0, 10.0))
    return Event(soon, kind, target, after_operation=True) if chance.random() < 0.5 else Event(moment, kind, target)


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
        at = chance.choice((0.0, _moment(chance, scenario)))
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


def _validation(chance: Chance, scenario: Scenario) -> Scenario:
    return replace(scenario, validates=True)


DIMENSIONS: dict[str, Dimension] = {
    "outages": Dimension(_outages, is_drawn=False),
    "third-parties": Dimension(_third_parties, is_drawn=False),
    "deleted-roots": Dimension(_deleted_roots, is_drawn=False),
    "broken-commits": Dimension(_broken_commits, is_drawn=False),
    "dead-services": Dimension(_dead_services, is_drawn=False),
    "denied": Dimension(_denied),
    "validation": Dimension(_validation),
}
