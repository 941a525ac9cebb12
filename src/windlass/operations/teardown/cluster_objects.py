"""Lists of all objects of a cluster, or of some objects of any kind: only keys, owners and tracking metadata."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd.removal_step import PresentObjects
from windlass.argo.cd.resource_tracking import observed_object
from windlass.kube.api_errors import ApiError, NotFound
from windlass.kube.client.objects import TypedObject

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.core.platform.teardown.inventory import ObservedObject, ResourceKey
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Ref, Resource

TRANSIENT_KINDS = frozenset({"Event", "ComponentStatus"})  # transient or synthetic
METRICS_GROUPS = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})  # not stored


class PartialObjectMetadata(TypedObject, frozen=True, gc=False):
    """Any object, read only for its metadata."""


@dataclass(frozen=True, slots=True)
class ClusterInventory:
    reader: KubeReader
    discovery: Discovery

    async def list_all(self) -> PresentObjects:
        """List every object of every kind that can be listed."""
        kinds: dict[tuple[str, str], Resource] = {}
        for resource in self.discovery.resources:
            if (
                "list" in resource.verbs
                and resource.kind not in TRANSIENT_KINDS
                and resource.group not in METRICS_GROUPS
            ):
                kinds.setdefault((resource.group, resource.plural), resource)
        listed = await self._list_refs([resource.everywhere for resource in kinds.values()])
        return PresentObjects(listed.objects, (*listed.unreadable, *self.discovery.unavailable))

    async def find_objects(self, keys: Collection[ResourceKey]) -> PresentObjects:
        """Return those of these objects that exist.

        A kind that is not served has no objects, unless its API server does not respond: then they are unreadable.
        """
        requested, unreadable = set(keys), []
        refs: dict[Ref, None] = {}
        for key in sorted(keys):
            resource = self.discovery.find(key.kind, key.group)
            if resource is not None:
                refs[resource.in_namespace(key.namespace) if resource.namespaced else resource.everywhere] = None
            elif any(version.rpartition("/")[0] == key.group for version in self.discovery.unavailable):
                unreadable.append(str(key))
        listed = await self._list_refs(list(refs))
        return PresentObjects(
            tuple(found for found in listed.objects if found.key in requested), (*listed.unreadable, *unreadable)
        )

    def ref_to(self, key: ResourceKey) -> Ref | None:
        resource = self.discovery.find(key.kind, key.group)
        return resource.named(key.name, key.namespace if resource.namespaced else "") if resource else None

    async def _list_refs(self, refs: list[Ref]) -> PresentObjects:
        async with asyncio.TaskGroup() as tasks:
            reads = [(ref, tasks.create_task(self._list_metadata(ref), name=f"list {ref}")) for ref in refs]
        results = [(ref, task.result()) for ref, task in reads]
        objects = [each for _, answer in results for each in answer or ()]
        return PresentObjects(tuple(objects), tuple(str(ref) for ref, answer in results if answer is None))

    async def _list_metadata(self, ref: Ref) -> list[ObservedObject] | None:
        """`None` if the list is refused or fails. A kind that is no longer served has no objects."""
        try:
            listing = await self.reader.list_metadata(ref, PartialObjectMetadata)
        except NotFound:
            return []
        except ApiError:
            return None
        return [observed_object(ref.resource, item.metadata) for item in listing.items]


def unreadable_notice(unreadable: Collection[str]) -> str:
    return f"could not be looked at, so nobody can say what of it is left: {', '.join(sorted(unreadable))}"
