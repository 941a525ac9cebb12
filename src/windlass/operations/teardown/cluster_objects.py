"""The objects of a cluster as a teardown sees them: keys, owners and tracking metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd.resource_tracking import observed_object
from windlass.core.platform.teardown.inventory import PresentObjects
from windlass.kube.inventory import ClusterInventory

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.core.platform.teardown.inventory import ResourceKey
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Ref
    from windlass.kube.inventory import InventoryListing
    from windlass.operations.observation import ObservedCluster


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    inventory: ClusterInventory

    @property
    def reader(self) -> KubeReader:
        return self.inventory.reader

    async def list_all(self) -> PresentObjects:
        """List every object of every kind that can be listed."""
        return _present_objects(await self.inventory.list_all())

    async def find_objects(self, keys: Collection[ResourceKey]) -> PresentObjects:
        """Return those of these objects that exist.

        A kind that is not served has no objects, unless its API server does not respond: then they are unreadable.
        """
        requested, unreadable = set(keys), []
        refs: dict[Ref, None] = {}
        for key in sorted(keys):
            resource = self.inventory.discovery.find(key.kind, key.group)
            if resource is not None:
                refs[resource.in_namespace(key.namespace) if resource.namespaced else resource.everywhere] = None
            elif self.inventory.is_unavailable(key.group):
                unreadable.append(str(key))
        present = _present_objects(await self.inventory.list_collections(refs))
        objects = tuple(found for found in present.objects if found.key in requested)
        return PresentObjects(objects, (*present.unreadable, *unreadable))

    def ref_to(self, key: ResourceKey) -> Ref | None:
        resource = self.inventory.discovery.find(key.kind, key.group)
        return resource.named(key.name, key.namespace if resource.namespaced else "") if resource else None


async def open_cluster_objects(cluster: ObservedCluster) -> ClusterObjects:
    return ClusterObjects(ClusterInventory(cluster.reader, await cluster.served.discovery()))


def unreadable_notice(unreadable: Collection[str]) -> str:
    return f"could not be looked at, so nobody can say what of it is left: {', '.join(sorted(unreadable))}"


def _present_objects(listing: InventoryListing) -> PresentObjects:
    objects = tuple(observed_object(each.resource, each.metadata) for each in listing.objects)
    return PresentObjects(objects, listing.unreadable)
