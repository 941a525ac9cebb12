"""`rehearse`: deploy a platform on a simulated cluster in virtual time.

A rehearsal shows the order, the durations and the effect of failures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.refresher import Refresher
from windlass.argo.cd.root_application import RootApplication
from windlass.core.platform.events import NodeStarted
from windlass.core.platform.model import scopes
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.core.platform.outcomes import Result
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.errors import ExitCode, InvalidInput
from windlass.kube.leases import LeaseClaim, ProcessLease
from windlass.operations.cluster_identity import LEASE_NAME
from windlass.operations.deploy import deploy
from windlass.operations.observation import DEFAULT_ARGOCD_NAMESPACE, ObservedCluster
from windlass.operations.planner import RunRequest
from windlass.operations.run.context import RunContext, RunControl
from windlass.simulation import random_faults, simulated_cluster, virtual_time
from windlass.simulation.stand_ins import ROOT_FOLDER, WorkloadProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.events import Event
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.graphs import Graph
    from windlass.core.platform.reporting.reports import Component, Report
    from windlass.simulation.simulated_cluster import SimulatedCluster

ENVIRONMENT = "rehearsal"
UNLIMITED = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class RehearsalRequest:
    """What to rehearse, and which failures and random variations to simulate."""

    platform: Platform
    scope: Scope
    failing_nodes: tuple[str, ...] = ()
    seed: int = 0
    spread: float = 0.0
    """Fraction by which each duration may randomly be shorter or longer than expected."""
    has_faults: bool = False
    timeout: timedelta = timedelta(hours=2)

    @property
    def graph(self) -> Graph:
        return self.platform.graph.subgraph(scopes.selected_nodes(self.platform, self.scope))


@dataclass(frozen=True, slots=True)
class Rehearsal:
    request: RehearsalRequest
    report: Report
    """Report of the simulated deploy."""
    fault_counts: Mapping[str, int] = field(default_factory=dict)
    """How often each injected fault occurred."""

    @property
    def exit_code(self) -> ExitCode:
        """Success if, within the timeout, only nodes meant to fail did and only their dependents were skipped."""
        is_as_expected = all(self._is_expected(component) for component in self.report.components)
        return ExitCode.SUCCESS if is_as_expected and not self._is_out_of_time else ExitCode.FAILURE

    @property
    def _is_out_of_time(self) -> bool:
        return self.report.summary.verdict is Verdict.TIMEOUT

    def _is_expected(self, component: Component) -> bool:
        if component.result is Result.FAILED:
            return component.name in self.request.failing_nodes
        is_skipped_dependent = component.result is Result.SKIPPED and set(component.causes) <= set(
            self.request.failing_nodes
        )
        return is_skipped_dependent or component.result in {Result.SUCCEEDED, Result.UNCHANGED}


def blast_radius(graph: Graph) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The nodes that would be skipped if a node failed, by node; the node with the most comes first."""
    dependents = graph.reversed()
    skipped = {name: tuple(sorted(dependents.closure([name]) - {name})) for name in graph.names}
    return tuple(sorted(skipped.items(), key=lambda row: (-len(row[1]), row[0])))


def rehearse(request: RehearsalRequest) -> Rehearsal:
    _check_names(request)
    return virtual_time.run(_run_rehearsal(request))


def _check_names(request: RehearsalRequest) -> None:
    names = request.graph.names
    for name in request.failing_nodes:
        if name not in request.platform.applications:
            hint = did_you_mean(name, request.platform.applications)
            raise InvalidInput(f"there is no application {name}", where="--fail", hint=hint)
        if name not in names:
            raise InvalidInput(f"{name} is outside {request.scope}", where="--fail", hint="widen --scope")


async def _run_rehearsal(request: RehearsalRequest) -> Rehearsal:
    platform, graph = request.platform, request.graph
    async with simulated_cluster.start_cluster(platform, _workload_profiles(request), request.seed) as cluster:
        if outside := platform.graph.external_dependencies(graph.names):
            await _deploy(cluster, _sub_platform(platform, outside), Scope(), UNLIMITED)
        if not request.has_faults:
            return Rehearsal(request, await _deploy(cluster, platform, request.scope, request.timeout))
        seconds = graph.critical_path(platform.expected_durations).duration.total_seconds()
        faults = random_faults.draw_faults(
            cluster.sandbox.clock, simulated_cluster.CLIENT_USER.name, graph.names, seconds
        )
        cluster.inject_faults(faults)
        report = await _deploy(cluster, platform, request.scope, request.timeout)
        return Rehearsal(request, report, faults.hits)


def _workload_profiles(request: RehearsalRequest) -> dict[str, WorkloadProfile]:
    randomness = virtual_time.virtual_sandbox_clock(request.seed).rng
    profiles = {}
    for name, expected in sorted(request.platform.expected_durations.items()):
        factor = 1 + request.spread * randomness.uniform(-1, 1)
        profiles[name] = WorkloadProfile(expected.total_seconds() * factor, is_failing=name in request.failing_nodes)
    return profiles


def _sub_platform(platform: Platform, names: Iterable[str]) -> Platform:
    """The part of a platform that must exist before a run whose scope is not the whole platform."""
    selected = frozenset(names)
    applications = {name: platform.applications[name] for name in sorted(selected)}
    return replace(platform, applications=applications, graph=platform.graph.subgraph(selected), managed_nodes=selected)


async def _deploy(cluster: SimulatedCluster, platform: Platform, scope: Scope, timeout: timedelta) -> Report:
    def emit(event: Event) -> None:
        if isinstance(event, NodeStarted):
            cluster.start_node(event.name)

    client, run_id = cluster.client, f"rehearsal-{scope}"
    lease = ProcessLease(client, LeaseClaim(LEASE_NAME, DEFAULT_ARGOCD_NAMESPACE, run_id, client.clock.now))
    observed = ObservedCluster(client, client.clock.now)
    context = RunContext(observed, lease, Refresher(client), run_id, RunControl(emit), timeout)
    root = RootApplication(simulated_cluster.REPOSITORY_URL, "main", ROOT_FOLDER, {})
    return await deploy(context, RunRequest(Action.DEPLOY, ENVIRONMENT, platform, scope, root=root))
