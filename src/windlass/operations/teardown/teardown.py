"""`teardown`: delete applications in reverse order, each after its dependents and all their objects are proven gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.argo.cd.applications import APPLICATIONS
from windlass.argo.cd.removal_step import ObjectAccess, RemovalContext, RemovalSteps
from windlass.core.platform.events import Level, RunPhase
from windlass.core.platform.model.annotations import merge_annotations
from windlass.core.platform.planning import plans
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import EMPTY_REMOVAL, Action, FinalState, Removal
from windlass.core.platform.teardown import inventory
from windlass.core.platform.teardown.parents import ParentRemovalPlan
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.errors import WindlassError
from windlass.kube import access_reviews
from windlass.kube.access_reviews import Permission
from windlass.kube.api_errors import KubeError
from windlass.operations.observation import check_argocd_namespace
from windlass.operations.run import run_lock
from windlass.operations.run.context import RunRequest
from windlass.operations.run.lifecycle import RunLifecycle
from windlass.operations.teardown.cleanup import Cleanup
from windlass.operations.teardown.cluster_objects import ClusterInventory, unreadable_notice
from windlass.operations.teardown.finalizers import FinalizerExplainer
from windlass.operations.teardown.inventory import TeardownInventory, build_inventory
from windlass.operations.teardown.parents import (
    ParentRemoval,
    parent_removal_notice,
    plan_parent_removal,
    with_parents_last,
)
from windlass.operations.teardown.volumes import RetentionResult, VolumeRetention, check_policy, find_affected_volumes
from windlass.orchestrators import embedded
from windlass.orchestrators.embedded import RunHooks

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator

    from windlass.argo.cd.applications import Application, ObjectKey
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.core.platform.teardown.inventory import ObservedObject
    from windlass.operations.run.context import RunContext

R = TypeVar("R")
UNFINISHED_NOTICE = "the run ended before it was known what is left; run it again"


@dataclass(frozen=True, slots=True)
class TeardownRequest:
    """What `teardown` was asked to do."""

    environment: str
    platform: Platform
    scope: Scope
    explicit_dependencies: frozenset[str] = frozenset()
    """Nodes whose dependencies the platform file lists; annotations are ignored for these."""
    volume_policy: VolumePolicy = VolumePolicy.RETAIN


async def teardown(context: RunContext, request: TeardownRequest) -> Report:
    return await _Teardown(context, request).run()


class _Teardown(RunLifecycle):
    """Observe, plan, check access, acquire the lock, replan, delete, clean up, verify, report."""

    def __init__(self, context: RunContext, request: TeardownRequest) -> None:
        super().__init__(context, RunRequest(Action.TEARDOWN, request.environment, request.scope), request.platform)
        self._request = request
        self._parent_removal_plan = ParentRemovalPlan()
        self._diagnostics: dict[str, tuple[str, ...]] = {}

    async def execute(self) -> Report:
        control = self.control
        plan, snapshot = await control.unless_stopped(self._observe_and_plan())
        if not plan.can_run:
            return reports.plan_report(self.run_record(), self.platform, plan, snapshot)
        if plan.is_empty and (removal := await control.unless_stopped(self._verify_already_gone())) is not None:
            return self._report(plan, snapshot, (), removal)
        retention = await control.unless_stopped(self._check_preconditions())
        async with self.acquire_lock():
            plan, outcomes, removal = await self._tear_down(retention)
            is_complete = self._request.scope.is_platform and all(outcome.is_successful for outcome in outcomes)
            self.lock.delete_on_release = is_complete and plan.can_run and not control.stop.is_set()
        self.start_phase(RunPhase.REPORT)
        return self._report(plan, await self.live.snapshot(), outcomes, removal)

    async def _check_preconditions(self) -> VolumeRetention:
        """Check that the teardown is possible and permitted before anything is changed."""
        await check_argocd_namespace(self.live.cluster, self.live.applications.view)
        cluster_inventory = ClusterInventory(self.context.client, await self.live.cluster.served.discovery())
        check_policy(self._request.volume_policy, cluster_inventory.discovery)
        retention = VolumeRetention(cluster_inventory, self.writer, self._request.volume_policy, self.context.run_id)
        await access_reviews.require_permissions(self.context.client, self._required_permissions())
        return retention

    async def _observe_and_plan(self) -> tuple[Plan, Snapshot]:
        self.start_phase(RunPhase.OBSERVE)
        await self.live.wait_for_initial_list()
        planned = await self._compute_plan()
        self.start_phase(RunPhase.PLAN)
        return self.announce_plan(*planned)

    async def _compute_plan(self) -> tuple[Plan, Snapshot]:
        """Plan; a parent that would recreate what is deleted, and cannot be deleted first, is an unmet dependency."""
        observation, scope = await self.live.observation(), self._request.scope
        applications, argocd_namespace = self.live.applications.view, self.context.argocd_namespace
        platform = merge_annotations(
            self._request.platform, observation.annotated_dependencies, self._request.explicit_dependencies
        )
        self.platform = with_parents_last(applications, platform, argocd_namespace)
        plan = plans.plan_teardown(self.platform, observation.snapshot, scope)
        self._parent_removal_plan = plan_parent_removal(applications, self.platform, scope, argocd_namespace)
        return replace(plan, unmet=(*plan.unmet, *self._parent_removal_plan.refused)), observation.snapshot

    async def _take_inventory(self) -> tuple[ClusterInventory, TeardownInventory]:
        """List all objects of the cluster, to know afterwards which Application they belonged to."""
        cluster_inventory = ClusterInventory(self.context.client, await self.live.cluster.served.discovery())
        applications, scope = self.live.applications.view, self._request.scope
        teardown_inventory = build_inventory(
            applications, self.platform, scope, self._parent_removal_plan, self.context.argocd_namespace
        )
        return cluster_inventory, teardown_inventory.with_objects((await cluster_inventory.list_all()).objects)

    def _required_permissions(self) -> Iterator[Permission]:
        for namespace in sorted(self.live.namespaces):
            yield Permission("patch", APPLICATIONS, namespace)
            yield Permission("delete", APPLICATIONS, namespace)
        yield from run_lock.required_permissions(
            self.context.argocd_namespace, with_delete=self._request.scope.is_platform
        )

    async def _tear_down(self, retention: VolumeRetention) -> tuple[Plan, tuple[Outcome, ...], Removal]:
        """Plan again under the lock, when no other run can change anything, and execute that plan."""
        control = self.control
        plan, _ = await control.unless_stopped(self._compute_plan())
        if not plan.can_run:
            return plan, (), EMPTY_REMOVAL
        retention.cluster, teardown_inventory = await control.unless_stopped(self._take_inventory())
        deleted_parents = await self._run_or_stop(self._prepare(retention, teardown_inventory))
        outcomes = await self._delete_applications(plan, retention.cluster, deleted_parents or {})
        self.start_phase(RunPhase.CLEAN)
        gone = self._gone_keys(teardown_inventory, outcomes)
        removal = await self._run_or_stop(self._clean_up(retention, teardown_inventory, gone))
        return plan, outcomes, removal or await self._interrupted_removal(retention)

    async def _interrupted_removal(self, retention: VolumeRetention) -> Removal:
        """The removal of a run that was stopped, perhaps because the server no longer responds."""
        try:
            return Removal((await retention.result()).retained, (UNFINISHED_NOTICE,))
        except KubeError:
            return Removal(orphans=(UNFINISHED_NOTICE,))

    async def _run_or_stop(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Await `work`; on an error stop the run and return `None`: what was changed by then must still be reported."""
        try:
            return await self.control.unless_stopped(work)
        except WindlassError as error:
            if not self.control.stop.is_set():
                self.control.fail(error)
            return None

    async def _prepare(
        self, retention: VolumeRetention, teardown_inventory: TeardownInventory
    ) -> dict[ObjectKey, Application]:
        """Protect the volumes and delete the parents that would recreate nodes, before the first node is deleted."""
        retention.affected = await find_affected_volumes(retention.cluster.reader, teardown_inventory)
        await retention.protect_volumes()
        for parent in self._parent_removal_plan.delete_first:
            self.add_notice(parent_removal_notice(parent))
        explainer = FinalizerExplainer(retention.cluster, self.context.now)
        return await ParentRemoval(self.live.applications, self.writer, explainer.explain).delete_parents(
            self._parent_removal_plan.delete_first
        )

    async def _delete_applications(
        self, plan: Plan, cluster_inventory: ClusterInventory, deleted_parents: dict[ObjectKey, Application]
    ) -> tuple[Outcome, ...]:
        self.start_phase(RunPhase.RUN)
        context, control = self.context, self.control

        async def delete(obj: ObservedObject) -> None:
            ref = cluster_inventory.ref_to(obj.key)
            if ref is not None:
                await self.writer.delete_object(ref, obj.uid, "Foreground")

        removal_context = RemovalContext(
            applications=self.live.applications,
            writer=self.writer,
            objects=ObjectAccess(
                cluster_inventory.find_objects, delete, FinalizerExplainer(cluster_inventory, context.now).explain
            ),
            now=context.now,
            emit=control.emit,
            argocd_namespace=context.argocd_namespace,
            nodes=self.platform.applications,
            graph=self.platform.graph,
            detached_applications=deleted_parents,
        )
        steps = RemovalSteps(removal_context)
        hooks = RunHooks(
            steps.execute, context.now, control.emit, control.stop, control.fail, removal_context.waiting_for
        )
        outcomes = await embedded.run(plan, self.platform, hooks)
        self._diagnostics = steps.diagnostics
        return outcomes

    def _gone_keys(self, teardown_inventory: TeardownInventory, outcomes: Iterable[Outcome]) -> list[ObjectKey]:
        """Keys of the Applications to delete that are gone."""
        remaining = {outcome.name for outcome in outcomes if not outcome.is_successful}
        names = [name for name in teardown_inventory.keys_by_node if name not in remaining]
        parent_keys = {(parent.key.namespace, parent.key.name) for parent in self._parent_removal_plan.delete_first}
        return sorted(
            {teardown_inventory.keys_by_node[name] for name in names}
            | (parent_keys & teardown_inventory.to_delete.keys()) - set(teardown_inventory.keys_by_node.values())
        )

    async def _clean_up(
        self, retention: VolumeRetention, teardown_inventory: TeardownInventory, gone: list[ObjectKey]
    ) -> Removal:
        await retention.delete_claims()
        volume_result = await retention.result()
        cleanup = self._cleanup(retention.cluster, teardown_inventory, gone, volume_result)
        live_applications = tuple(self.live.applications.view.values())
        await cleanup.delete_unused(teardown_inventory.created_namespaces(gone, live_applications))
        self.start_phase(RunPhase.VERIFY)
        return await self._collect_orphans(cleanup, volume_result)

    async def _verify_already_gone(self) -> Removal | None:
        """Return the removal if the platform is already gone; `None` if something is left that can be cleaned up.

        That may be only the Lease of a run that died after its last delete.
        """
        if self._request.scope.is_platform and await self.lock.read_lease():
            return None
        cluster_inventory, teardown_inventory = await self._take_inventory()
        gone = list(teardown_inventory.keys_by_node.values())
        leftovers = inventory.remaining_objects(
            teardown_inventory.objects, (), teardown_inventory.removed_applications(gone)
        )
        unused_crds = [
            found for found in inventory.unused_crds(teardown_inventory.objects, leftovers) if not found.is_kept
        ]
        if self._parent_removal_plan.delete_first or unused_crds:
            return None
        self.start_phase(RunPhase.VERIFY)
        return await self._collect_orphans(
            self._cleanup(cluster_inventory, teardown_inventory, gone, RetentionResult()), RetentionResult()
        )

    def _cleanup(
        self,
        cluster_inventory: ClusterInventory,
        teardown_inventory: TeardownInventory,
        gone: list[ObjectKey],
        volume_result: RetentionResult,
    ) -> Cleanup:
        explainer = FinalizerExplainer(cluster_inventory, self.context.now)
        return Cleanup(
            cluster_inventory,
            self.writer,
            explainer,
            teardown_inventory.removed_applications(gone, volume_result.keys),
            teardown_inventory.owned_uids(gone),
        )

    async def _collect_orphans(self, cleanup: Cleanup, volume_result: RetentionResult) -> Removal:
        orphans = await cleanup.find_orphans()
        if cleanup.unreadable:
            self.add_notice(unreadable_notice(cleanup.unreadable), Level.WARN)
        return Removal((*volume_result.retained, *cleanup.retained), (*volume_result.orphans, *orphans))

    def _report(self, plan: Plan, snapshot: Snapshot, outcomes: tuple[Outcome, ...], removal: Removal) -> Report:
        record, platform = self.run_record(), self.platform
        if not plan.can_run:
            return reports.plan_report(record, platform, plan, snapshot)
        unchanged = plans.unchanged_outcomes(platform, plan, snapshot)
        final_state = FinalState(snapshot, self._diagnostics)
        return reports.run_report(record, platform, plan, (*unchanged, *outcomes), final_state, removal)
