"""Objects that deleted Applications left behind, and why they are still there. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.teardown import inventory

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windlass.core.platform.teardown.inventory import (
        ObservedObject,
        PresentObjects,
        RemovedApplications,
        ResourceKey,
        Unreadable,
    )
    from windlass.operations.teardown.cluster_objects import ClusterObjects
    from windlass.operations.teardown.finalizers import FinalizerExplainer


@dataclass(frozen=True, slots=True)
class OrphanReport:
    retained: tuple[str, ...]
    """Objects whose annotations exclude them from deletion."""
    orphans: tuple[str, ...]
    unreadable: tuple[Unreadable, ...]
    """What could not be listed, so that it is unknown what of it is left."""


@dataclass(frozen=True, slots=True)
class OrphanFinder:
    objects: ClusterObjects
    explainer: FinalizerExplainer
    removed_applications: RemovedApplications
    owned_uids: frozenset[str]
    """UIDs of the objects that the deleted Applications owned before the teardown."""

    def left_behind(self, listed: PresentObjects) -> tuple[ObservedObject, ...]:
        return inventory.remaining_objects(listed.objects, self.owned_uids, self.removed_applications)

    async def find_orphans(
        self, namespaces: Collection[ResourceKey] = (), refusals: Mapping[ResourceKey, str] | None = None
    ) -> OrphanReport:
        """Describe what is still there and what blocks its deletion; objects marked to be kept count as retained.

        `namespaces`: those that should be gone. `refusals`: why an object was not deleted.
        """
        listed = await self.objects.list_all()
        left = self.left_behind(listed)
        lines: list[str] = []
        remaining_namespaces = (await self.objects.find_objects(namespaces)).objects
        for found in (*(each for each in left if not each.is_kept), *remaining_namespaces):
            lines += await self._describe(found, (refusals or {}).get(found.key, ""))
        retained = tuple(f"{each.key}: its own annotations keep it" for each in left if each.is_kept)
        return OrphanReport(retained, tuple(lines), listed.unreadable)

    async def _describe(self, orphan: ObservedObject, refusal: str) -> list[str]:
        if refusal:
            return [f"{orphan.key}: {refusal}"]
        if orphan.is_deleting:
            return list(await self.explainer.explain([orphan.key])) or [str(orphan.key)]
        if orphan.key.is_crd:
            return [f"{orphan.key}: there are objects of its kind"]
        return [str(orphan.key)]
