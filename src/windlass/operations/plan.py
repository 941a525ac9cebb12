"""`plan` and every dry run: what would be done, in which order and why. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.core.platform.documents import to_json
from windlass.core.platform.gate_values import Reason, abbreviate
from windlass.core.platform.model import scopes
from windlass.core.platform.planning.approvals import approval_problems
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, RunRecord
from windlass.core.platform.teardown.volumes import VolumePolicy, volume_notices
from windlass.kube.api_errors import NotFound
from windlass.operations.cluster_identity import (
    SERVER_BINDING,
    check_cluster_binding,
    identity_notices,
    read_cluster_binding,
)
from windlass.operations.observation import check_argocd_namespace, illegal_row_notices, list_applications
from windlass.operations.plan_changes import ChangeRequest, find_changes
from windlass.operations.planner import (
    NO_OBJECTS,
    check_approved_plan,
    parent_removal_notices,
    plan_run,
    summarize_run,
)
from windlass.operations.teardown.affected_volumes import check_policy, find_affected_volumes
from windlass.operations.teardown.cluster_objects import open_cluster_objects
from windlass.operations.teardown.foreign_objects import ForeignObjectFinder
from windlass.operations.teardown.inventory import build_inventory

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.core.platform.planning.approvals import ApprovedPlan
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.observation import ApplicationsByKey, ObservedCluster
    from windlass.operations.planner import PlannedRun, RunRequest
    from windlass.operations.teardown.cluster_objects import ClusterObjects
    from windlass.operations.teardown.inventory import TeardownInventory


NO_TOKEN_GIVEN = ChangeRequest()


@dataclass(frozen=True, slots=True)
class PlanResult:
    plan: Plan
    report: Report
    summary: ApprovedPlan
    """The part of the plan that is approved."""


async def plan(
    cluster: ObservedCluster, request: RunRequest, refreshes: int = 0, changes: ChangeRequest = NO_TOKEN_GIVEN
) -> PlanResult:
    """Plan by what Argo CD knows now; no refresh is requested, because that would be a write.

    `refreshes`: how many this command requested before. `changes`: how much to tell about what syncs change.
    """
    started = cluster.now()
    applications = await list_applications(cluster, request.platform, request.platform.graph.names)
    await check_argocd_namespace(cluster, applications)
    await check_cluster_binding(cluster, request.approved_plan)
    if request.action is Action.DEPLOY:
        applications = await _with_root(cluster, request, applications)
    objects = await open_cluster_objects(cluster) if request.action is Action.TEARDOWN else None
    listed = await objects.list_all() if objects else NO_OBJECTS
    planned = await plan_run(cluster, request, applications, taken_at=started, objects=listed)
    check_approved_plan(request, planned)
    summary = summarize_run(request, planned, await read_cluster_binding(cluster))
    notices = await identity_notices(cluster, request.identity)
    notices += filter(None, [scopes.empty_selection_notice(request.platform, request.scope)])
    notices += [*_comparison_notices(cluster, request, planned, applications), *_approval_notices(summary)]
    notices += [*filter(None, [planned.root_change]), *planned.warnings, *parent_removal_notices(planned)]
    notices += illegal_row_notices(applications.values())
    if objects:
        inventory = build_inventory(applications, planned, request.scope, cluster.argocd_namespace)
        notices += await _removal_notices(request, planned, objects, inventory.with_objects(listed))
    found = await find_changes(cluster, planned, applications, changes)
    record = _record(cluster, request, started, refreshes)
    report = reports.plan_report(record, planned.platform, planned.plan, planned.snapshot)
    report = replace(report, changes=found.changes, notices=(*notices, *found.notices))
    return PlanResult(planned.plan, report, summary)


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


def _comparison_notices(
    cluster: ObservedCluster, request: RunRequest, planned: PlannedRun, applications: ApplicationsByKey
) -> list[str]:
    """As of which commit and when Argo CD compared the root, and each other parent whose revision may move."""
    if request.action is not Action.DEPLOY:
        return []
    root_key = (cluster.argocd_namespace, root_application.NAME)
    selected = scopes.selected_nodes(request.platform, request.scope)
    parents = planned.snapshot.parents
    keys = {root_key} | {(parents[name].namespace, parents[name].name) for name in selected if name in parents}
    notices = []
    for key in sorted(keys & applications.keys()):
        state = applications[key].state
        if key == root_key or state.has_mutable_revision:
            compared = f"compared at {to_json(state.reconciled_at)}" if state.reconciled_at else "never compared"
            notices.append(f"{'/'.join(key)} is planned as of {abbreviate(state.revisions)}, {compared}")
    return notices


def _approval_notices(summary: ApprovedPlan) -> list[str]:
    notices = [
        f"this plan cannot be approved: {problem}; name a commit as gitRevision, or plan again when it is known"
        for problem in approval_problems(summary)[:1]
    ]
    if summary.cluster.startswith(SERVER_BINDING):
        notices.append(f"namespace kube-system may not be read: the plan is bound to the {summary.cluster}")
    return notices


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


def _record(cluster: ObservedCluster, request: RunRequest, started: datetime, refreshes: int) -> RunRecord:
    counts = cluster.reader.counts
    return RunRecord(
        action=request.action,
        environment=request.environment,
        scope=str(request.scope),
        started=started,
        finished=cluster.now(),
        calls=ApiCalls(reads=counts.total - counts.writes, writes=counts.writes - refreshes, refreshes=refreshes),
        is_dry_run=True,
        argocd_namespace=cluster.argocd_namespace,
        platform=request.platform.name,
        platform_file=request.platform_file,
        server=cluster.reader.server,
    )
