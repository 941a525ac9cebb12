"""The sync step of one node, used by every orchestrator: ensure it is defined, sync it, wait until its gate opens."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_resources import child_applications, parse_own_state, resources_to_sync
from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.applications import ObjectKey, requested_run_id
from windlass.argo.cd.parent_sync import ParentSync
from windlass.argo.cd.sync_requests import SyncRequest
from windlass.argo.gate_evaluation import evaluate_with_objects
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform import gates, takeovers
from windlass.core.platform.events import NodeStarted, NodeWaiting
from windlass.core.platform.gate_values import Failed, GateHistory, GateTarget, Open, Reason, RefreshNeeded, Wait
from windlass.core.platform.model.applications import ApplicationRef, ResourceRef
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    ParentApplication,
    Snapshot,
    SyncStatus,
    desired_revisions,
)
from windlass.core.platform.outcomes import StepResult
from windlass.core.platform.planning.definitions import definition_failure, parent_failure
from windlass.core.platform.planning.plans import Verb, sync_reason, wait_before_sync
from windlass.kube.api_errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from windlass.argo.cd.application_watch import ApplicationsWatch, ApplicationWatch
    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.argo.cd.applications import Application
    from windlass.argo.cd.refresher import Refresher
    from windlass.argo.dependency_checks import DependencyChecks
    from windlass.core.platform.events import EmitEvent
    from windlass.core.platform.gate_values import GateDecision
    from windlass.core.platform.model.applications import ApplicationNode
    from windlass.core.platform.model.snapshots import ResourceState
    from windlass.core.platform.planning.approvals import RunApproval
    from windlass.core.platform.planning.plans import Step
    from windlass.kube.clocks import Clock

POST_SYNC_REASONS = frozenset({
    Reason.PROGRESSING, Reason.SUSPENDED, Reason.MISSING, Reason.UNKNOWN, Reason.NOT_STABLE, Reason.NO_ACTIVITY,
    Reason.OUT_OF_TIME,
})  # fmt: skip
"""Reasons of a timeout after a successful sync; another sync would change nothing."""

NAMESPACE_RACE = re.compile(r'namespaces "[^"]+" already exists')
AssessApplication = Callable[["ApplicationNode", "Application", ApplicationState], Awaitable[ApplicationState]]


@dataclass(frozen=True, slots=True)
class SyncContext:
    """What all sync steps of a run share."""

    applications: ApplicationsWatch
    writer: ApplicationWriter
    read_resource: Callable[[ResourceRef], Awaitable[ResourceState | None]]
    assess: AssessApplication
    """Lowers the health in the state to that of the worst object of the Application."""
    clock: Clock
    now: Callable[[], datetime]
    """Current time on the API server's clock."""
    refresher: Refresher
    run_id: str
    argocd_namespace: str
    nodes: Mapping[str, ApplicationNode]
    parents: Mapping[str, ParentApplication]
    """Parent Application of each node, as of the plan."""
    failures: Mapping[str, Failed]
    """Why the steps with the verb `fail` fail."""
    outdated_parents: Mapping[str, ParentApplication]
    """By node: the parent that must be updated before the definition of the node is known."""
    observe_definitions: Callable[[], Awaitable[Snapshot]]
    """Parents of all nodes, as of now."""
    dependencies: DependencyChecks
    approval: RunApproval | None = None
    """What each node may be synced to; `None` if no plan was approved."""

    def object_key(self, ref: ApplicationRef) -> ObjectKey:
        return ref.key(self.argocd_namespace)


class SyncSteps:
    def __init__(self, context: SyncContext) -> None:
        self.context = context
        self.parent_sync = ParentSync(
            context.applications, context.writer, context.now, context.run_id, context.dependencies.ready_nodes
        )
        targets = [node.target for node in context.nodes.values()]
        self.node_keys = frozenset(
            context.object_key(target) for target in targets if isinstance(target, ApplicationRef)
        )

    async def execute(self, step: Step, emit: EmitEvent) -> StepResult:
        """Run the step to its end, with up to the node's number of attempts.

        A lost race is retried once without counting as an attempt.
        """
        if step.verb is Verb.FAIL:
            return StepResult(self.context.failures[step.name], attempts=0)
        if step.verb is Verb.RECHECK:
            emit(NodeStarted(step.name, step.verb))
            return StepResult(await _SyncAttempt(self, self.context.nodes[step.name], emit).recheck())
        node, attempt, has_raced = self.context.nodes[step.name], 1, False
        failed: Failed | None = None
        while True:
            emit(NodeStarted(step.name, step.verb, attempt))
            sync_attempt = _SyncAttempt(self, node, emit)
            decision = await sync_attempt.run(failed)
            failed = decision if isinstance(decision, Failed) else None
            if not has_raced and is_race(decision):
                has_raced = True
                continue
            pause = node.retries.pause_after(attempt)
            if isinstance(decision, Open) or pause is None or decision.is_final:
                return StepResult(decision, attempt)
            message = f"attempt {attempt} failed: {decision.detail}; the next one in {pause.total_seconds():g} s"
            emit(LogLine(Level.WARN, message, step.name))
            await self.context.clock.sleep(pause.total_seconds())
            attempt += 1


def is_race(decision: Open | Failed) -> bool:
    """Whether another client's operation replaced ours, or two syncs created one namespace and Argo CD failed one."""
    if not isinstance(decision, Failed):
        return False
    return decision.reason is Reason.OVERTAKEN or NAMESPACE_RACE.search(decision.detail) is not None


class _SyncAttempt:
    def __init__(self, steps: SyncSteps, node: ApplicationNode, emit: EmitEvent) -> None:
        self._context = steps.context
        self._parent_sync = steps.parent_sync
        self._emit = emit
        self._node = node
        self._node_keys = steps.node_keys
        self._approval = steps.context.approval
        self._last_wait: tuple[str, str] = ("", "")
        self._started = self._parent_was_whole = self._context.now()

    async def run(self, previous: Failed | None) -> Open | Failed:
        """Make one attempt, after one that failed or as the first."""
        target = self._node.target
        if blocked := await self._await_dependencies():
            return blocked
        if isinstance(target, ResourceRef):
            return await self._await_resource(target)
        key = self._context.object_key(target)
        with self._context.applications.watch(key) as watch:
            is_overtaken = previous is not None and previous.reason is Reason.OVERTAKEN
            if failed := await self._ensure_defined(key, watch, is_overtaken=is_overtaken):
                return failed
            if previous is not None:
                await self._refresh_after_failure(watch)
            decision = await self._sync(watch, is_overtaken=is_overtaken)
            if isinstance(decision, Failed):
                await self._end_operation(watch)
            if watch.current is not None:
                self._context.writer.close_request(watch.current, self._context.run_id)
            if isinstance(decision, Open) and watch.state is not None:
                self._context.dependencies.opened[self._node.name] = watch.state
            return decision

    async def recheck(self) -> Open | Failed:
        return await self._context.dependencies.recheck(self._node.name, self._report_wait)

    async def _await_dependencies(self) -> Failed | None:
        """Wait until every dependency is healthy; the node's own timeouts do not run while it waits."""
        started = self._context.now()
        blocked = await self._context.dependencies.await_dependencies(self._node.name, self._report_wait)
        self._started += self._context.now() - started
        return blocked

    async def _refresh_after_failure(self, watch: ApplicationWatch) -> None:
        """Request a refresh and wait for it: the status may predate the failed attempt."""
        if watch.current is not None and await self._request_refresh(watch):
            while watch.state and watch.state.refresh_requested and not self._is_timed_out():
                await watch.wait_for_change()

    async def _await_resource(self, ref: ResourceRef) -> Open | Failed:
        target = GateTarget((), (), self._node.timing)
        history = gates.start_history(await self._context.read_resource(ref), self._context.now())
        while isinstance(decision := gates.evaluate_gate(target, history, self._context.now()), Wait | RefreshNeeded):
            self._report_wait(decision)
            await self._context.clock.sleep(POLL_INTERVAL)
            history = gates.extend_history(history, await self._context.read_resource(ref), self._context.now())
        return replace(decision, is_final=True) if isinstance(decision, Failed) else decision

    async def _ensure_defined(self, key: ObjectKey, watch: ApplicationWatch, *, is_overtaken: bool) -> Failed | None:
        """Wait until the Application exists as its parent defines it; sync the parent if needed. `None` on success.

        After another client overtook the run, the definition is synced again: it may not be that of the parent.
        """
        planned_parent = self._context.parents.get(self._node.name)
        if self._node.name in self._context.outdated_parents:
            followed = await self._follow_parents()
            if isinstance(followed, Failed):
                return followed
            planned_parent = followed
        sync_requested = key in self._parent_sync.synced_children and not is_overtaken
        while True:
            snapshot = await self._context.observe_definitions()
            parent = planned_parent or snapshot.parents.get(self._node.name)
            if parent and parent.is_automated:
                parent = snapshot.parents.get(self._node.name) or parent
            is_outdated = parent and (parent.updates_child or (is_overtaken and not parent.is_automated))
            if watch.current is not None and (sync_requested or not is_outdated):
                return None
            if parent and not parent.is_automated and not sync_requested:
                sync_requested = True
                self._report_wait(Wait(Reason.ABSENT, f"{parent}, which defines it, is being synced"))
                if failed := await self._sync_definition(parent, key):
                    return failed
                continue
            if failed := self._parent_failure(snapshot):
                return failed
            detail = f"{parent}, which defines it, has not updated it" if parent else "no Application defines it"
            if self._is_timed_out():
                return Failed(Reason.ABSENT if parent else Reason.NOT_DEFINED, detail, is_final=True)
            self._report_wait(Wait(Reason.ABSENT, detail))
            await watch.wait_for_change()

    async def _follow_parents(self) -> ParentApplication | Failed | None:
        """Wait until its parents are as defined; sync those that are not nodes. Return its parent as it is then."""
        while True:
            snapshot = await self._context.observe_definitions()
            parent = snapshot.parents.get(self._node.name)
            outdated = next((each for each in parent.lineage if self._is_outdated(each)), None) if parent else None
            if outdated is None and (parent is None or parent_failure(parent) is None):
                return parent
            above = outdated.parent if outdated and not outdated.node else None
            if outdated and above and not above.is_automated and parent_failure(above) is None:
                if failed := await self._sync_definition(above, (outdated.namespace, outdated.name)):
                    return failed
                continue
            detail = f"{outdated or parent}, which defines it, is not up to date"
            if failed := self._parent_failure(snapshot):
                return failed
            if self._is_timed_out():
                return Failed(Reason.PARENT_BROKEN, detail, is_final=True, cause=str(outdated or parent))
            self._report_wait(Wait(Reason.NOT_COMPARED, detail))
            await self._context.clock.sleep(POLL_INTERVAL)

    def _is_outdated(self, parent: ParentApplication) -> bool:
        return parent.is_outdated and (parent.namespace, parent.name) not in self._parent_sync.synced_children

    async def _sync_definition(self, parent: ParentApplication, key: ObjectKey) -> Failed | None:
        """Sync the child through its parent, if that is approved and while every dependency is healthy."""
        if failed := self._approval and self._approval.check_parent(self._node.name, parent):
            return failed
        while True:
            if blocked := await self._await_dependencies():
                return blocked
            failure = await self._parent_sync.sync_child(parent, key, self._node.name)
            if failure is not None:
                return Failed(Reason.OPERATION_FAILED, failure) if failure else None

    def _parent_failure(self, snapshot: Snapshot) -> Failed | None:
        """Failure if its parent has been broken for the grace period, in which that may resolve."""
        failed = definition_failure(self._node.name, replace(snapshot, has_all_definitions=False))
        if failed is None:
            self._parent_was_whole = self._context.now()
        return failed if self._context.now() - self._parent_was_whole >= self._node.timing.degraded_grace else None

    async def _sync(self, watch: ApplicationWatch, *, is_overtaken: bool) -> Open | Failed:
        """Request a sync, if needed, as soon as no other operation is pending; then wait for the gate."""
        watch.catch_up()  # the parent may have changed it just now
        sources = watch.state.sources if watch.state else ()
        while (state := self._own_state(watch.current)) is not None and state.sources == sources:
            assert watch.current is not None
            revisions = desired_revisions(state)
            wait = wait_before_sync(state, revisions) or self._wait_for_comparison(watch.current, state)
            if wait is None:
                obstacle = self._check_approved(watch.current, state)
                needs_sync = sync_reason(state, revisions) or (is_overtaken and takeovers.needs_sync(state, revisions))
                if not obstacle and not needs_sync:
                    return await self._await_gate(watch, gates.start_history(state, self._context.now()), revisions, "")
                if obstacle := obstacle or await self._await_dependencies():
                    return obstacle
                resources = resources_to_sync(watch.current, self._node_keys)
                request = SyncRequest(revisions, self._context.run_id, resources)
                response = await self._context.writer.try_sync(watch.current, request)
                if isinstance(response, str):
                    return Failed(Reason.OPERATION_FAILED, response)
                if response is not None:
                    history = gates.start_history(state, self._context.now())
                    watch.record_write(response)
                    history = gates.extend_history(history, self._own_state(response), self._context.now())
                    return await self._await_gate(watch, history, revisions, self._context.run_id)
            elif failed := self._timeout_failure(state, wait):
                return failed
            else:
                self._report_wait(wait)
            await watch.wait_for_change()
        return Failed(Reason.OVERTAKEN, "its definition has changed" if watch.current else "it was deleted")

    def _check_approved(self, application: Application, state: ApplicationState) -> Failed | None:
        key = (application.metadata.namespace, application.metadata.name)
        is_redefined = key in self._parent_sync.synced_children
        return self._approval.check(self._node.name, state, is_redefined=is_redefined) if self._approval else None

    def _timeout_failure(self, state: ApplicationState, wait: Wait) -> Failed | None:
        """Failure if no sync could be requested within the timeout; error conditions have a shorter grace period."""
        timing, waited = self._node.timing, self._context.now() - self._started
        if wait.reason is Reason.NOT_COMPARED and state.errors and waited >= timing.degraded_grace:
            return Failed(Reason.ERROR_CONDITION, str(state.errors[0]))
        if self._is_timed_out():
            detail = f"{wait.detail}, after {timing.sync.total_seconds():g} s"
            return Failed(wait.reason, detail, is_final=wait.reason is Reason.DELETING)
        return None

    def _own_state(self, application: Application | None) -> ApplicationState | None:
        return None if application is None else parse_own_state(application, self._node_keys)

    def _wait_for_comparison(self, application: Application, state: ApplicationState) -> Wait | None:
        """Why it is not known which nodes the Application defines at its new revision; `None` if it is, or has none.

        A sync of everything would update them before their turn.
        """
        is_compared = state.revisions == desired_revisions(state) and state.compared_sources == state.sources
        if (is_compared and state.sync is not SyncStatus.UNKNOWN) or not self._may_define_nodes(application):
            return None
        return Wait(Reason.NOT_COMPARED, "Argo CD has not compared it with its new sources")

    def _may_define_nodes(self, application: Application) -> bool:
        """Whether it defines nodes now, or there are nodes that nothing defines yet."""
        view, parents = self._context.applications.view, self._context.parents
        has_children = any(child in self._node_keys for child, _ in child_applications(application))
        return has_children or any(
            self._context.object_key(node.target) not in view and name not in parents
            for name, node in self._context.nodes.items()
            if isinstance(node.target, ApplicationRef)
        )

    async def _await_gate(
        self, watch: ApplicationWatch, history: GateHistory, revisions: tuple[str, ...], run_id: str
    ) -> Open | Failed:
        assert watch.current is not None
        target = GateTarget(revisions, watch.current.state.sources, self._node.timing, run_id or None)
        while True:
            now = self._context.now()
            latest = gates.extend_history(history, self._own_state(watch.current), now)
            takeover = takeovers.check_gate_takeover(target, latest, now)
            decision, history = (takeover, latest) if takeover else await self._evaluate_gate(target, history, watch)
            if isinstance(decision, Open):
                return decision
            if isinstance(decision, Failed):
                is_after_sync = history.succeeded_since is not None and decision.reason in POST_SYNC_REASONS
                return replace(decision, is_final=decision.is_final or is_after_sync)
            if isinstance(decision, RefreshNeeded) and await self._request_refresh(watch):
                continue
            self._report_wait(decision)
            await watch.wait_for_change()

    async def _evaluate_gate(
        self, target: GateTarget, history: GateHistory, watch: ApplicationWatch
    ) -> tuple[GateDecision, GateHistory]:
        async def assess(state: ApplicationState) -> ApplicationState:
            assert watch.current is not None
            return await self._context.assess(self._node, watch.current, state)

        return await evaluate_with_objects(target, history, self._own_state(watch.current), assess, self._context.now)

    async def _request_refresh(self, watch: ApplicationWatch) -> bool:
        """Request a refresh; return whether the request was written."""
        assert watch.current is not None
        response = await self._context.refresher.try_refresh(watch.current)
        if response is not None:
            watch.record_write(response)
        return response is not None

    async def _end_operation(self, watch: ApplicationWatch) -> None:
        """End the operation if this run requested it: a failed step must not leave one running."""
        application = watch.current
        if application is None or requested_run_id(application) != self._context.run_id:
            return
        try:
            watch.record_write(await self._context.writer.end_operation(application))
        except KubeError as error:
            self._emit(LogLine(Level.WARN, f"its operation could not be ended: {error.what}", self._node.name))

    def _is_timed_out(self) -> bool:
        return self._context.now() - self._started >= self._node.timing.sync

    def _report_wait(self, wait: Wait | RefreshNeeded) -> None:
        problem = self._context.applications.connection_problem
        reason_and_detail = (str(wait.reason), f"no news from the server: {problem}" if problem else wait.detail)
        if reason_and_detail != self._last_wait:
            self._last_wait = reason_and_detail
            self._emit(NodeWaiting(self._node.name, *reason_and_detail))
