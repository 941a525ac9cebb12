"""Why objects are not deleted: the finalizers that block them, their controllers, and whether these are alive."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS
from windlass.argo.cd.finalizers import Controller, controller_of
from windlass.kube.api_errors import ApiError, NotFound
from windlass.kube.client.readers import Selection
from windlass.operations.run.run_lock import LEASES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator

    from windlass.core.platform.teardown.inventory import Item
    from windlass.kube.client.objects import Plain
    from windlass.operations.teardown.cluster_objects import Looking

MOST = 10  # objects that are explained; the rest are only counted
CONTROL_PLANE = "kube-system"
SILENT_AFTER = timedelta(minutes=1)


class Explaining:
    def __init__(self, looking: Looking, now: Callable[[], datetime]) -> None:
        self._looking = looking
        self._now = now
        self._alive: dict[str, str] = {}

    async def explain(self, items: Collection[Item]) -> tuple[str, ...]:
        """Lines on those of these objects that still exist, in this order; those not being deleted come last."""
        there = {found.item: found for found in (await self._looking.objects(items)).found}
        left = sorted((item for item in items if item in there), key=lambda item: not there[item].is_deleting)
        lines = []
        for item in left[:MOST]:
            found = await self._read(item)
            lines += [line async for line in self._held(item, found)] if found else []
        if len(left) > MOST:
            lines.append(f"and {len(left) - MOST} more objects")
        return tuple(lines)

    async def _read(self, item: Item) -> Plain | None:
        ref = self._looking.ref_to(item)
        try:
            return await self._looking.reader.get(ref) if ref else None
        except ApiError:
            return None

    async def _held(self, item: Item, found: Plain) -> AsyncIterator[str]:
        meta = found["metadata"]
        if not meta.get("deletionTimestamp"):
            yield f"{item}: nobody has asked for its deletion"
        for finalizer in meta.get("finalizers") or ():
            yield f"{item}: held by the finalizer {finalizer}; {await self._controller(finalizer)}"
        for line in _complaints(item, found):
            yield f"{item}: {line}"

    async def _controller(self, finalizer: str) -> str:
        controller = controller_of(finalizer)
        if controller is None:
            return "the controller that should remove it is not known"
        if finalizer not in self._alive:
            self._alive[finalizer] = await self._life(controller)
        does = f" ({controller.does})" if controller.does else ""
        return f"{controller.name} should remove it{does}: {self._alive[finalizer]}"

    async def _life(self, controller: Controller) -> str:
        try:
            return await (self._workload(controller) if controller.kind else self._lease(controller))
        except ApiError as error:
            return f"whether it lives could not be read: {error.what}"

    async def _workload(self, controller: Controller) -> str:
        resource = self._looking.discovery.find(controller.kind, "apps")
        if resource is None:
            return "nobody can say whether it lives"
        named = Selection(fields=f"metadata.name={controller.name}")
        found = (await self._looking.reader.list(resource.everywhere, select=named)).items
        if not found:
            return f"there is no {controller.kind} of that name"
        where = f"{controller.kind} {found[0]['metadata']['namespace']}/{controller.name}"
        ready = int((found[0].get("status") or {}).get("readyReplicas") or 0)
        wanted = int((found[0].get("spec") or {}).get("replicas") or 0)
        return f"{where} is alive, {ready} of {wanted} ready" if ready else f"{where} is not alive, 0 of {wanted} ready"

    async def _lease(self, controller: Controller) -> str:
        """The control plane rarely shows as a workload, but it renews its Lease while it is alive."""
        try:
            lease = await self._looking.reader.get(LEASES.named(controller.name, CONTROL_PLANE))
        except NotFound:
            return "nobody can say whether it lives"
        renewed = (lease.get("spec") or {}).get("renewTime")
        if not renewed:
            return "nobody can say whether it lives"
        silent = self._now() - datetime.fromisoformat(renewed)
        seconds = round(silent.total_seconds())
        return "it is alive" if silent < SILENT_AFTER else f"it is not alive, its last sign was {seconds} s ago"


def _complaints(item: Item, found: Plain) -> Iterator[str]:
    """What the conditions of the object say about its deletion."""
    is_application = (item.group, item.kind) == (APPLICATIONS.group, APPLICATIONS.kind)
    for row in (found.get("status") or {}).get("conditions") or ():
        told = str(row.get("type") or "")
        is_about = (
            told == "DeletionError" if is_application else item.kind == "Namespace" and row.get("status") == "True"
        )
        if is_about:
            yield f"{told}: {row.get('message') or row.get('reason') or ''}"
