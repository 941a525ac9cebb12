"""The plan of a run, computed from what the cluster shows.

`plan`, dry runs, `deploy` and `teardown` all plan here. Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.ownership import tracking_owner
from windlass.argo.cd.resource_tracking import (
    application_resource_key,
    instance_name,
    parent_objects,
    summarize_keys,
    synced_resource_keys,
)
from windlass.core.platform.identity import ClusterIdentity
from windlass.core.platform.model import scopes
from windlass.core.platform.model.annotations import merge_annotations
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.planning import approvals, definitions, lint_warnings, plans
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.reporting.text_layout import pluralize
from windlass.core.platform.teardown import parents
from windlass.core.platform.teardown.inventory import (
    PresentObjects,
    left_behind_objects,
    unlisted_summary,
    uses_label_tracking,
)
from windlass.core.platform.teardown.parents import ParentRemovalPlan, TeardownSelection
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.errors import WindlassError
from windlass.operations.object_health import assess_snapshot
from windlass.operations.observation import annotated_dependencies, build_observation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from windlass.argo.cd.root_application import RootApplication
    from windlass.core.platform.model.annotations import AnnotatedPlatform
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.planning.approvals import ApprovedPlan
    from windlass.core.platform.planning.plans import Plan, Step
    from windlass.core.platform.teardown.inventory import ResourceKey
    from windlass.kube.client.objects import RawObject
    from windlass.operations.observation import ApplicationsByKey, ObservedCluster

MAX_SHOWN_DIFFERENCES = 5  # differences listed in the error; one is enough to refuse


NO_OBJECTS = PresentObjects()
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
    """Refuse to run unless the computed plan equals this one, and sync only at the revisions that it names."""
    volume_policy: VolumePolicy = VolumePolicy.RETAIN
    """What a teardown does with persistent volumes."""
    delete_foreign: frozenset[str] = frozenset()
    """Nodes that a teardown removes although foreign objects are destroyed with them."""
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
    left_behind: Mapping[str, tuple[ResourceKey, ...]] = field(default_factory=dict)
    """For a teardown, the objects of nodes whose Application is gone."""


async def plan_run(
    cluster: ObservedCluster,
    request: RunRequest,
    applications: ApplicationsByKey,
    *,
    annotated: AnnotatedPlatform | None = None,
    taken_at: datetime | None = None,
    objects: PresentObjects = NO_OBJECTS,
) -> PlannedRun:
    """Plan from these Applications.

    `annotated`: from `annotated_platform`, if it is known already. `taken_at`: when they were listed, if not now.
    `objects`: all objects of the cluster, which a teardown needs.
    """
    annotated = annotated or annotated_platform(cluster, request, applications)
    platform, names = annotated.platform, request.platform.graph.names
    observation = await build_observation(cluster, request.platform, names, taken_at or cluster.now(), applications)
    if request.action is Action.TEARDOWN:
        seen = _TeardownView(applications, objects, cluster.argocd_namespace)
        planned = _plan_teardown(request, platform, observation.snapshot, seen)
    else:
        unchanged = plans.seemingly_unchanged(platform, observation.snapshot, request.scope)
        snapshot, _ = await assess_snapshot(cluster, platform, observation, unchanged)
        planned = _plan_deploy(request, platform, snapshot, applications, cluster.argocd_namespace)
    return replace(planned, warnings=(*annotated.notices, *planned.warnings))


def annotated_platform(
    cluster: ObservedCluster, request: RunRequest, applications: ApplicationsByKey
) -> AnnotatedPlatform:
    """The platform with the dependencies that annotations add."""
    annotated = annotated_dependencies(cluster, request.platform, applications)
    return merge_annotations(request.platform, annotated, request.explicit_dependencies, cluster.argocd_namespace)


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
    manifest, change, is_ours = None, "", False
    if request.root is not None:
        is_needed = plans.has_undefined_node(platform, snapshot, request.scope) or _has_child_of_root(applications)
        live = applications.get((argocd_namespace, root_application.NAME))
        if notice := root_application.foreign_root_notice(request.root, live):
            warnings = (*warnings, notice)
        manifest, change = root_application.root_change(request.root, argocd_namespace, live, is_needed=is_needed)
        is_ours = bool(change) or (live is not None and root_application.is_managed_by_windlass(live))
    if change:
        snapshot = definitions.with_rewritten_parent(snapshot, f"{argocd_namespace}/{root_application.NAME}")
    plan = plans.plan_deploy(platform, snapshot, request.scope)
    if request.root is not None and request.root.is_pinned and is_ours:
        plan = _with_root_revision(plan, snapshot, request.root.revision, is_written=bool(change))
    return PlannedRun(platform, plan, snapshot, warnings, manifest if change else None, change)


def _has_child_of_root(applications: ApplicationsByKey) -> bool:
    """Whether the root has defined an Application that exists: without the root, no commit would reach it."""
    return any(tracking_owner(each.metadata) == root_application.NAME for each in applications.values())


def _with_root_revision(plan: Plan, snapshot: Snapshot, revision: str, *, is_written: bool) -> Plan:
    """Name the root's commit in the steps of nodes that do not exist, or that the root defines and is written anew."""

    def step_with_revision(step: Step) -> Step:
        parent = snapshot.parents.get(step.name)
        if parent is None:
            is_from_root = step.why == plans.DOES_NOT_EXIST
        else:
            is_from_root = is_written and parent.name == root_application.NAME and step.revisions == parent.revisions
        return replace(step, revisions=(revision,)) if is_from_root else step

    return replace(plan, steps=tuple(step_with_revision(step) for step in plan.steps))


@dataclass(frozen=True, slots=True)
class _TeardownView:
    """What a teardown is planned from."""

    applications: ApplicationsByKey
    objects: PresentObjects
    argocd_namespace: str

    def left_behind(self, nodes: Mapping[ResourceKey, str]) -> dict[str, tuple[ResourceKey, ...]]:
        """Objects of nodes whose Application is gone, without other nodes: each is removed in its own turn."""
        missing = {
            instance_name((key.namespace, key.name), self.argocd_namespace): name
            for key, name in nodes.items()
            if (key.namespace, key.name) not in self.applications
        }
        synced = frozenset().union(*map(synced_resource_keys, self.applications.values()))
        by_label = uses_label_tracking(self.objects.objects, synced)
        found = left_behind_objects(self.objects, missing, by_label=by_label)
        left = {name: tuple(key for key in keys if key not in nodes) for name, keys in found.items()}
        return {name: keys for name, keys in left.items() if keys}


def _plan_teardown(request: RunRequest, platform: Platform, snapshot: Snapshot, seen: _TeardownView) -> PlannedRun:
    """A parent that would recreate what is deleted, and cannot be deleted first, is an unmet dependency."""
    applications = seen.applications
    parent_list, nodes = parent_objects(applications), _nodes_by_key(platform, seen.argocd_namespace)
    graph = parents.with_parent_dependencies(platform.graph, parent_list, nodes)
    platform = replace(platform, graph=graph)
    left_behind = seen.left_behind(nodes)
    summaries = {name: summarize_keys(keys) for name, keys in left_behind.items()}
    unlisted = unlisted_summary(seen.objects.unreadable)
    plan = plans.plan_teardown(platform, snapshot, request.scope, summaries, unlisted)
    selected = scopes.selected_nodes(platform, request.scope)
    live = frozenset(name for key, name in nodes.items() if (key.namespace, key.name) in applications)
    selection = TeardownSelection(nodes, graph, selected, live, request.scope.is_platform)
    removal = parents.plan_parent_removal(parent_list, selection)
    plan = replace(plan, unmet=(*plan.unmet, *removal.refused))
    return PlannedRun(platform, plan, snapshot, parent_removal=removal, left_behind=left_behind)


def _nodes_by_key(platform: Platform, argocd_namespace: str) -> dict[ResourceKey, str]:
    targets = {name: node.target for name, node in platform.applications.items()}
    return {
        application_resource_key(target.key(argocd_namespace)): name
        for name, target in targets.items()
        if isinstance(target, ApplicationRef)
    }


def summarize_run(request: RunRequest, planned: PlannedRun, cluster: str = "") -> ApprovedPlan:
    """The part of the plan that is approved. `cluster`: from `read_cluster_binding`."""
    summary = approvals.summarize_plan(planned.plan, planned.snapshot)
    parents = tuple(str(parent.key) for parent in planned.parent_removal.delete_first)
    allowed = tuple(sorted(request.delete_foreign))
    summary = replace(summary, parents=parents, cluster=cluster, delete_foreign=allowed)
    if not planned.root_change or request.root is None:
        return summary
    return replace(
        summary, root=str(request.root), root_revision=request.root.revision if request.root.is_pinned else ""
    )


def check_approved_plan(request: RunRequest, planned: PlannedRun, *, root_is_written: bool = False) -> None:
    """Raise `Moved` if a plan was approved and the computed one differs from it.

    `root_is_written`: this run has written the approved root, which changes the plan.
    """
    if request.approved_plan is None:
        return
    computed = summarize_run(request, planned)
    if root_is_written:
        parents = {name: parent.name for name, parent in planned.snapshot.parents.items()}
        undefined = {step.name for step in planned.plan.steps} - parents.keys() - planned.snapshot.states.keys()
        root_nodes = undefined | {name for name, parent in parents.items() if parent == root_application.NAME}
        differences = approvals.differences_after_root(request.approved_plan, computed, root_nodes)
    else:
        differences = approvals.differences(request.approved_plan, computed)
    if differences:
        more = len(differences) - MAX_SHOWN_DIFFERENCES
        shown = [*differences[:MAX_SHOWN_DIFFERENCES], *([f"and {more} more"] if more > 0 else [])]
        count = pluralize(len(differences), "difference")
        raise Moved(
            f"the plan does not fit the cluster any more, {count}: {'; '.join(shown)}",
            hint="make a new plan: windlass plan --out FILE",
        )


def parent_removal_notices(planned: PlannedRun) -> list[str]:
    return [
        f"{parent.key} defines Applications that are removed: it is deleted first, without them, so that it does not "
        "recreate them"
        for parent in planned.parent_removal.delete_first
    ]
