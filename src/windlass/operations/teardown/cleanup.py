"""After the Applications are deleted: delete CRDs and namespaces that no cascade deletes and nothing uses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.resource_tracking import summarize_keys
from windlass.core.platform.teardown import inventory
from windlass.kube.api_errors import KubeError
from windlass.operations.observation import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.core.platform.teardown.inventory import ObservedObject, PresentObjects, ResourceKey
    from windlass.operations.teardown.orphans import OrphanFinder, OrphanReport

DELETION_TIMEOUT = 120.0  # seconds for objects whose deletion is in progress


@dataclass(frozen=True, slots=True)
class Cleanup:
    finder: OrphanFinder
    writer: ApplicationWriter
    _retained: list[str] = field(default_factory=list)
    _requested: set[ResourceKey] = field(default_factory=set)
    _refusals: dict[ResourceKey, str] = field(default_factory=dict)

    async def delete_unused(self, namespaces: Iterable[str]) -> None:
        """Delete CRDs of kinds without objects, then those of these namespaces that are empty."""
        listed = await self._wait_until_settled()
        for found in inventory.unused_crds(listed.objects, self.finder.left_behind(listed)):
            if not found.is_kept:
                await self._delete(found)
        await self._wait_until_gone()
        listed = await self.finder.objects.list_all() if self._requested else listed
        await self._delete_empty_namespaces(listed, namespaces)
        await self._wait_until_gone()

    async def find_orphans(self) -> OrphanReport:
        namespaces = [key for key in sorted(self._requested) if key.kind == NAMESPACES.kind]
        report = await self.finder.find_orphans(namespaces, self._refusals)
        return replace(report, retained=(*self._retained, *report.retained))

    async def _wait_until_settled(self) -> PresentObjects:
        """Wait while objects left behind are being deleted, or have lost their owner and await garbage collection."""
        objects = self.finder.objects
        listed = await objects.list_all()
        clock, waited = objects.reader.clock, 0.0
        while waited < DELETION_TIMEOUT and any(map(_is_leaving, self.finder.left_behind(listed))):
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL
            existing = await objects.find_objects({found.key for found in self.finder.left_behind(listed)})
            if not any(map(_is_leaving, existing.objects)):
                listed = await objects.list_all()
        return listed

    async def _delete_empty_namespaces(self, listed: PresentObjects, namespaces: Iterable[str]) -> None:
        existing = {found.key.name: found for found in listed.objects if found.key.kind == NAMESPACES.kind}
        for name in namespaces:
            if name not in existing:
                continue
            if contents := inventory.namespace_contents(listed.objects, name):
                self._retained.append(f"{existing[name].key}, for {summarize_keys(contents)} is in it")
            else:
                await self._delete(existing[name])

    async def _delete(self, found: ObservedObject) -> None:
        ref = self.finder.objects.ref_to(found.key)
        self._requested.add(found.key)
        try:
            if ref is not None:
                await self.writer.delete_object(ref, found.uid)
        except KubeError as error:
            self._refusals[found.key] = error.what

    async def _wait_until_gone(self) -> None:
        clock, waited = self.finder.objects.reader.clock, 0.0
        while waited < DELETION_TIMEOUT and await self.finder.find_present(self._requested - self._refusals.keys()):
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL


def _is_leaving(found: ObservedObject) -> bool:
    return found.is_deleting or bool(found.owner_uids)
