"""`plan`, and every dry run: what would be done, in which order and why. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.core.platform.model.annotations import merge_annotations
from windlass.core.platform.planning import lint_warnings, plans
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, RunRecord
from windlass.core.platform.teardown.volumes import VolumePolicy, volume_notices
from windlass.kube.api_errors import NotFound
from windlass.operations.observation import build_observation, check_argocd_namespace, list_applications
from windlass.operations.teardown.cluster_objects import ClusterInventory
from windlass.operations.teardown.inventory import build_inventory
from windlass.operations.teardown.parents import parent_removal_notice, plan_parent_removal, with_parents_last
from windlass.operations.teardown.volumes import check_policy, find_affected_volumes

if TYPE_CHECKING:
    from windlass.argo.cd.root_application import RootApplication
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.observation import ObservedCluster
    from windlass.operations.teardown.inventory import TeardownInventory

_PLANNERS = {Action.DEPLOY: plans.plan_deploy, Action.TEARDOWN: plans.plan_teardown}


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What `plan` was asked to compute."""

    action: Action
    environment: str
    platform: Platform
    scope: Scope
    explicit_dependencies: frozenset[str] = frozenset()
    """Nodes whose dependencies the platform file lists; annotations are ignored for these."""
    root: RootApplication | None = None
    """Root Application to create if it is needed, or to update if Windlass manages it."""
    volume_policy: VolumePolicy = VolumePolicy.RETAIN


@dataclass(frozen=True, slots=True)
class PlanResult:
    plan: Plan
    report: Report
    root: str = ""
    """Repository, path and revision of the root Application if it would be written first; empty otherwise."""


async def plan(cluster: ObservedCluster, request: PlanRequest) -> PlanResult:
    """Plan by what Argo CD knows now; no refresh is requested, because that would be a write."""
    started, names = cluster.now(), request.platform.graph.names
    applications = await list_applications(cluster, request.platform, names)
    if request.action is Action.DEPLOY:
        await check_argocd_namespace(cluster, applications)
    observation = await build_observation(cluster, request.platform, names, started, applications)
    snapshot, annotated = observation.snapshot, observation.annotated_dependencies
    platform = merge_annotations(request.platform, annotated, request.explicit_dependencies)
    if request.action is Action.TEARDOWN:
        platform = with_parents_last(applications, platform, cluster.argocd_namespace)
    computed_plan = _PLANNERS[request.action](platform, snapshot, request.scope)
    root_change = await _root_change(cluster, request, is_needed=plans.has_undefined_node(computed_plan, snapshot))
    notices = [root_change] if root_change else []
    if root_change and request.root and not request.root.is_pinned:
        notices.append(
            f"which commit {request.root.revision} leads to is known once {root_application.NAME} is there: "
            "to approve an exact one, name a commit as gitRevision"
        )
    if request.action is Action.DEPLOY:
        notices += [message for _, message in lint_warnings.automated_sync_warnings(platform, snapshot)]
    else:
        parent_removal_plan = plan_parent_removal(applications, platform, request.scope, cluster.argocd_namespace)
        computed_plan = replace(computed_plan, unmet=(*computed_plan.unmet, *parent_removal_plan.refused))
        notices += [parent_removal_notice(parent) for parent in parent_removal_plan.delete_first]
        namespace = cluster.argocd_namespace
        inventory = build_inventory(applications, platform, request.scope, parent_removal_plan, namespace)
        notices += await _volume_notices(cluster, request.volume_policy, inventory)
    counts = cluster.reader.counts
    record = RunRecord(
        action=request.action,
        environment=request.environment,
        scope=str(request.scope),
        started=started,
        finished=cluster.now(),
        calls=ApiCalls(reads=counts.total - counts.writes, writes=counts.writes),
        is_dry_run=True,
        argocd_namespace=cluster.argocd_namespace,
    )
    report = reports.plan_report(record, platform, computed_plan, snapshot)
    return PlanResult(computed_plan, replace(report, notices=tuple(notices)), str(request.root) if root_change else "")


async def _volume_notices(cluster: ObservedCluster, policy: VolumePolicy, inventory: TeardownInventory) -> list[str]:
    """What would happen to each volume; raises if the volume policy cannot be applied in this cluster."""
    cluster_inventory = ClusterInventory(cluster.reader, await cluster.served.discovery())
    check_policy(policy, cluster_inventory.discovery)
    full_inventory = inventory.with_objects((await cluster_inventory.list_all()).objects)
    return volume_notices(policy, (await find_affected_volumes(cluster.reader, full_inventory)).volumes)


async def _root_change(cluster: ObservedCluster, request: PlanRequest, *, is_needed: bool) -> str:
    if request.root is None or request.action is not Action.DEPLOY:
        return ""
    try:
        live = await cluster.reader.get(
            APPLICATIONS.named(root_application.NAME, cluster.argocd_namespace), Application
        )
    except NotFound:
        live = None
    return root_application.root_change(request.root, cluster.argocd_namespace, live, is_needed=is_needed)[1]
