"""The removal step of one node, used by every orchestrator: delete it and all it manages, wait until all is gone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, ObjectKey
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
from windlass.core.platform.teardown.foreign_objects import ForeignObjects
from windlass.errors import WindlassError
from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError, NotPermitted

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
    from windlass.core.platform.teardown.inventory import ObservedObject, PresentObjects, ResourceKey, Unreadable

MAX_NAMED_UNREADABLE = 3  # objects named in the failure


class VolumesUnknown(WindlassError):
    """It could not be read which volumes must be retained: the run must not delete more."""


@dataclass(frozen=True, slots=True)
class ObjectAccess:
    """Access to objects of any kind by their key."""

    find_present: Callable[[Collection[ResourceKey]], Awaitable[PresentObjects]]
    delete: Callable[[ObservedObject], Awaitable[None]]
    explain: Callable[[Collection[ResourceKey]], Awaitable[tuple[str, ...]]]
    """Explains why objects are not deleted."""
    find_foreign: Callable[[Collection[ResourceKey]], Awaitable[ForeignObjects]]
    """Finds what the deletion of these Namespaces and CustomResourceDefinitions would destroy."""
    protect_volumes: Callable[[], Awaitable[None]]
    """Retains what is to be retained, as of now; raises if that cannot be verified."""


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
    known_applications: Mapping[ObjectKey, Application] = field(default_factory=dict)
    """Applications as they were when the run was planned."""
    left_behind: Mapping[str, tuple[ResourceKey, ...]] = field(default_factory=dict)
    """Objects of nodes whose Application was gone by then."""
    tracks_by_label: bool = False
    """Argo CD tracks its resources by label only."""
    unreadable: tuple[Unreadable, ...] = ()
    """What could not be listed when the run was planned."""
    containers: Mapping[str, frozenset[ResourceKey]] = field(default_factory=dict)
    """Namespaces and CustomResourceDefinitions that go with a node, and all that is in them."""
    deletes_foreign: frozenset[str] = frozenset()
    """Nodes that may be removed although foreign objects are destroyed with them."""

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
        node, started = self._context.nodes[step.name], self._context.now()
        removal = _NodeRemoval(self._context, node, self._node_keys, emit, started)
        decision = await removal.run()
        if isinstance(decision, Failed):
            self.diagnostics[step.name] = removal.refusal_lines or await self._explain(removal.remaining)
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
    started: datetime
    resources: frozenset[ResourceKey] = frozenset()
    """Objects that must be gone with the Application."""
    remaining: tuple[ResourceKey, ...] = ()
    """Objects that still exist."""
    present: tuple[ObservedObject, ...] = ()
    """Objects that were still there at the last look after the Application was gone."""
    is_application_gone: bool = False
    """The Application is gone; objects it managed may still exist."""
    unreadable: tuple[Unreadable, ...] = ()
    """Objects of which it is unknown whether they still exist."""
    refusal_lines: tuple[str, ...] = ()
    """Why the node is not removed at all."""
    requested_uids: frozenset[str] = frozenset()
    """UIDs whose deletion was requested; the server keeps the request, so it is never repeated."""
    last_wait: tuple[str, str] = ("", "")

    async def run(self) -> Open | Failed:
        key = self.context.object_key(self.node.name)
        assert key is not None
        with self.context.applications.watch(key) as watch:
            detached = self.context.detached_applications.get(key)
            application = watch.current or detached or self.context.known_applications.get(key)
            self.resources = self._managed_resources(application)
            history = gates.start_history(watch.state, self.context.now())
            while True:
                obstacle = await self._request_deletion(watch)
                if isinstance(obstacle, Failed):
                    return obstacle
                if obstacle is not None:
                    self._report_wait(obstacle)
                    await watch.wait_for_change()
                    history = gates.start_history(watch.state, self.context.now())
                    continue
                history = gates.extend_history(history, await self._current_state(watch), self.context.now())
                if any(each.is_permanent for each in self.unreadable):
                    return self._unreadable_failure()
                decision = gates.evaluate_absence(history, self.node.timing.health, self.context.now())
                if isinstance(decision, Open):
                    return self._with_verification(decision, application)
                if isinstance(decision, Failed):
                    return replace(decision, detail=self._describe(decision.detail), is_final=True)
                self._report_wait(decision)
                await watch.wait_for_change()

    def _managed_resources(self, application: Application | None) -> frozenset[ResourceKey]:
        """Objects that must be deleted with the Application, or that it left behind.

        Excludes other nodes, which have their own steps, and CustomResourceDefinitions, which Argo CD does not delete.
        """
        if application is None:
            return frozenset(self.context.left_behind.get(self.node.name, ()))
        if application.state.is_remote:
            return frozenset()
        members = application_subtree(application, self.context.applications.view, self.node_keys)
        members = [member for member in members if not member.state.is_remote]
        keys = frozenset().union(*(managed_resource_keys(member) for member in members))
        keys -= {target_namespace_key(member) for member in members if creates_namespace(member)}
        return frozenset(item for item in keys if not item.is_crd and not self._is_node(item))

    async def _check_removable(self) -> Failed | Wait | None:
        """Refuse, before something is deleted, what could not be proven gone or would destroy foreign objects.

        Volumes are retained as of now. `Wait` if only transient errors were seen, for up to the node's health timeout.
        """
        groups = {item.group for item in self.resources}
        if any(each.is_permanent and each.group in groups for each in self.context.unreadable):
            self.unreadable = (await self.context.objects.find_present(self.resources)).unreadable
            if any(each.is_permanent for each in self.unreadable):
                return self._unreadable_failure()
        may_wait = self.context.now() - self.started < self.node.timing.health
        try:
            await self.context.objects.protect_volumes()
        except KubeError as error:
            detail = f"the volumes to retain are not known: {error.what}"
            if may_wait and isinstance(error, TRANSIENT_ERRORS):
                return Wait(Reason.UNREADABLE, detail)
            raise VolumesUnknown(detail, where=error.where) from None
        known = self.context.containers.get(self.node.name, frozenset())
        foreign = await self._find_foreign(known | {item for item in self.resources if item.is_container})
        if not foreign:
            return None
        if foreign.may_change and may_wait:
            return Wait(Reason.UNREADABLE, foreign.summary)
        self.refusal_lines = foreign.lines()
        return Failed(Reason.FOREIGN_OBJECTS, f"its removal would destroy {foreign.summary}", is_final=True)

    async def _find_foreign(self, containers: frozenset[ResourceKey]) -> ForeignObjects:
        if not containers or self.node.name in self.context.deletes_foreign:
            return ForeignObjects()
        return await self.context.objects.find_foreign(containers)

    def _unreadable_failure(self) -> Failed:
        names = ", ".join(each.what for each in self.unreadable[:MAX_NAMED_UNREADABLE])
        detail = f"whether its objects are gone cannot be read: {names}: {self.unreadable[0].error}"
        return Failed(Reason.UNREADABLE, detail, is_final=True)

    def _is_node(self, key: ResourceKey) -> bool:
        return _is_application(key) and (key.namespace, key.name) in self.node_keys

    async def _request_deletion(self, watch: ApplicationWatch) -> Failed | Wait | None:
        """Request the deletion, unless that is already done; a look at what it would destroy precedes each attempt."""
        application = watch.current
        try:
            if application is None:
                orphans = self._orphans_to_delete()
                if orphans and (obstacle := await self._check_removable()):
                    return obstacle
                await self._delete_orphans(orphans)
            elif not application.metadata.deletion_timestamp and application.metadata.uid not in self.requested_uids:
                self.resources |= self._managed_resources(application)
                if obstacle := await self._check_removable():
                    return obstacle
                await self._delete_application(application)
        except TRANSIENT_ERRORS:
            return None  # the next iteration reads the result
        except KubeError as error:
            self.remaining = tuple(sorted(self.resources))
            reason = Reason.RIGHT_MISSING if isinstance(error, NotPermitted) else Reason.PRESENT
            return Failed(reason, f"its deletion was refused: {error.what}", is_final=True)
        return None

    async def _delete_application(self, application: Application) -> None:
        for member in application_subtree(application, self.context.applications.view, self.node_keys):
            if member is not application:
                await self.context.writer.add_cascade_finalizer(member)
        if application.state.operation_requested:
            application = await self.context.writer.end_operation(application)  # otherwise Argo CD waits for it
        await self.context.writer.delete_application(application)
        self.requested_uids |= {application.metadata.uid}

    def _orphans_to_delete(self) -> list[ObservedObject]:
        """The objects of an Application that was deleted without cascade, by us or by another client.

        In the second case only those that carry its tracking mark.
        """
        is_detached = self.context.object_key(self.node.name) in self.context.detached_applications
        by_label = self.context.tracks_by_label
        return [
            orphan
            for orphan in self.present
            if not orphan.is_deleting
            and orphan.uid not in self.requested_uids
            and (is_detached or orphan.instance(by_label=by_label))
        ]

    async def _delete_orphans(self, orphans: Collection[ObservedObject]) -> None:
        for orphan in orphans:
            member = self.context.applications.view.get((orphan.key.namespace, orphan.key.name))
            if member and _is_application(orphan.key):
                await self.context.writer.delete_application(member)
            else:
                await self.context.objects.delete(orphan)
            self.requested_uids |= {orphan.uid}

    async def _find_present(self) -> PresentObjects:
        """The objects that exist, without those tracked by another Application or excluded from deletion."""
        key = self.context.object_key(self.node.name)
        assert key is not None
        instances = {instance_name(key, self.context.argocd_namespace), ""}
        instances |= {
            instance_name((item.namespace, item.name), self.context.argocd_namespace)
            for item in self.resources
            if _is_application(item)
        }
        present = await self.context.objects.find_present(self.resources)
        by_label = self.context.tracks_by_label
        owned = (each for each in present.objects if each.instance(by_label=by_label) in instances and not each.is_kept)
        return replace(present, objects=tuple(owned))

    async def _current_state(self, watch: ApplicationWatch) -> NodeState | None:
        """State of the Application or, once that is gone, of its remaining objects; `None` if nothing is left."""
        if watch.current is not None:
            self.remaining = (*sorted(self.resources), application_resource_key(object_key(watch.current)))
            return watch.current.state
        if not self.resources:
            return None
        try:
            present = await self._find_present()
        except TRANSIENT_ERRORS:
            return ResourceState(Health.UNKNOWN, "the server does not respond", is_deleting=True)
        self.is_application_gone = True
        self.present, self.unreadable = present.objects, present.unreadable
        self.remaining = tuple(found.key for found in present.objects)
        if not present.objects and not present.unreadable:
            return None
        is_deleting = all(found.is_deleting for found in present.objects)
        return ResourceState(Health.PROGRESSING, summarize_keys(self.remaining), is_deleting=is_deleting)

    def _with_verification(self, decision: Open, application: Application | None) -> Open:
        """Record that the removal is unverified if the objects are in another cluster."""
        is_remote = application is not None and application.state.is_remote
        return Open(replace(decision.evidence, is_directly_verified=not is_remote))

    def _describe(self, detail: str) -> str:
        if not self.is_application_gone:
            return detail
        if not self.remaining:
            return f"{self.unreadable[0]}: {detail}" if self.unreadable else detail
        return f"{summarize_keys(self.remaining)}: {detail}"

    def _report_wait(self, wait: Wait) -> None:
        problem = self.context.applications.connection_problem
        description = f"no news from the server: {problem}" if problem else self._describe(wait.detail)
        if (reason_and_detail := (str(wait.reason), description)) != self.last_wait:
            self.last_wait = reason_and_detail
            self.emit(NodeWaiting(self.node.name, *reason_and_detail))


def _is_application(key: ResourceKey) -> bool:
    return (key.group, key.kind) == (APPLICATIONS.group, APPLICATIONS.kind)
