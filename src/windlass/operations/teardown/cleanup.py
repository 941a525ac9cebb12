"""After the Applications are deleted: delete CRDs and namespaces that no cascade deletes and nothing uses.

Each deletion is preceded by its own look at what would go with the object; what could not be listed counts as present.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.resource_tracking import summarize_keys
from windlass.core.platform.teardown import inventory
from windlass.core.platform.teardown.inventory import ResourceKey
from windlass.kube.api_errors import KubeError
from windlass.operations.observation import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.core.platform.teardown.inventory import ObservedObject, PresentObjects
    from windlass.operations.teardown.orphans import OrphanFinder, OrphanReport

DELETION_TIMEOUT = 120.0  # seconds for objects whose deletion is in progress


@dataclass(frozen=True, slots=True)
class Cleanup:
    finder: OrphanFinder
    writer: ApplicationWriter
    crds_with_objects: frozenset[ResourceKey] = frozenset()
    """CustomResourceDefinitions to delete together with all objects of their kind."""
    _retained: list[str] = field(default_factory=list)
    _requested: set[ResourceKey] = field(default_factory=set)
    _refusals: dict[ResourceKey, str] = field(default_factory=dict)
    """Why an object that should be gone was not deleted."""

    async def delete_unused(self, namespaces: Mapping[str, str]) -> None:
        """Delete CRDs of kinds without objects, then those of these namespaces that are empty.

        `namespaces` maps each name to when the oldest Application that deploys to it was created.
        """
        listed = await self._wait_until_settled()
        for found in self.finder.left_behind(listed):
            if found.key.is_crd and not found.is_kept:
                await self._delete_unused_crd(found)
        await self._wait_until_gone()
        keys = {ResourceKey("", NAMESPACES.kind, "", name) for name in namespaces}
        for found in (await self.finder.objects.find_objects(keys)).objects:
            await self._delete_empty_namespace(found, namespaces[found.key.name])
        await self._wait_until_gone()

    async def find_orphans(self) -> OrphanReport:
        keys = {*self._requested, *self._refusals}
        report = await self.finder.find_orphans(sorted(key for key in keys if key.is_namespace), self._refusals)
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

    async def _delete_unused_crd(self, found: ObservedObject) -> None:
        contents = await self.finder.objects.list_contents(found.key)
        if contents.unreadable:
            self._refusals[found.key] = f"kept, because its objects could not be listed: {contents.unreadable[0].error}"
        elif not contents.objects or found.key in self.crds_with_objects:
            await self._delete(found)

    async def _delete_empty_namespace(self, found: ObservedObject, oldest_application: str) -> None:
        if found.created < oldest_application:
            self._retained.append(f"{found.key}: it is older than every Application that deploys to it")
            return
        contents = await self.finder.objects.list_contents(found.key)
        if remaining := inventory.namespace_contents(contents.objects, found.key.name):
            self._retained.append(f"{found.key}: it contains {summarize_keys(remaining)}")
        elif contents.unreadable:
            names = ", ".join(sorted(each.what for each in contents.unreadable))
            self._refusals[found.key] = f"kept, because what is in it could not be listed: {names}"
        else:
            await self._delete(found)

    async def _delete(self, found: ObservedObject) -> None:
        ref = self.finder.objects.ref_to(found.key)
        self._requested.add(found.key)
        try:
            if ref is not None:
                await self.writer.delete_object(ref, found.uid)
        except KubeError as error:
            self._refusals[found.key] = f"its deletion was refused: {error.what}"

    async def _wait_until_gone(self) -> None:
        clock, waited = self.finder.objects.reader.clock, 0.0
        while waited < DELETION_TIMEOUT:
            present = await self.finder.objects.find_objects(self._requested - self._refusals.keys())
            if not present.objects and not present.unreadable:
                return
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL


def _is_leaving(found: ObservedObject) -> bool:
    return found.is_deleting or bool(found.owner_uids)
