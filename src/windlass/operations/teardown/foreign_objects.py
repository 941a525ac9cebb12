"""Foreign objects that the removal of an Application would destroy. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.teardown.foreign_objects import ForeignObjects, PlatformObjects, find_foreign_objects
from windlass.operations.teardown.inventory import ARGOCD_CRDS

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.core.platform.teardown.inventory import ObservedObject, ResourceKey
    from windlass.operations.teardown.cluster_objects import ClusterObjects


@dataclass(frozen=True, slots=True)
class ForeignObjectFinder:
    objects: ClusterObjects
    platform: PlatformObjects

    async def find(self, containers: Collection[ResourceKey]) -> ForeignObjects:
        """Look into those of these Namespaces and CustomResourceDefinitions that go with the Applications, as of now.

        Argo CD deletes the Namespaces, and the cleanup deletes the CustomResourceDefinitions.
        """
        present = await self.objects.find_objects(set(containers) - ARGOCD_CRDS)
        foreign = ForeignObjects(unreadable=present.unreadable)
        for found in present.objects:
            if self._is_deleted(found):
                contents = await self.objects.list_contents(found.key)
                foreign += find_foreign_objects(contents, self.platform)
        return foreign

    def _is_deleted(self, container: ObservedObject) -> bool:
        """Not if its annotations keep it, or another Application has taken it over."""
        applications = self.platform.applications
        instance = container.instance(by_label=applications.tracks_by_label)
        return not container.is_kept and (not instance or instance in applications.instances)
