"""The removal step of one node, used by every orchestrator: delete it and all it manages, wait until all is gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, ObjectKey, parse_application
from windlass.argo.cd.resource_tracking import (
    application_resource_key,
    application_subtree,
    creates_namespace,
    instance_name,
    managed_resource_keys,
    object_key,
    summarize_keys,
    target_namespace_key,
)
from windlass.core.platform import gates
from windlass.core.platform.events import NodeStarted, NodeWaiting
from windlass.core.platform.gate_values import Failed, Open, Reason, Wait
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceState
from windlass.core.platform.outcomes import StepResult
from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping
    from datetime import datetime

    from windlass.argo.cd.application_watch import ApplicationsWatch, ApplicationWatch
    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.argo.cd.applications import Application
    from windlass.core.platform.events import EmitEvent
    from windlass.core.platform.model.applications import ApplicationNode as Node
    from windlass.core.platform.model.graphs import Graph
    from windlass.core.platform.model.snapshots import NodeState
    from windlass.core.platform.planning.plans import Step
    from windlass.core.platform.teardown.inventory import ObservedObject, PresentObjects, ResourceKey


@dataclass(frozen=True, slots=True)
class ObjectAccess:
    """Access to objects of any kind by their key."""

    find_present: Callable[[Collection[ResourceKey]], Awaitable[PresentObjects]]
    delete: Callable[[ObservedObject], Awaitable[None]]
    explain: Callable[[Collection[ResourceKey]], Awaitable[tuple[str, ...]]]
    """Explains why objects are not deleted."""


@dataclass(frozen=True, slots=True)
class RemovalContext:
    """What all removal steps of a run share."""

    applications: ApplicationsWatch
    writer: ApplicationWriter
    objects: ObjectAccess
    now: Callable[[], datetime]
    """Current time on the API server's clock."""
    argocd_namespace: str
    nodes: Mapping[str, Node]
    graph: Graph
    """Dependencies of the whole platform."""
    detached_applications: Mapping[ObjectKey, Application]
    """Applications that were already deleted without their resources."""

    def object_key(self, name: str) -> ObjectKey | None:
        target = self.nodes[name].target
        return target.key(self.argocd_namespace) if isinstance(target, ApplicationRef) else None


class RemovalSteps:
    def __init__(self, context: RemovalContext) -> None:
        self._context = context
        self._node_keys = frozenset(key for name in context.nodes if (key := context.object_key(name)))
        self._dependents_graph = context.graph.reversed()
        self.diagnostics: dict[str, tuple[str, ...]] = {}
        """For each node that could not be removed, what blocks its deletion."""

    async def execute(self, step: Step, emit: EmitEvent) -> StepResult:
        emit(NodeStarted(step.name, step.verb))
        if dependent := self._present_dependent(step.name):
            return StepResult(Failed(Reason.PRESENT, f"{dependent} depends on it and is there again", is_final=True))
        removal = _NodeRemoval(self._context, self._context.nodes[step.name], self._node_keys, emit)
        decision = await removal.run()
        if isinstance(decision, Failed):
            self.diagnostics[step.name] = await self._explain(removal.remaining)
        return StepResult(decision)

    def _present_dependent(self, name: str) -> str:
        """A dependent that still exists, or an empty string. It blocks the removal even if the plan did not know it."""
        view = self._context.applications.view
        names = sorted(self._dependents_graph.closure([name]) - {name})
        return next((each for each in names if (key := self._context.object_key(each)) and key in view), "")

    async def _explain(self, remaining: Collection[ResourceKey]) -> tuple[str, ...]:
        try:
            return await self._context.objects.explain(remaining)
        except KubeError as error:
            return (f"what holds it could not be read: {error.what}",)


@dataclass(slots=True)
class _NodeRemoval:
    context: RemovalContext
    node: Node
    node_keys: frozenset[ObjectKey]
    emit: EmitEvent
    remaining: tuple[ResourceKey, ...] = ()
    """Objects that still exist."""
    is_application_gone: bool = False
    """The Application is gone; objects it managed may still exist."""
    unreadable: tuple[str, ...] = ()
    requested_uids: frozenset[str] = frozenset()
    """UIDs whose deletion was requested; the server keeps the request, so it is never repeated."""
    last_wait: tuple[str, str] = ("", "")

    async def run(self) -> Open | Failed:
        key = self.context.object_key(self.node.name)
        assert key is not None
        with self.context.applications.watch(key) as watch:
            application = watch.current or self.context.detached_applications.get(key)
            resources = self._managed_resources(application) if application else frozenset()
            history = gates.start_history(watch.state, self.context.now())
            while True:
                if failed := await self._request_deletion(watch, resources):
                    return failed
                history = gates.extend_history(history, await self._current_state(watch, resources), self.context.now())
                decision = gates.evaluate_absence(history, self.node.timing.health, self.context.now())
                if isinstance(decision, Open):
                    return self._with_verification(decision, application)
                if isinstance(decision, Failed):
                    return replace(decision, detail=self._describe(decision.detail), is_final=True)
                self._report_wait(decision)
                await watch.wait_for_change()

    def _managed_resources(self, application: Application) -> frozenset[ResourceKey]:
        """Objects that must be deleted with the Application.

        Excludes other nodes, which have their own steps, and CustomResourceDefinitions, which Argo CD does not delete.
        """
        if parse_application(application).is_remote:
            return frozenset()
        members = application_subtree(application, self.context.applications.view, self.node_keys)
        keys = frozenset().union(
            *(managed_resource_keys(member) for member in members if not parse_application(member).is_remote)
        )
        keys -= {target_namespace_key(member) for member in members if creates_namespace(member)}
        return frozenset(item for item in keys if not item.is_crd and not self._is_node(item))

    def _is_node(self, key: ResourceKey) -> bool:
        return _is_application(key) and (key.namespace, key.name) in self.node_keys

    async def _request_deletion(self, watch: ApplicationWatch, resources: frozenset[ResourceKey]) -> Failed | None:
        """Request the deletion, unless that is already done. `None` unless the server refuses it."""
        try:
            if watch.current is None:
                await self._delete_orphans(resources)
            elif (
                not watch.current.metadata.deletion_timestamp and watch.current.metadata.uid not in self.requested_uids
            ):
                await self._delete_application(watch.current)
        except TRANSIENT_ERRORS:
            return None  # the next iteration reads the result
        except KubeError as error:
            self.remaining = tuple(sorted(resources))
            return Failed(Reason.PRESENT, f"its deletion was refused: {error.what}", is_final=True)
        return None

    async def _delete_application(self, application: Application) -> None:
        for member in application_subtree(application, self.context.applications.view, self.node_keys):
            if member is not application:
                await self.context.writer.add_cascade_finalizer(member)
        if parse_application(application).operation_requested:
            application = await self.context.writer.end_operation(application)  # otherwise Argo CD waits for it
        await self.context.writer.delete_application(application)
        self.requested_uids |= {application.metadata.uid}

    async def _delete_orphans(self, resources: frozenset[ResourceKey]) -> None:
        """Delete the objects of an Application that was deleted without cascade."""
        if self.context.object_key(self.node.name) not in self.context.detached_applications:
            return
        for orphan in (await self._find_present(resources)).objects:
            if orphan.is_deleting or orphan.uid in self.requested_uids:
                continue
            member = self.context.applications.view.get((orphan.key.namespace, orphan.key.name))
            if member and _is_application(orphan.key):
                await self.context.writer.delete_application(member)
            else:
                await self.context.objects.delete(orphan)
            self.requested_uids |= {orphan.uid}

    async def _find_present(self, resources: frozenset[ResourceKey]) -> PresentObjects:
        """The objects that exist, without those tracked by another Application or excluded from deletion."""
        key = self.context.object_key(self.node.name)
        assert key is not None
        instances = {instance_name(key, self.context.argocd_namespace), ""}
        instances |= {
            instance_name((item.namespace, item.name), self.context.argocd_namespace)
            for item in resources
            if _is_application(item)
        }
        present = await self.context.objects.find_present(resources)
        owned = (found for found in present.objects if found.tracking_instance in instances and not found.is_kept)
        return replace(present, objects=tuple(owned))

    async def _current_state(self, watch: ApplicationWatch, resources: frozenset[ResourceKey]) -> NodeState | None:
        """State of the Application or, once that is gone, of its remaining objects; `None` if nothing is left."""
        if watch.current is not None:
            self.remaining = (*sorted(resources), application_resource_key(object_key(watch.current)))
            return parse_application(watch.current)
        if not resources:
            return None
        try:
            present = await self._find_present(resources)
        except TRANSIENT_ERRORS:
            return ResourceState(Health.UNKNOWN, "nobody can tell", is_deleting=True)
        self.is_application_gone = True
        self.remaining, self.unreadable = tuple(found.key for found in present.objects), present.unreadable
        if not present.objects:
            return None
        is_deleting = all(found.is_deleting for found in present.objects)
        return ResourceState(Health.PROGRESSING, summarize_keys(self.remaining), is_deleting=is_deleting)

    def _with_verification(self, decision: Open, application: Application | None) -> Open:
        """Record that the removal is unverified if objects are in another cluster or could not be read."""
        is_remote = application is not None and parse_application(application).is_remote
        is_verified = not is_remote and not self.unreadable
        return Open(replace(decision.evidence, is_directly_verified=is_verified))

    def _describe(self, detail: str) -> str:
        return f"{summarize_keys(self.remaining)}: {detail}" if self.is_application_gone else detail

    def _report_wait(self, wait: Wait) -> None:
        problem = self.context.applications.connection_problem
        description = f"no news from the server: {problem}" if problem else self._describe(wait.detail)
        if (reason_and_detail := (str(wait.reason), description)) != self.last_wait:
            self.last_wait = reason_and_detail
            self.emit(NodeWaiting(self.node.name, *reason_and_detail))


def _is_application(key: ResourceKey) -> bool:
    return (key.group, key.kind) == (APPLICATIONS.group, APPLICATIONS.kind)
