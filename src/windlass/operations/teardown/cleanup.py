"""After the Applications are deleted: delete what no cascade deletes and nothing uses, and report the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.resource_tracking import summarize_keys
from windlass.core.platform.teardown import inventory
from windlass.kube.api_errors import KubeError
from windlass.operations.observation import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.argo.cd.removal_step import PresentObjects
    from windlass.core.platform.teardown.inventory import ObservedObject, RemovedApplications, ResourceKey
    from windlass.operations.teardown.cluster_objects import ClusterInventory
    from windlass.operations.teardown.finalizers import FinalizerExplainer

DELETION_TIMEOUT = 120.0  # seconds for objects whose deletion is in progress


@dataclass(slots=True)
class Cleanup:
    cluster: ClusterInventory
    writer: ApplicationWriter
    explainer: FinalizerExplainer
    removed_applications: RemovedApplications
    owned_uids: frozenset[str]
    """UIDs of the objects that the deleted Applications owned before the teardown."""
    retained: list[str] = field(default_factory=list)
    unreadable: tuple[str, ...] = ()
    _requested: set[ResourceKey] = field(default_factory=set)
    _refusals: dict[ResourceKey, str] = field(default_factory=dict)

    async def delete_unused(self, namespaces: Iterable[str]) -> None:
        """Delete CRDs of kinds without objects, then those of these namespaces that are empty."""
        listed = await self._wait_until_settled()
        for found in inventory.unused_crds(listed.objects, self._left_behind(listed)):
            if not found.is_kept:
                await self._delete(found)
        await self._wait_until_gone()
        await self._delete_empty_namespaces(await self.cluster.list_all() if self._requested else listed, namespaces)
        await self._wait_until_gone()

    async def _wait_until_settled(self) -> PresentObjects:
        """Wait while objects left behind are being deleted, or have lost their owner and await garbage collection."""
        listed = await self.cluster.list_all()
        clock, waited = self.cluster.reader.clock, 0.0
        while waited < DELETION_TIMEOUT and any(
            found.is_deleting or found.owner_uids for found in self._left_behind(listed)
        ):
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL
            existing = await self.cluster.find_objects({found.key for found in self._left_behind(listed)})
            if not any(found.is_deleting or found.owner_uids for found in existing.objects):
                listed = await self.cluster.list_all()
        return listed

    async def _delete_empty_namespaces(self, listed: PresentObjects, namespaces: Iterable[str]) -> None:
        existing = {found.key.name: found for found in listed.objects if found.key.kind == "Namespace"}
        for name in namespaces:
            if name not in existing:
                continue
            if contents := inventory.namespace_contents(listed.objects, name):
                self.retained.append(f"{existing[name].key}, for {summarize_keys(contents)} is in it")
            else:
                await self._delete(existing[name])

    async def _delete(self, obj: ObservedObject) -> None:
        ref = self.cluster.ref_to(obj.key)
        self._requested.add(obj.key)
        try:
            if ref is not None:
                await self.writer.delete_object(ref, obj.uid)
        except KubeError as error:
            self._refusals[obj.key] = error.what

    async def _wait_until_gone(self) -> None:
        clock, waited = self.cluster.reader.clock, 0.0
        while waited < DELETION_TIMEOUT and (await self._find_present(self._requested - self._refusals.keys())):
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL

    async def _find_present(self, keys: Collection[ResourceKey]) -> tuple[ObservedObject, ...]:
        return (await self.cluster.find_objects(keys)).objects if keys else ()

    async def find_orphans(self) -> tuple[str, ...]:
        """Describe what is still there and what blocks its deletion; objects marked to be kept count as retained."""
        listed = await self.cluster.list_all()
        self.unreadable = listed.unreadable
        lines = []
        for found in self._left_behind(listed):
            if found.is_kept:
                self.retained.append(f"{found.key}: it says itself that it stays")
            else:
                lines += await self._describe_orphan(found)
        for found in await self._find_present(self._requested):
            if found.key.kind == NAMESPACES.kind:
                lines += await self._describe_orphan(found)
        return tuple(lines)

    def _left_behind(self, listed: PresentObjects) -> tuple[ObservedObject, ...]:
        return inventory.remaining_objects(listed.objects, self.owned_uids, self.removed_applications)

    async def _describe_orphan(self, obj: ObservedObject) -> list[str]:
        if refusal := self._refusals.get(obj.key):
            return [f"{obj.key}: its deletion was refused: {refusal}"]
        if obj.is_deleting:
            return list(await self.explainer.explain([obj.key])) or [str(obj.key)]
        if obj.key.is_crd:
            return [f"{obj.key}: there are objects of its kind"]
        return [str(obj.key)]
