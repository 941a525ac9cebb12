"""Dimensions of the processes of runs: what happens to a run itself and to its lock. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.simulation.scenarios import US, Act, Event
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    import random  # noqa: TID251 - seeded, handed on as a value

    from tests.simulation.scenarios import Scenario

    Chance = random.Random

RENEWAL = 4.0  # seconds between two renewals of the Lease


def undisturbed(scenario: Scenario) -> Scenario:
    """Without faults: a run sees at once what happens to an Application, and its requests succeed."""
    acts = tuple(replace(act, faults=(), disturbances=()) for act in scenario.acts)
    teardown = scenario.teardown
    if teardown:
        quiet = tuple(replace(act, faults=(), disturbances=()) for act in teardown.acts)
        teardown = replace(teardown, acts=quiet)
    return replace(scenario, acts=acts, teardown=teardown)


def moment(chance: Chance, scenario: Scenario) -> float:
    """A time at which a run probably still is in progress."""
    return chance.uniform(0.5, 5.0 + chance.choice((3.0, 6.0, 20.0)) * len(scenario.commits[0]))


def with_slow_parts(chance: Chance, scenario: Scenario) -> Scenario:
    """Some take long to be ready, so that dependents start long after their first dependency."""
    names = [name for name, part in scenario.commits[0].items() if part.kind]
    slow = {name: chance.uniform(40.0, 110.0) for name in names if chance.random() < 0.3}
    commits = tuple(
        {name: replace(part, ready_after=slow.get(name, part.ready_after)) for name, part in commit.items()}
        for commit in scenario.commits
    )
    return replace(scenario, commits=commits)


def _slow(chance: Chance, scenario: Scenario) -> Scenario:
    """Operations that take their time, so that something happens during one."""
    return replace(undisturbed(scenario), operation_seconds=chance.choice((0.8, 3.0, 12.0, 30.0)))


def add_interruptions(chance: Chance, scenario: Scenario) -> Scenario:
    """Runs that are stopped, or run out of time, while nothing else goes wrong."""

    def stop(act: Act) -> Act:
        at = moment(chance, scenario)
        if chance.random() < 0.5:
            return Act(stop_at=at, scope=act.scope)
        return Act(limit=timedelta(seconds=at), scope=act.scope)

    scenario = _slow(chance, scenario)
    return replace(scenario, acts=tuple(stop(act) for act in scenario.acts))


def add_pauses(chance: Chance, scenario: Scenario) -> Scenario:
    """Processes that are paused, mostly for longer than their lease, while another run starts."""

    def pause(act: Act) -> Act:
        at, seconds = moment(chance, scenario), chance.choice((5.0, 14.0, 20.0, 60.0, 300.0))
        renewal = Fault(verb="update", kind="leases.*", user=US, times=None, latency=chance.choice((0.0, 0.5, 2.0)))
        rival_at = at + chance.choice((0.5, 5.0))
        return Act(pause=(at, seconds), rival_at=rival_at, scope=act.scope, faults=(renewal,))

    scenario = _slow(chance, scenario)
    return replace(scenario, acts=tuple(pause(act) for act in scenario.acts))


def add_deleted_leases(chance: Chance, scenario: Scenario) -> Scenario:
    """Another client that deletes the Lease of a run; another run may start then."""

    def delete(act: Act) -> Act:
        at = moment(chance, scenario)
        rival_at = chance.choice((0.0, at + 1.0, at + 2 * RENEWAL))
        return Act(events=(Event(at, "lease-delete"),), rival_at=rival_at, scope=act.scope)

    scenario = _slow(chance, scenario)
    return replace(scenario, acts=tuple(delete(act) for act in scenario.acts))


def add_lease_outages(chance: Chance, scenario: Scenario) -> Scenario:
    """Runs that cannot renew their Lease any more; the last answer that arrives is late."""

    def lose(act: Act) -> Act:
        last, delay = chance.randint(1, 8), chance.choice((0.0, 6.0, 9.0))
        return Act(lease_outage=(last, delay), rival_at=chance.choice((0.1, 1.0, delay + 1.0)), scope=act.scope)

    scenario = _slow(chance, scenario)
    return replace(scenario, acts=tuple(lose(act) for act in scenario.acts))
