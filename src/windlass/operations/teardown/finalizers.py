"""Why objects are not deleted: the finalizers that block them, their controllers, and whether these are alive."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS
from windlass.argo.cd.finalizers import FinalizerController, find_controller
from windlass.kube.api_errors import ApiError, NotFound
from windlass.kube.client.readers import Selection
from windlass.kube.client.resources import LEASES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator

    from windlass.core.platform.teardown.inventory import ResourceKey
    from windlass.kube.client.objects import RawObject
    from windlass.operations.teardown.cluster_objects import ClusterObjects

MAX_EXPLAINED_OBJECTS = 10  # objects that are explained; the rest are only counted
CONTROL_PLANE_NAMESPACE = "kube-system"
LEASE_STALE_AFTER = timedelta(minutes=1)


class FinalizerExplainer:
    def __init__(self, objects: ClusterObjects, now: Callable[[], datetime]) -> None:
        self._objects = objects
        self._now = now
        self._liveness_by_finalizer: dict[str, str] = {}

    async def explain(self, keys: Collection[ResourceKey]) -> tuple[str, ...]:
        """Lines on those of these objects that still exist, in this order; those not being deleted come last."""
        existing = {found.key: found for found in (await self._objects.find_objects(keys)).objects}
        remaining = sorted((item for item in keys if item in existing), key=lambda item: not existing[item].is_deleting)
        lines = []
        for item in remaining[:MAX_EXPLAINED_OBJECTS]:
            found = await self._read_object(item)
            lines += [line async for line in self._explain_object(item, found)] if found else []
        if len(remaining) > MAX_EXPLAINED_OBJECTS:
            lines.append(f"and {len(remaining) - MAX_EXPLAINED_OBJECTS} more objects")
        return tuple(lines)

    async def _read_object(self, key: ResourceKey) -> RawObject | None:
        ref = self._objects.ref_to(key)
        try:
            return await self._objects.reader.get(ref) if ref else None
        except ApiError:
            return None

    async def _explain_object(self, key: ResourceKey, obj: RawObject) -> AsyncIterator[str]:
        meta = obj["metadata"]
        if not meta.get("deletionTimestamp"):
            yield f"{key}: no client has requested its deletion"
        for finalizer in meta.get("finalizers") or ():
            yield f"{key}: held by the finalizer {finalizer}; {await self._describe_controller(finalizer)}"
        for line in _deletion_conditions(key, obj):
            yield f"{key}: {line}"

    async def _describe_controller(self, finalizer: str) -> str:
        controller = find_controller(finalizer)
        if controller is None:
            return "the controller that should remove it is not known"
        if finalizer not in self._liveness_by_finalizer:
            self._liveness_by_finalizer[finalizer] = await self._controller_liveness(controller)
        action = f" ({controller.action})" if controller.action else ""
        return f"{controller.name} should remove it{action}: {self._liveness_by_finalizer[finalizer]}"

    async def _controller_liveness(self, controller: FinalizerController) -> str:
        try:
            return await (self._workload_liveness(controller) if controller.kind else self._lease_liveness(controller))
        except ApiError as error:
            return f"its status could not be read: {error.what}"

    async def _workload_liveness(self, controller: FinalizerController) -> str:
        resource = self._objects.inventory.discovery.find(controller.kind, "apps")
        if resource is None:
            return "its status is not known"
        by_name = Selection(fields=f"metadata.name={controller.name}")
        workloads = (await self._objects.reader.list(resource.everywhere, select=by_name)).items
        if not workloads:
            return f"there is no {controller.kind} of that name"
        workload = f"{controller.kind} {workloads[0]['metadata']['namespace']}/{controller.name}"
        ready = int((workloads[0].get("status") or {}).get("readyReplicas") or 0)
        desired = int((workloads[0].get("spec") or {}).get("replicas") or 0)
        return (
            f"{workload} runs, {ready} of {desired} ready"
            if ready
            else f"{workload} does not run, 0 of {desired} ready"
        )

    async def _lease_liveness(self, controller: FinalizerController) -> str:
        """The control plane rarely shows as a workload, but it renews its Lease while it is alive."""
        try:
            lease = await self._objects.reader.get(LEASES.named(controller.name, CONTROL_PLANE_NAMESPACE))
        except NotFound:
            return "its status is not known"
        renew_time = (lease.get("spec") or {}).get("renewTime")
        if not renew_time:
            return "its status is not known"
        age = self._now() - datetime.fromisoformat(renew_time)
        seconds = round(age.total_seconds())
        return "it runs" if age < LEASE_STALE_AFTER else f"it does not run; it last renewed its Lease {seconds} s ago"


def _deletion_conditions(key: ResourceKey, obj: RawObject) -> Iterator[str]:
    """What the conditions of the object say about its deletion."""
    is_application = (key.group, key.kind) == (APPLICATIONS.group, APPLICATIONS.kind)
    for condition in (obj.get("status") or {}).get("conditions") or ():
        condition_type = str(condition.get("type") or "")
        is_relevant = (
            condition_type == "DeletionError"
            if is_application
            else key.kind == "Namespace" and condition.get("status") == "True"
        )
        if is_relevant:
            yield f"{condition_type}: {condition.get('message') or condition.get('reason') or ''}"
