"""`deploy`: sync the applications in scope in dependency order, each after the gates of its dependencies have opened.

An application that is already in its desired state is not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.applications import APPLICATIONS, Application, parse_application
from windlass.argo.cd.sync_step import SyncContext, SyncSteps
from windlass.core.platform import final_check
from windlass.core.platform.events import Level, NodeFinished, Notice, RunPhase
from windlass.core.platform.gates import Failed
from windlass.core.platform.model import scopes
from windlass.core.platform.model.annotations import merge_annotations
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import lint_warnings, plan_documents, plans
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, FinalState
from windlass.errors import WindlassError
from windlass.kube import access_reviews
from windlass.kube.access_reviews import Permission
from windlass.operations.observation import check_argocd_namespace
from windlass.operations.run import run_lock
from windlass.operations.run.context import RunRequest
from windlass.operations.run.lifecycle import RunLifecycle
from windlass.operations.validate import SETTLING_POLL_INTERVAL, SETTLING_TIMEOUT
from windlass.orchestrators import embedded
from windlass.orchestrators.embedded import RunHooks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.argo.cd.root_application import RootApplication
    from windlass.core.platform.gates import GateHistory
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.planning.plan_documents import ApprovedPlan
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.kube.client.objects import RawObject
    from windlass.operations.run.context import RunContext

ROOT_COMPARISON_TIMEOUT = 120.0  # seconds for Argo CD to compare a root Application that was just written


MAX_SHOWN_DIFFERENCES = 5  # differences listed in the error; one is enough to refuse


class Moved(WindlassError):
    """The plan computed now differs from the approved plan."""


@dataclass(frozen=True, slots=True)
class DeployRequest:
    """What `deploy` was asked to do."""

    environment: str
    platform: Platform
    scope: Scope
    explicit_dependencies: frozenset[str] = frozenset()
    """Nodes whose dependencies the platform file lists; annotations are ignored for these."""
    root: RootApplication | None = None
    """Root Application to create if it is needed, or to update if Windlass manages it."""
    approved_plan: ApprovedPlan | None = None
    """Refuse to run unless the computed plan equals this one."""


async def deploy(context: RunContext, request: DeployRequest) -> Report:
    return await _Deploy(context, request).run()


class _Deploy(RunLifecycle):
    """Observe, plan, check access, acquire the lock, replan, sync, verify, report."""

    def __init__(self, context: RunContext, request: DeployRequest) -> None:
        super().__init__(context, RunRequest(Action.DEPLOY, request.environment, request.scope), request.platform)
        self._request = request

    async def execute(self) -> Report:
        plan, snapshot, root_manifest = await self.control.unless_stopped(self._observe_and_plan())
        self._check_approved_plan(plan, root_manifest)
        if not plan.can_run:
            return reports.plan_report(self.run_record(), self.platform, plan, snapshot)
        if plan.is_empty and root_manifest is None:
            return reports.run_report(
                self.run_record(),
                self.platform,
                plan,
                plans.unchanged_outcomes(self.platform, plan, snapshot),
                FinalState(snapshot),
            )
        await self.control.unless_stopped(
            access_reviews.require_permissions(self.context.client, self._required_permissions(root_manifest))
        )
        async with self.acquire_lock():
            plan, snapshot = await self.control.unless_stopped(self._replan_under_lock(root_manifest))
            if root_manifest is None:
                self._check_approved_plan(plan, root_manifest)
            unchanged = plans.unchanged_outcomes(self.platform, plan, snapshot)
            outcomes = await self._sync_applications(plan, snapshot)
            outcomes, snapshot = await self._verify_still_healthy((*unchanged, *outcomes))
        self.start_phase(RunPhase.REPORT)
        failed = [each.name for each in outcomes if each.result in {Result.FAILED, Result.INTERRUPTED}]
        final_state = FinalState(snapshot, await self.live.diagnostics(failed))
        return reports.run_report(self.run_record(), self.platform, plan, outcomes, final_state)

    async def _observe_and_plan(self) -> tuple[Plan, Snapshot, RawObject | None]:
        """Return the plan, its snapshot, and the root Application to write first; `None` if it needs no write."""
        self.start_phase(RunPhase.OBSERVE)
        await self.live.wait_for_initial_list()
        await check_argocd_namespace(self.live.cluster, self.live.applications.view)
        annotated_dependencies = (await self.live.observation()).annotated_dependencies
        self.platform = merge_annotations(
            self._request.platform, annotated_dependencies, self._request.explicit_dependencies
        )
        names = scopes.selected_nodes(self._request.platform, self._request.scope)
        if self.live.keys_to_refresh(names):
            await self._check_before_refresh()
            await self.live.refresh(names)
        plan, snapshot = await self._plan_when_settled()
        self.start_phase(RunPhase.PLAN)
        self.announce_plan(plan, snapshot)
        for _, message in lint_warnings.automated_sync_warnings(self.platform, snapshot):
            self.add_notice(message, Level.WARN)
        root_manifest, reason = self._root_change(plan, snapshot)
        if reason:
            self.add_notice(reason)
        return plan, snapshot, root_manifest

    async def _check_before_refresh(self) -> None:
        """Refuse now what can be refused without a refresh, because a refresh is already a write."""
        if self._request.approved_plan is not None:
            plan, snapshot = await self._plan_when_settled()
            self._check_approved_plan(plan, self._root_change(plan, snapshot)[0])
        await access_reviews.require_permissions(self.context.client, self._required_permissions(None))
        await self.lock.wait_until_free()

    async def _plan_when_settled(self) -> tuple[Plan, Snapshot]:
        """Plan, and plan again for up to `SETTLING_TIMEOUT` while health that is too recent to count holds up the plan.

        That is the case if the plan changes nothing and only waits, or if every unmet dependency shows Healthy.
        """
        clock = self.context.client.clock
        started = clock.monotonic()
        while True:
            snapshot = await self.live.snapshot()
            plan = plans.plan_deploy(self.platform, snapshot, self._request.scope)
            is_late = clock.monotonic() - started > SETTLING_TIMEOUT.total_seconds()
            if is_late or (not _is_unsettled(plan, snapshot) and (plan.changes or plan.is_empty)):
                return plan, snapshot
            await clock.sleep(SETTLING_POLL_INTERVAL)

    def _required_permissions(self, root_manifest: RawObject | None) -> Iterator[Permission]:
        for namespace in sorted(self.live.namespaces):
            yield Permission("patch", APPLICATIONS, namespace)
        if root_manifest is not None and self.live.root is None:
            yield Permission("create", APPLICATIONS, self.context.argocd_namespace)
        yield from run_lock.required_permissions(self.context.argocd_namespace)

    def _root_change(self, plan: Plan, snapshot: Snapshot) -> tuple[RawObject | None, str]:
        """Return the root Application to write and the reason; `(None, "")` if it needs no change."""
        if self._request.root is None:
            return None, ""
        is_needed = plans.has_undefined_node(plan, snapshot)
        manifest, reason = root_application.root_change(
            self._request.root, self.context.argocd_namespace, self.live.root, is_needed=is_needed
        )
        return (manifest if reason else None), reason

    def _check_approved_plan(self, plan: Plan, root_manifest: RawObject | None) -> None:
        check_approved_plan(self._request.approved_plan, plan, str(self._request.root) if root_manifest else "")

    async def _replan_under_lock(self, root_manifest: RawObject | None) -> tuple[Plan, Snapshot]:
        """Plan again under the lock, when no other run can change anything: this is the plan that is executed."""
        if root_manifest is not None:
            await self._write_root(root_manifest)
        snapshot = await self.live.snapshot()
        plan = plans.plan_deploy(self.platform, snapshot, self._request.scope)
        return self.announce_plan(plan, snapshot)

    async def _write_root(self, manifest: RawObject) -> None:
        self.writer.check_write_allowed()
        ref = APPLICATIONS.named(root_application.NAME, self.context.argocd_namespace)
        written = await self.context.client.apply(ref, manifest)
        with self.live.applications.watch((self.context.argocd_namespace, root_application.NAME)) as watch:
            version, waited = int(written["metadata"]["resourceVersion"]), 0.0
            while waited < ROOT_COMPARISON_TIMEOUT and not _is_compared(watch.current, version):
                waited += 0 if await watch.wait_for_change() else POLL_INTERVAL

    async def _sync_applications(self, plan: Plan, snapshot: Snapshot) -> tuple[Outcome, ...]:
        self.start_phase(RunPhase.RUN)
        context, control = self.context, self.control
        sync_context = SyncContext(
            applications=self.live.applications,
            writer=self.writer,
            read_resource=self.live.read_resource,
            clock=context.client.clock,
            now=context.now,
            emit=control.emit,
            run_id=context.run_id,
            argocd_namespace=context.argocd_namespace,
            nodes=self.platform.applications,
            parents=snapshot.parents,
        )
        hooks = RunHooks(
            SyncSteps(sync_context).execute,
            context.now,
            control.emit,
            control.stop,
            control.fail,
            sync_context.waiting_for,
        )
        outcomes = await embedded.run(plan, self.platform, hooks)
        if control.is_out_of_time:
            await self.live.end_operations(context.run_id)
        return outcomes

    async def _verify_still_healthy(self, outcomes: tuple[Outcome, ...]) -> tuple[tuple[Outcome, ...], Snapshot]:
        """Check at the end of the run that finished applications are still healthy; wait for those that are not.

        Return the corrected outcomes and the final snapshot.
        """
        healthy = [each.name for each in outcomes if each.is_successful]
        histories: dict[str, GateHistory] = {}
        announced: set[str] = set()
        while True:
            snapshot = await self.live.snapshot()
            histories = final_check.update_histories(histories, healthy, snapshot)
            closed_gates = final_check.closed_gates(self.platform, histories, snapshot)
            waiting = {name: each for name, each in closed_gates.items() if not isinstance(each, Failed)}
            if not waiting or self.control.stop.is_set():
                break
            for name in sorted(waiting.keys() - announced):
                message = f"it was healthy in its turn, and now is waited for again: {waiting[name].detail}"
                self.control.emit(Notice(Level.WARN, message, name))
            announced |= waiting.keys()
            await self.context.client.clock.sleep(SETTLING_POLL_INTERVAL)
        corrected = tuple(final_check.apply_final_check(each, closed_gates.get(each.name)) for each in outcomes)
        for each in corrected:
            if each.name in closed_gates:
                self.control.emit(NodeFinished(each))
        return corrected, snapshot


def check_approved_plan(approved_plan: ApprovedPlan | None, plan: Plan, root: str) -> None:
    if approved_plan is None:
        return
    computed = plan_documents.summarize_plan(plan, root)
    if differences := plan_documents.differences(approved_plan, computed):
        raise Moved(
            f"the cluster has moved since the plan was made: {'; '.join(differences[:MAX_SHOWN_DIFFERENCES])}",
            hint="look at a new plan: windlass plan --out FILE",
        )


def _is_unsettled(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether every unmet dependency shows Healthy, so that only the proof is missing."""
    states = [snapshot.states.get(each.name) for each in plan.unmet]
    return bool(states) and all(state is not None and state.health is Health.HEALTHY for state in states)


def _is_compared(root: Application | None, version: int) -> bool:
    """Whether Argo CD compared the root after it was written at `version`; an older comparison says nothing."""
    if root is None or int(root.metadata.resource_version) <= version:
        return False
    state = parse_application(root)
    return bool(state.revisions) and state.compared_sources == state.sources
