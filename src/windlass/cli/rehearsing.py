"""`windlass rehearse`: the platform file is deployed for real, on a cluster that exists in virtual time only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.argo.roots import Root
from windlass.cli.options import given
from windlass.core.platform import scopes
from windlass.core.platform.events import NodeStarted
from windlass.core.platform.outcomes import Result
from windlass.core.platform.scopes import Scope
from windlass.core.platform.suggestions import did_you_mean
from windlass.core.platform.verdicts import Verdict
from windlass.errors import ExitCode, InvalidInput
from windlass.operations.deploy import Wish, deploy
from windlass.operations.observing import ARGOCD
from windlass.operations.runs import Access, Control
from windlass.settings.loading import Inputs, load
from windlass.simulation import clusters, disturbances, virtual_time
from windlass.simulation.platforms import ROOT, Conduct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.applications import Platform
    from windlass.core.platform.events import Event
    from windlass.core.platform.graphs import Graph
    from windlass.core.platform.reports import Component, Report
    from windlass.simulation.clusters import Cluster

ENVIRONMENT = "rehearsal"
UNLIMITED = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Premise:
    """What is rehearsed, and what is taken to happen."""

    platform: Platform
    scope: Scope
    fails: tuple[str, ...] = ()
    seed: int = 0
    spread: float = 0.0
    """The share by which each may take shorter or longer than expected, by chance."""
    has_faults: bool = False
    limit: timedelta = timedelta(hours=2)

    @property
    def graph(self) -> Graph:
        return self.platform.graph.restricted_to(scopes.selected(self.platform, self.scope))


@dataclass(frozen=True, slots=True)
class Rehearsal:
    premise: Premise
    report: Report
    """Of the deploy, as it would be."""
    hits: Mapping[str, int] = field(default_factory=dict)
    """What went wrong on purpose, and how often."""

    @property
    def exit_code(self) -> ExitCode:
        """Whether it went as asked: nothing is amiss but what was to fail, and what waits for that."""
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
    """What would be held back if one failed, by name; those that hold back most come first."""
    waiting = graph.reversed()
    found = {name: tuple(sorted(waiting.closure([name]) - {name})) for name in graph.names}
    return tuple(sorted(found.items(), key=lambda row: (-len(row[1]), row[0])))


def rehearsed(options: Mapping[str, Any], environ: Mapping[str, str]) -> Rehearsal:
    own = ("fail", "seed", "spread", "faults")
    settings = load(Inputs(given({name: options[name] for name in options if name not in own}), environ))
    limit = settings.values["timeout"].value
    assert isinstance(limit, timedelta)
    premise = Premise(
        platform=settings.assembled.platform,
        scope=settings.scope,
        fails=tuple(sorted(set(options["fail"]))),
        seed=options["seed"],
        spread=options["spread"] / 100,
        has_faults=options["faults"],
        limit=limit,
    )
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
    async with clusters.raised(platform, _conducts(premise), premise.seed) as cluster:
        if outside := platform.graph.needed_from_outside(graph.names):
            await _deployed(cluster, _part(platform, outside), Scope(), UNLIMITED)
        if not premise.has_faults:
            return Rehearsal(premise, await _deployed(cluster, platform, premise.scope, premise.limit))
        seconds = graph.critical_path(platform.expected).duration.total_seconds()
        disturbance = disturbances.drawn(cluster.sandbox.sources, clusters.US.name, graph.names, seconds)
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
    """What is there before a run that is not about the whole platform."""
    inside = frozenset(names)
    applications = {name: platform.applications[name] for name in sorted(inside)}
    return replace(platform, applications=applications, graph=platform.graph.restricted_to(inside), subset=inside)


async def _deployed(cluster: Cluster, platform: Platform, scope: Scope, limit: timedelta) -> Report:
    def tell(event: Event) -> None:
        if isinstance(event, NodeStarted):
            cluster.begin(event.name)

    client = cluster.client
    access = Access(client, client.clock.now, ARGOCD, f"rehearsal-{scope}", Control(tell), limit)
    root = Root(clusters.REPOSITORY, "main", ROOT, {})
    return await deploy(access, Wish(ENVIRONMENT, platform, scope, root=root))
