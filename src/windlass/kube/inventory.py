"""The metadata of every object of a cluster, or of chosen objects of any kind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError, NotFound, Unauthorized, Unreachable
from windlass.kube.client.objects import ObjectMeta, TypedObject
from windlass.kube.client.resources import Ref

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Resource

TRANSIENT_KINDS = frozenset({("", "Event"), ("events.k8s.io", "Event"), ("", "ComponentStatus")})
"""(Group, kind) of what is transient or synthetic; a custom resource may have the same kind in another group."""
METRICS_GROUPS = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})  # not stored


class PartialObjectMetadata(TypedObject, frozen=True, gc=False):
    """Any object, read only for its metadata."""


class ListedObject(NamedTuple):
    resource: Resource
    metadata: ObjectMeta


class UnlistedCollection(NamedTuple):
    """A collection that could not be listed, so that its objects are unknown."""

    ref: Ref
    error: KubeError

    @property
    def is_permanent(self) -> bool:
        """Listing it again would fail in the same way."""
        return not isinstance(self.error, TRANSIENT_ERRORS)


@dataclass(frozen=True, slots=True)
class InventoryListing:
    objects: tuple[ListedObject, ...] = ()
    unlisted: tuple[UnlistedCollection, ...] = ()
    unserved: tuple[Ref, ...] = ()
    """Collections whose kind is not served in that version: another version may be."""
    unavailable_groups: tuple[str, ...] = ()
    """Group versions whose API server does not respond."""


@dataclass(frozen=True, slots=True)
class ClusterInventory:
    reader: KubeReader
    discovery: Discovery

    async def list_all(self, namespace: str = "") -> InventoryListing:
        """List every object of every kind that can be listed, or those in one namespace."""
        kinds: dict[tuple[str, str], Resource] = {}
        for resource in self.discovery.resources:
            is_transient = (resource.group, resource.kind) in TRANSIENT_KINDS
            is_stored = not is_transient and resource.group not in METRICS_GROUPS
            if is_stored and "list" in resource.verbs and (resource.namespaced or not namespace):
                kinds.setdefault((resource.group, resource.plural), resource)
        listing = await self.list_collections(
            resource.in_namespace(namespace) if namespace else resource.everywhere for resource in kinds.values()
        )
        unavailable = [each for each in self.discovery.unavailable if each.rpartition("/")[0] not in METRICS_GROUPS]
        return replace(listing, unavailable_groups=tuple(unavailable))

    async def list_collections(self, refs: Iterable[Ref]) -> InventoryListing:
        """List these collections. Raises only if the server is unreachable or rejects the credentials."""
        async with asyncio.TaskGroup() as tasks:
            reads = [tasks.create_task(self._list_metadata(ref), name=f"list {ref}") for ref in refs]
        results = [task.result() for task in reads]
        unlisted = [result for result in results if isinstance(result, UnlistedCollection)]
        for collection in unlisted:
            if isinstance(collection.error, Unauthorized | Unreachable):
                raise collection.error
        objects = [each for result in results if isinstance(result, list) for each in result]
        unserved = [result for result in results if isinstance(result, Ref)]
        return InventoryListing(tuple(objects), tuple(unlisted), tuple(unserved))

    def is_unavailable(self, group: str) -> bool:
        """Whether the API server of this group does not respond, so that its objects are unknown."""
        return any(version.rpartition("/")[0] == group for version in self.discovery.unavailable)

    async def _list_metadata(self, ref: Ref) -> list[ListedObject] | UnlistedCollection | Ref:
        """The objects of a collection; the collection itself if it is not served."""
        try:
            listing = await self.reader.list_metadata(ref, PartialObjectMetadata)
        except NotFound:
            return ref
        except KubeError as error:
            return UnlistedCollection(ref, error)
        return [ListedObject(ref.resource, item.metadata) for item in listing.items]
