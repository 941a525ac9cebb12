"""`rehearse`: deploy a platform on a simulated cluster in virtual time.

A rehearsal shows the order, the durations and the effect of failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.root_application import Root
from windlass.core.platform.events import NodeStarted
from windlass.core.platform.model import scopes
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.core.platform.outcomes import Result
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.errors import ExitCode, InvalidInput
from windlass.operations.deploy import Wish, deploy
from windlass.operations.observation import ARGOCD
from windlass.operations.run.context import Access, Control
from windlass.simulation import random_faults, simulated_cluster, virtual_time
from windlass.simulation.stand_ins import ROOT, Conduct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.events import Event
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.graphs import Graph
    from windlass.core.platform.reporting.reports import Component, Report
    from windlass.simulation.simulated_cluster import Cluster

ENVIRONMENT = "rehearsal"
UNLIMITED = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Premise:
    """What to rehearse, and which failures and random variations to simulate."""

    platform: Platform
    scope: Scope
    fails: tuple[str, ...] = ()
    seed: int = 0
    spread: float = 0.0
    """Fraction by which each duration may randomly be shorter or longer than expected."""
    has_faults: bool = False
    limit: timedelta = timedelta(hours=2)

    @property
    def graph(self) -> Graph:
        return self.platform.graph.restricted_to(scopes.selected(self.platform, self.scope))


@dataclass(frozen=True, slots=True)
class Rehearsal:
    premise: Premise
    report: Report
    """Report of the simulated deploy."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """How often each injected fault occurred."""

    @property
    def exit_code(self) -> ExitCode:
        """Success if, within the timeout, only nodes meant to fail did and only their dependents were skipped."""
        is_as_asked = all(self._is_expected(component) for component in self.report.components)
        return ExitCode.SUCCESS if is_as_asked and not self._is_out_of_time else ExitCode.FAILURE

    @property
    def _is_out_of_time(self) -> bool:
        return self.report.summary.verdict is Verdict.TIMEOUT

    def _is_expected(self, component: Component) -> bool:
        if component.result is Result.FAILED:
            return component.name in self.premise.fails
        is_held_back = component.result is Result.SKIPPED and set(component.causes) <= set(self.premise.fails)
        return is_held_back or component.result in {Result.SUCCEEDED, Result.UNCHANGED}


def blast_radius(graph: Graph) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The nodes that would be skipped if a node failed, by node; the node with the most comes first."""
    waiting = graph.reversed()
    found = {name: tuple(sorted(waiting.closure([name]) - {name})) for name in graph.names}
    return tuple(sorted(found.items(), key=lambda row: (-len(row[1]), row[0])))


def rehearse(premise: Premise) -> Rehearsal:
    _check_names(premise)
    return virtual_time.run(_rehearsed(premise))


def _check_names(premise: Premise) -> None:
    names = premise.graph.names
    for name in premise.fails:
        if name not in premise.platform.applications:
            hint = did_you_mean(name, premise.platform.applications)
            raise InvalidInput(f"there is no application {name}", where="--fail", hint=hint)
        if name not in names:
            raise InvalidInput(f"{name} is outside {premise.scope}", where="--fail", hint="widen --scope")


async def _rehearsed(premise: Premise) -> Rehearsal:
    platform, graph = premise.platform, premise.graph
    async with simulated_cluster.raised(platform, _conducts(premise), premise.seed) as cluster:
        if outside := platform.graph.needed_from_outside(graph.names):
            await _deployed(cluster, _part(platform, outside), Scope(), UNLIMITED)
        if not premise.has_faults:
            return Rehearsal(premise, await _deployed(cluster, platform, premise.scope, premise.limit))
        seconds = graph.critical_path(platform.expected).duration.total_seconds()
        disturbance = random_faults.drawn(cluster.sandbox.sources, simulated_cluster.US.name, graph.names, seconds)
        cluster.disturb(disturbance)
        report = await _deployed(cluster, platform, premise.scope, premise.limit)
        return Rehearsal(premise, report, disturbance.hits)


def _conducts(premise: Premise) -> dict[str, Conduct]:
    chance = virtual_time.virtual_sources(premise.seed).chance
    found = {}
    for name, expected in sorted(premise.platform.expected.items()):
        factor = 1 + premise.spread * chance.uniform(-1, 1)
        found[name] = Conduct(expected.total_seconds() * factor, is_failing=name in premise.fails)
    return found


def _part(platform: Platform, names: Iterable[str]) -> Platform:
    """The part of a platform that must exist before a run whose scope is not the whole platform."""
    inside = frozenset(names)
    applications = {name: platform.applications[name] for name in sorted(inside)}
    return replace(platform, applications=applications, graph=platform.graph.restricted_to(inside), subset=inside)


async def _deployed(cluster: Cluster, platform: Platform, scope: Scope, limit: timedelta) -> Report:
    def tell(event: Event) -> None:
        if isinstance(event, NodeStarted):
            cluster.begin(event.name)

    client = cluster.client
    access = Access(client, client.clock.now, ARGOCD, f"rehearsal-{scope}", Control(tell), limit)
    root = Root(simulated_cluster.REPOSITORY, "main", ROOT, {})
    return await deploy(access, Wish(ENVIRONMENT, platform, scope, root=root))
