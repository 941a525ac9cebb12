"""The metadata of every object of a cluster, or of chosen objects of any kind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from windlass.kube.api_errors import ApiError, NotFound
from windlass.kube.client.objects import ObjectMeta, TypedObject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Ref, Resource

TRANSIENT_KINDS = frozenset({"Event", "ComponentStatus"})  # transient or synthetic
METRICS_GROUPS = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})  # not stored


class PartialObjectMetadata(TypedObject, frozen=True, gc=False):
    """Any object, read only for its metadata."""


class ListedObject(NamedTuple):
    resource: Resource
    metadata: ObjectMeta


@dataclass(frozen=True, slots=True)
class InventoryListing:
    objects: tuple[ListedObject, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Collections and groups that could not be listed."""


@dataclass(frozen=True, slots=True)
class ClusterInventory:
    reader: KubeReader
    discovery: Discovery

    async def list_all(self) -> InventoryListing:
        """List every object of every kind that can be listed."""
        kinds: dict[tuple[str, str], Resource] = {}
        for resource in self.discovery.resources:
            is_stored = resource.kind not in TRANSIENT_KINDS and resource.group not in METRICS_GROUPS
            if is_stored and "list" in resource.verbs:
                kinds.setdefault((resource.group, resource.plural), resource)
        listing = await self.list_collections(resource.everywhere for resource in kinds.values())
        return InventoryListing(listing.objects, (*listing.unreadable, *self.discovery.unavailable))

    async def list_collections(self, refs: Iterable[Ref]) -> InventoryListing:
        async with asyncio.TaskGroup() as tasks:
            reads = [(ref, tasks.create_task(self._list_metadata(ref), name=f"list {ref}")) for ref in refs]
        results = [(ref, task.result()) for ref, task in reads]
        objects = [each for _, listed in results for each in listed or ()]
        return InventoryListing(tuple(objects), tuple(str(ref) for ref, listed in results if listed is None))

    def is_unavailable(self, group: str) -> bool:
        """Whether the API server of this group does not respond, so that its objects are unknown."""
        return any(version.rpartition("/")[0] == group for version in self.discovery.unavailable)

    async def _list_metadata(self, ref: Ref) -> list[ListedObject] | None:
        """`None` if the list is refused or fails. A kind that is no longer served has no objects."""
        try:
            listing = await self.reader.list_metadata(ref, PartialObjectMetadata)
        except NotFound:
            return []
        except ApiError:
            return None
        return [ListedObject(ref.resource, item.metadata) for item in listing.items]
