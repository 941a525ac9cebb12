"""`teardown`: delete applications in reverse order, each after its dependents and all their objects are proven gone.

The functions below are in the order of a run: observe and plan, check preconditions, acquire the lock, plan again,
protect volumes, delete parents, delete applications, clean up, report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.argo.cd.applications import APPLICATIONS
from windlass.argo.cd.removal_step import ObjectAccess, RemovalContext, RemovalSteps
from windlass.core.log_lines import Level
from windlass.core.platform.events import RunPhase
from windlass.core.platform.identity import EMBEDDED_PLATFORM
from windlass.core.platform.planning import plans
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import EMPTY_REMOVAL, FinalState, Removal
from windlass.core.platform.teardown import inventory
from windlass.core.platform.teardown.volumes import VolumePolicy, reclaimable_volumes
from windlass.errors import WindlassError
from windlass.kube import access_reviews
from windlass.kube.access_reviews import Permission
from windlass.kube.api_errors import KubeError
from windlass.operations.cluster_identity import WrongPlatform
from windlass.operations.observation import check_argocd_namespace
from windlass.operations.planner import check_approved_plan, parent_removal_notices
from windlass.operations.run import run_lock
from windlass.operations.run.context import Stopped
from windlass.operations.run.lifecycle import Run
from windlass.operations.teardown.affected_volumes import (
    AffectedVolumes,
    check_policy,
    find_affected_volumes,
    list_volumes,
)
from windlass.operations.teardown.cleanup import Cleanup
from windlass.operations.teardown.cluster_objects import open_cluster_objects, unreadable_notice
from windlass.operations.teardown.finalizers import FinalizerExplainer
from windlass.operations.teardown.foreign_objects import ForeignObjectFinder
from windlass.operations.teardown.inventory import build_inventory
from windlass.operations.teardown.orphans import OrphanFinder
from windlass.operations.teardown.parent_removal import ParentRemoval
from windlass.operations.teardown.volume_retention import VolumeRetention
from windlass.orchestrators import embedded
from windlass.orchestrators.embedded import RunHooks

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator, Mapping

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.argo.cd.applications import ObjectKey
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.reporting.reports import Report
    from windlass.core.platform.teardown.inventory import ObservedObject, PresentObjects, ResourceKey
    from windlass.operations.planner import PlannedRun, RunRequest
    from windlass.operations.run.context import RunContext
    from windlass.operations.teardown.cluster_objects import ClusterObjects
    from windlass.operations.teardown.inventory import TeardownInventory
    from windlass.operations.teardown.orphans import OrphanReport

R = TypeVar("R")
UNFINISHED_NOTICE = "not known: the run was stopped before it looked for them; rerun it"


@dataclass(frozen=True, slots=True)
class TeardownResult:
    outcomes: tuple[Outcome, ...] = ()
    removal: Removal = EMPTY_REMOVAL
    diagnostics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What blocks the deletion of nodes that failed."""


async def teardown(context: RunContext, request: RunRequest) -> Report:
    run = Run(context, request)
    try:
        async with run.watch():
            report = await _teardown(run)
    except Stopped:
        report = run.not_started_report()
    return run.with_notices(report)


async def _teardown(run: Run) -> Report:
    planned, listed = await run.control.unless_stopped(_observe_and_plan(run))
    check_approved_plan(run.request, planned)
    if not planned.plan.can_run:
        for notice in planned.warnings:
            run.add_notice(notice)
        return run.plan_report(planned)
    if planned.plan.is_empty:
        removal = await run.control.unless_stopped(_verify_already_gone(run, planned, listed))
        if removal is not None:
            return _run_report(run, planned, planned.snapshot, TeardownResult(removal=removal))
    await run.control.unless_stopped(_check_preconditions(run))
    async with run.hold_lock() as writer:
        planned, listed = await run.control.unless_stopped(_plan(run))
        check_approved_plan(run.request, planned)
        result = await _delete_platform(run, writer, planned, listed) if planned.plan.can_run else TeardownResult()
        is_complete = run.request.scope.is_platform and all(outcome.is_successful for outcome in result.outcomes)
        if is_complete and planned.plan.can_run and not run.control.stop.is_set():
            run.context.lease.delete_on_release()
    run.start_phase(RunPhase.REPORT)
    return _run_report(run, planned, await run.live.snapshot(), result)


async def _observe_and_plan(run: Run) -> tuple[PlannedRun, PresentObjects]:
    run.start_phase(RunPhase.OBSERVE)
    await run.live.wait_for_initial_list()
    await check_argocd_namespace(run.context.cluster, run.live.applications.view)
    await run.check_identity()
    planned, listed = await _plan(run)
    run.start_phase(RunPhase.PLAN)
    return run.announce_plan(planned), listed


async def _plan(run: Run) -> tuple[PlannedRun, PresentObjects]:
    """Plan from the Applications and all objects of the cluster: what an Application left behind counts as well."""
    listed = await (await open_cluster_objects(run.context.cluster)).list_all()
    return await run.plan(objects=listed), listed


async def _verify_already_gone(run: Run, planned: PlannedRun, listed: PresentObjects) -> Removal | None:
    """Return the removal if the platform is already gone; `None` if something is left that can be cleaned up.

    That may be only the Lease of a run that died after its last delete.
    """
    if run.request.scope.is_platform and await run.context.lease.read():
        return None
    before = _build_inventory(run, planned, listed)
    gone = list(before.keys_by_node.values())
    leftovers = inventory.remaining_objects(listed.objects, (), before.removed_applications(gone))
    if planned.parent_removal.delete_first or inventory.unused_crds(listed, leftovers):
        return None
    if run.request.volume_policy is VolumePolicy.DELETE:
        volumes = await list_volumes(run.context.cluster.reader)
        if reclaimable_volumes(volumes.values(), gone, ()):
            return None
    run.start_phase(RunPhase.VERIFY)
    objects = await open_cluster_objects(run.context.cluster)
    explainer = FinalizerExplainer(objects, run.context.cluster.now)
    return _removal(run, await _orphan_finder(objects, explainer, before, gone).find_orphans())


def _build_inventory(run: Run, planned: PlannedRun, listed: PresentObjects) -> TeardownInventory:
    applications, namespace = run.live.applications.view, run.context.argocd_namespace
    return build_inventory(applications, planned, run.request.scope, namespace).with_objects(listed)


async def _check_preconditions(run: Run) -> None:
    """Check that the teardown is possible and permitted before anything is changed."""
    cluster = run.context.cluster
    _require_record(run)
    check_policy(run.request.volume_policy, await cluster.served.discovery())
    await access_reviews.require_permissions(cluster.reader, _required_permissions(run))


def _require_record(run: Run) -> None:
    """Refuse to remove the reference platform from a cluster on which its deploy is not recorded.

    Without a platform file the names of the reference platform are used; in such a cluster they may be another's.
    """
    request = run.request
    if run.recorded_identity is not None or request.takes_over:
        return
    if request.platform_file == EMBEDDED_PLATFORM:
        raise WrongPlatform(
            f"no deploy is recorded on this cluster, and no platform file is given: {EMBEDDED_PLATFORM} is not removed",
            where=run.context.cluster.reader.server,
            hint="name the platform file by --dag; --take-over removes the reference platform",
        )
    run.add_notice(f"no deploy is recorded on this cluster: it is taken for {request.identity}")


def _required_permissions(run: Run) -> Iterator[Permission]:
    for namespace in sorted(run.live.namespaces):
        yield Permission("patch", APPLICATIONS, namespace)
        yield Permission("delete", APPLICATIONS, namespace)
    with_delete = run.request.scope.is_platform
    yield from run_lock.required_permissions(run.context.argocd_namespace, with_delete=with_delete)


async def _delete_platform(
    run: Run, writer: ApplicationWriter, planned: PlannedRun, listed: PresentObjects
) -> TeardownResult:
    """Delete what the plan names, and clean up after it. From here on, every end of the run is reported."""
    objects = await open_cluster_objects(run.context.cluster)
    before = _build_inventory(run, planned, listed)
    explainer = FinalizerExplainer(objects, run.context.cluster.now)
    affected = await _run_or_stop(run, find_affected_volumes(objects.reader, before)) or AffectedVolumes()
    policy, run_id = run.request.volume_policy, run.context.run_id
    retention = VolumeRetention(objects, writer, policy, run_id, before, affected)
    finder = ForeignObjectFinder(objects, before.platform_objects(claim.key for claim in affected.own_claims))
    removal = ParentRemoval(run.live.applications, writer, explainer.explain)
    access = _object_access(retention, explainer, finder)
    await _run_or_stop(run, _check_parents(run, planned, before, finder))
    await _run_or_stop(run, _prepare(run, planned, retention, removal))
    steps = RemovalSteps(_removal_context(run, planned, before, access, removal))
    run.start_phase(RunPhase.RUN)
    now, control = run.context.cluster.now, run.control
    hooks = RunHooks(steps.execute, now, control.emit, control.stop, control.fail)
    outcomes = await embedded.run(planned.plan, planned.platform, hooks)
    run.start_phase(RunPhase.CLEAN)
    gone = _gone_keys(before, planned, outcomes)
    result = await _run_or_stop(run, _clean_up(run, retention, explainer, before, gone))
    return TeardownResult(outcomes, result or await _interrupted_removal(retention, gone), steps.diagnostics)


async def _run_or_stop(run: Run, work: Coroutine[Any, Any, R]) -> R | None:
    """Await `work`; on an error stop the run and return `None`: what was changed by then must still be reported."""
    try:
        return await run.control.unless_stopped(work)
    except WindlassError as error:
        if not run.control.stop.is_set():
            run.control.fail(error)
        return None


async def _check_parents(run: Run, planned: PlannedRun, before: TeardownInventory, finder: ForeignObjectFinder) -> None:
    """Raise if a node that must be deleted before all others would have to be left alone."""
    names = {key: name for name, key in before.keys_by_node.items() if name not in run.request.delete_foreign}
    containers = before.containers(planned.left_behind)
    for parent in planned.parent_removal.delete_first:
        name = names.get((parent.key.namespace, parent.key.name), "")
        if name and (foreign := await finder.find(containers[name])):
            raise WindlassError(
                f"{name} must be removed first, and would destroy {foreign.summary}; nothing was deleted",
                hint=f"move them away, or accept their loss: --delete-foreign {name}",
            )


async def _prepare(run: Run, planned: PlannedRun, retention: VolumeRetention, removal: ParentRemoval) -> None:
    """Protect the volumes and delete the parents that would recreate nodes, before the first node is deleted."""
    await retention.protect_volumes()
    for notice in (*planned.warnings, *parent_removal_notices(planned)):
        run.add_notice(notice)
    await removal.delete_parents(planned.parent_removal.delete_first)


def _object_access(
    retention: VolumeRetention, explainer: FinalizerExplainer, finder: ForeignObjectFinder
) -> ObjectAccess:
    objects, writer = retention.objects, retention.writer

    async def delete(found: ObservedObject) -> None:
        ref = objects.ref_to(found.key)
        if ref is not None:
            await writer.delete_object(ref, found.uid, "Foreground")

    return ObjectAccess(objects.find_objects, delete, explainer.explain, finder.find, retention.retain_volumes)


def _removal_context(
    run: Run,
    planned: PlannedRun,
    before: TeardownInventory,
    objects: ObjectAccess,
    parent_removal: ParentRemoval,
) -> RemovalContext:
    return RemovalContext(
        applications=run.live.applications,
        writer=parent_removal.writer,
        objects=objects,
        now=run.context.cluster.now,
        argocd_namespace=run.context.argocd_namespace,
        nodes=planned.platform.applications,
        graph=planned.platform.graph,
        detached_applications=parent_removal.deleted_applications,
        known_applications=before.to_delete,
        left_behind=planned.left_behind,
        tracks_by_label=before.tracks_by_label,
        unreadable=before.listed.unreadable,
        containers=before.containers(planned.left_behind),
        deletes_foreign=run.request.delete_foreign,
    )


def _gone_keys(before: TeardownInventory, planned: PlannedRun, outcomes: Iterable[Outcome]) -> list[ObjectKey]:
    """Keys of the Applications to delete that are gone."""
    remaining = {outcome.name for outcome in outcomes if not outcome.is_successful}
    gone = {key for name, key in before.keys_by_node.items() if name not in remaining}
    parents = {(parent.key.namespace, parent.key.name) for parent in planned.parent_removal.delete_first}
    return sorted(gone | (parents & before.to_delete.keys()) - set(before.keys_by_node.values()))


async def _clean_up(
    run: Run,
    retention: VolumeRetention,
    explainer: FinalizerExplainer,
    before: TeardownInventory,
    gone: list[ObjectKey],
) -> Removal:
    await retention.delete_claims(gone)
    volumes = await retention.result(gone)
    finder = _orphan_finder(retention.objects, explainer, before, gone, volumes.keys)
    cleanup = Cleanup(finder, retention.writer, _crds_with_objects(run, before))
    await cleanup.delete_unused(before.created_namespaces(gone, tuple(run.live.applications.view.values())))
    run.start_phase(RunPhase.VERIFY)
    removal = _removal(run, await cleanup.find_orphans())
    return Removal((*volumes.retained, *removal.retained), (*volumes.orphans, *removal.orphans), volumes.destroyed)


def _crds_with_objects(run: Run, before: TeardownInventory) -> frozenset[ResourceKey]:
    """CustomResourceDefinitions of nodes that are removed together with foreign objects."""
    containers = before.containers({})
    keys = frozenset().union(*(containers.get(name, ()) for name in run.request.delete_foreign))
    return frozenset(item for item in keys if item.is_crd)


def _orphan_finder(
    objects: ClusterObjects,
    explainer: FinalizerExplainer,
    before: TeardownInventory,
    gone: list[ObjectKey],
    kept: frozenset[ResourceKey] = frozenset(),
) -> OrphanFinder:
    return OrphanFinder(objects, explainer, before.removed_applications(gone, kept), before.owned_uids(gone))


def _removal(run: Run, report: OrphanReport) -> Removal:
    if report.unreadable:
        run.add_notice(unreadable_notice(report.unreadable), Level.WARN)
    return Removal(report.retained, report.orphans)


async def _interrupted_removal(retention: VolumeRetention, gone: list[ObjectKey]) -> Removal:
    """The removal of a run that was stopped, perhaps because the server no longer responds."""
    try:
        volumes = await retention.result(gone)
        return Removal(volumes.retained, (UNFINISHED_NOTICE,), volumes.destroyed)
    except KubeError:
        return Removal(orphans=(UNFINISHED_NOTICE,))


def _run_report(run: Run, planned: PlannedRun, snapshot: Snapshot, result: TeardownResult) -> Report:
    if not planned.plan.can_run:
        return run.plan_report(planned)
    platform, plan = planned.platform, planned.plan
    outcomes = (*plans.unchanged_outcomes(platform, plan, snapshot), *result.outcomes)
    return reports.run_report(
        run.record(), platform, plan, outcomes, FinalState(snapshot, result.diagnostics), result.removal
    )
