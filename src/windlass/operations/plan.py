"""`plan` and every dry run: what would be done, in which order and why. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.core.platform.gate_values import Reason
from windlass.core.platform.model import scopes
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, RunRecord
from windlass.core.platform.teardown.volumes import VolumePolicy, volume_notices
from windlass.kube.api_errors import NotFound
from windlass.operations.cluster_identity import identity_notices
from windlass.operations.observation import check_argocd_namespace, list_applications
from windlass.operations.planner import (
    NO_OBJECTS,
    check_approved_plan,
    parent_removal_notices,
    plan_run,
    planned_root,
)
from windlass.operations.teardown.affected_volumes import check_policy, find_affected_volumes
from windlass.operations.teardown.cluster_objects import open_cluster_objects
from windlass.operations.teardown.foreign_objects import ForeignObjectFinder
from windlass.operations.teardown.inventory import build_inventory

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.observation import ApplicationsByKey, ObservedCluster
    from windlass.operations.planner import PlannedRun, RunRequest
    from windlass.operations.teardown.cluster_objects import ClusterObjects
    from windlass.operations.teardown.inventory import TeardownInventory


@dataclass(frozen=True, slots=True)
class PlanResult:
    plan: Plan
    report: Report
    root: str = ""
    """What the root Application would follow, if it must be written first."""


async def plan(cluster: ObservedCluster, request: RunRequest) -> PlanResult:
    """Plan by what Argo CD knows now; no refresh is requested, because that would be a write."""
    started = cluster.now()
    applications = await list_applications(cluster, request.platform, request.platform.graph.names)
    await check_argocd_namespace(cluster, applications)
    if request.action is Action.DEPLOY:
        applications = await _with_root(cluster, request, applications)
    objects = await open_cluster_objects(cluster) if request.action is Action.TEARDOWN else None
    listed = await objects.list_all() if objects else NO_OBJECTS
    planned = await plan_run(cluster, request, applications, taken_at=started, objects=listed)
    check_approved_plan(request, planned)
    notices = await identity_notices(cluster, request.identity)
    notices += filter(None, [scopes.empty_selection_notice(request.platform, request.scope)])
    notices += [*_root_notices(request, planned), *planned.warnings, *parent_removal_notices(planned)]
    if objects:
        inventory = build_inventory(applications, planned, request.scope, cluster.argocd_namespace)
        notices += await _removal_notices(request, planned, objects, inventory.with_objects(listed))
    report = reports.plan_report(_record(cluster, request, started), planned.platform, planned.plan, planned.snapshot)
    return PlanResult(planned.plan, replace(report, notices=tuple(notices)), planned_root(request, planned))


async def _with_root(
    cluster: ObservedCluster, request: RunRequest, applications: ApplicationsByKey
) -> ApplicationsByKey:
    """Add the root Application, which may be in another namespace than the nodes."""
    key = (cluster.argocd_namespace, root_application.NAME)
    if request.root is None or key in applications:
        return applications
    try:
        root = await cluster.reader.get(APPLICATIONS.named(root_application.NAME, key[0]), Application)
    except NotFound:
        return applications
    return {**applications, key: root}


def _root_notices(request: RunRequest, planned: PlannedRun) -> list[str]:
    if not planned.root_change or request.root is None:
        return []
    if request.root.is_pinned:
        return [planned.root_change]
    return [
        planned.root_change,
        (
            f"which commit {request.root.revision} leads to is known once {root_application.NAME} is there: "
            "to approve an exact one, name a commit as gitRevision"
        ),
    ]


async def _removal_notices(
    request: RunRequest, planned: PlannedRun, objects: ClusterObjects, inventory: TeardownInventory
) -> list[str]:
    """What would happen to each volume, and which nodes would be refused.

    Raises if the volume policy cannot be applied in this cluster.
    """
    check_policy(request.volume_policy, objects.inventory.discovery)
    affected = await find_affected_volumes(objects.reader, inventory)
    with_released = request.volume_policy is VolumePolicy.DELETE
    volumes = [volume for volume in affected.volumes if volume.is_bound or with_released]
    notices = volume_notices(request.volume_policy, volumes)
    finder = ForeignObjectFinder(objects, inventory.platform_objects(claim.key for claim in affected.own_claims))
    containers = inventory.containers(planned.left_behind)
    for name in sorted({step.name for step in planned.plan.steps} - request.delete_foreign):
        if foreign := await finder.find(containers[name]):
            notices.append(f"{name} would be left alone ({Reason.FOREIGN_OBJECTS}), to spare {foreign.summary}")
    return notices


def _record(cluster: ObservedCluster, request: RunRequest, started: datetime) -> RunRecord:
    counts = cluster.reader.counts
    return RunRecord(
        action=request.action,
        environment=request.environment,
        scope=str(request.scope),
        started=started,
        finished=cluster.now(),
        calls=ApiCalls(reads=counts.total - counts.writes, writes=counts.writes),
        is_dry_run=True,
        argocd_namespace=cluster.argocd_namespace,
        platform=request.platform.name,
        platform_file=request.platform_file,
        server=cluster.reader.server,
    )
