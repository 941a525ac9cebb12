"""The plan of a run, computed from what the cluster shows.

`plan`, dry runs, `deploy` and `teardown` all plan here. Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.resource_tracking import application_resource_key, parent_objects
from windlass.core.platform.identity import ClusterIdentity
from windlass.core.platform.model import scopes
from windlass.core.platform.model.annotations import merge_annotations
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.planning import definitions, lint_warnings, plan_documents, plans
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.teardown import parents
from windlass.core.platform.teardown.parents import ParentRemovalPlan, TeardownSelection
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.errors import WindlassError
from windlass.operations.object_health import assess_snapshot
from windlass.operations.observation import annotated_dependencies, build_observation

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.argo.cd.root_application import RootApplication
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.planning.plan_documents import ApprovedPlan
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.teardown.inventory import ResourceKey
    from windlass.kube.client.objects import RawObject
    from windlass.operations.observation import ApplicationsByKey, ObservedCluster

MAX_SHOWN_DIFFERENCES = 5  # differences listed in the error; one is enough to refuse


NO_PARENT_REMOVAL = ParentRemovalPlan()


class Moved(WindlassError):
    """The plan computed now differs from the approved plan."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run was asked to do."""

    action: Action
    environment: str
    platform: Platform
    scope: Scope
    explicit_dependencies: frozenset[str] = frozenset()
    """Nodes whose dependencies the platform file lists; annotations are ignored for these."""
    root: RootApplication | None = None
    """Root Application that a deploy creates if it is needed, or updates if Windlass manages it."""
    approved_plan: ApprovedPlan | None = None
    """Refuse to deploy unless the computed plan equals this one."""
    volume_policy: VolumePolicy = VolumePolicy.RETAIN
    """What a teardown does with persistent volumes."""
    platform_file: str = ""
    """Path of the platform file, or `EMBEDDED_PLATFORM`."""
    takes_over: bool = False
    """Run although the cluster is recorded as another one, and record the new identity."""

    @property
    def identity(self) -> ClusterIdentity:
        return ClusterIdentity(self.environment, self.platform.name)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A plan, and everything it was computed from."""

    platform: Platform
    """With dependencies from annotations; for a teardown, parents also come after the nodes that they define."""
    plan: Plan
    snapshot: Snapshot
    warnings: tuple[str, ...] = ()
    root_manifest: RawObject | None = None
    """The root Application to write first; `None` if it needs no write."""
    root_change: str = ""
    """Why the root must be written."""
    parent_removal: ParentRemovalPlan = NO_PARENT_REMOVAL


async def plan_run(
    cluster: ObservedCluster,
    request: RunRequest,
    applications: ApplicationsByKey,
    *,
    platform: Platform | None = None,
    taken_at: datetime | None = None,
) -> PlannedRun:
    """Plan from these Applications.

    `platform`: from `annotated_platform`, if it is known already. `taken_at`: when they were listed, if not now.
    """
    platform = platform or annotated_platform(cluster, request, applications)
    names = request.platform.graph.names
    observation = await build_observation(cluster, request.platform, names, taken_at or cluster.now(), applications)
    if request.action is Action.TEARDOWN:
        return _plan_teardown(request, platform, observation.snapshot, applications, cluster.argocd_namespace)
    unchanged = plans.seemingly_unchanged(platform, observation.snapshot, request.scope)
    snapshot, _ = await assess_snapshot(cluster, platform, observation, unchanged)
    return _plan_deploy(request, platform, snapshot, applications, cluster.argocd_namespace)


def annotated_platform(cluster: ObservedCluster, request: RunRequest, applications: ApplicationsByKey) -> Platform:
    """The platform with the dependencies that annotations add; raises `InvalidInput` if they are invalid."""
    annotated = annotated_dependencies(cluster, request.platform, applications)
    return merge_annotations(request.platform, annotated, request.explicit_dependencies)


def _plan_deploy(
    request: RunRequest,
    platform: Platform,
    snapshot: Snapshot,
    applications: ApplicationsByKey,
    argocd_namespace: str,
) -> PlannedRun:
    warnings = (
        *(message for _, message in lint_warnings.automated_sync_warnings(platform, snapshot)),
        *definitions.automated_parent_warnings(snapshot, scopes.selected_nodes(platform, request.scope)),
        *definitions.definition_notices(snapshot),
    )
    manifest, change = None, ""
    if request.root is not None:
        is_needed = plans.has_undefined_node(platform, snapshot, request.scope)
        live = applications.get((argocd_namespace, root_application.NAME))
        if notice := root_application.foreign_root_notice(request.root, live):
            warnings = (*warnings, notice)
        manifest, change = root_application.root_change(request.root, argocd_namespace, live, is_needed=is_needed)
    if change:
        snapshot = definitions.with_rewritten_parent(snapshot, f"{argocd_namespace}/{root_application.NAME}")
    plan = plans.plan_deploy(platform, snapshot, request.scope)
    return PlannedRun(platform, plan, snapshot, warnings, manifest if change else None, change)


def _plan_teardown(
    request: RunRequest,
    platform: Platform,
    snapshot: Snapshot,
    applications: ApplicationsByKey,
    argocd_namespace: str,
) -> PlannedRun:
    """A parent that would recreate what is deleted, and cannot be deleted first, is an unmet dependency."""
    parent_list, nodes = parent_objects(applications), _nodes_by_key(platform, argocd_namespace)
    graph = parents.with_parent_dependencies(platform.graph, parent_list, nodes)
    platform = replace(platform, graph=graph)
    plan = plans.plan_teardown(platform, snapshot, request.scope)
    selected = scopes.selected_nodes(platform, request.scope)
    live = frozenset(name for key, name in nodes.items() if (key.namespace, key.name) in applications)
    selection = TeardownSelection(nodes, graph, selected, live, request.scope.is_platform)
    removal = parents.plan_parent_removal(parent_list, selection)
    plan = replace(plan, unmet=(*plan.unmet, *removal.refused))
    return PlannedRun(platform, plan, snapshot, parent_removal=removal)


def _nodes_by_key(platform: Platform, argocd_namespace: str) -> dict[ResourceKey, str]:
    targets = {name: node.target for name, node in platform.applications.items()}
    return {
        application_resource_key(target.key(argocd_namespace)): name
        for name, target in targets.items()
        if isinstance(target, ApplicationRef)
    }


def planned_root(request: RunRequest, planned: PlannedRun) -> str:
    """What the root will follow, if it must be written; empty otherwise. Part of the plan that is approved."""
    return str(request.root) if planned.root_change else ""


def check_approved_plan(request: RunRequest, planned: PlannedRun) -> None:
    """Raise `Moved` if a plan was approved and the computed one differs from it."""
    if request.approved_plan is None:
        return
    computed = plan_documents.summarize_plan(planned.plan, planned_root(request, planned))
    if differences := plan_documents.differences(request.approved_plan, computed):
        raise Moved(
            f"the cluster has moved since the plan was made: {'; '.join(differences[:MAX_SHOWN_DIFFERENCES])}",
            hint="look at a new plan: windlass plan --out FILE",
        )


def parent_removal_notices(planned: PlannedRun) -> list[str]:
    return [
        f"{parent.key} makes Applications that are to go: it is removed first, and alone"
        for parent in planned.parent_removal.delete_first
    ]
