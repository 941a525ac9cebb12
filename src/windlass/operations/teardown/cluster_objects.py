"""The objects of a cluster as a teardown sees them: keys, owners and tracking metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.resource_tracking import observed_object
from windlass.core.platform.teardown.inventory import CRD_GROUP_KIND, PresentObjects, ResourceKey, Unreadable
from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError, NotFound, missing_right
from windlass.kube.client.objects import TypedObject
from windlass.kube.client.resources import Resource
from windlass.kube.inventory import ClusterInventory, PartialObjectMetadata

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.core.platform.teardown.inventory import ObservedObject
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Ref
    from windlass.kube.inventory import InventoryListing
    from windlass.operations.observation import ObservedCluster

CRDS = Resource(CRD_GROUP_KIND[0], "v1", "customresourcedefinitions", CRD_GROUP_KIND[1], namespaced=False)


class _CrdNames(msgspec.Struct, frozen=True, gc=False):
    plural: str
    kind: str


class _CrdVersion(msgspec.Struct, frozen=True, gc=False):
    name: str
    served: bool = False


class _CrdSpec(msgspec.Struct, frozen=True, gc=False):
    group: str
    scope: str
    names: _CrdNames
    versions: tuple[_CrdVersion, ...] = ()


class _CustomResourceDefinition(TypedObject, frozen=True, gc=False):
    spec: _CrdSpec


@dataclass(slots=True)
class ClusterObjects:
    inventory: ClusterInventory
    """With the kinds that were served when they were discovered last."""

    @property
    def reader(self) -> KubeReader:
        return self.inventory.reader

    async def list_all(self) -> PresentObjects:
        """List every object of every kind that can be listed, as of now: kinds are discovered anew."""
        await self._discover()
        return _present_objects(await self.inventory.list_all())

    async def list_contents(self, container: ResourceKey) -> PresentObjects:
        """List what goes with this Namespace or CustomResourceDefinition, as of now: kinds are discovered anew."""
        if container.is_crd:
            return await self._list_instances(container.name)
        await self._discover()
        return _present_objects(await self.inventory.list_all(container.name))

    async def _discover(self) -> None:
        self.inventory = ClusterInventory(self.reader, await self.reader.discover())

    async def _list_instances(self, crd_name: str) -> PresentObjects:
        """List the objects of this kind. Without a served version they cannot be listed."""
        try:
            spec = (await self.reader.get(CRDS.named(crd_name), _CustomResourceDefinition)).spec
        except NotFound:
            return PresentObjects()
        except KubeError as error:
            return PresentObjects(unreadable=(_unreadable_kind(crd_name, error.what, _is_permanent(error)),))
        served = [version.name for version in spec.versions if version.served]
        if not served:
            return PresentObjects(unreadable=(_unreadable_kind(crd_name, "no version of it is served", True),))
        is_namespaced = spec.scope == "Namespaced"
        resource = Resource(spec.group, served[0], spec.names.plural, spec.names.kind, namespaced=is_namespaced)
        return _present_objects(await self.inventory.list_collections([resource.everywhere]))

    async def find_objects(self, keys: Collection[ResourceKey]) -> PresentObjects:
        """Return those of these objects that exist.

        A kind that is not served has no objects, unless its API server does not respond: then they are unreadable.
        Objects whose collection cannot be listed are read one by one.
        """
        if any(self.inventory.discovery.find(key.kind, key.group) is None for key in keys):
            await self._discover()  # it may have been installed since
        unreadable: list[Unreadable] = []
        refs: dict[Ref, list[ResourceKey]] = {}
        for key in sorted(keys):
            resource = self.inventory.discovery.find(key.kind, key.group)
            if resource is not None:
                collection = resource.in_namespace(key.namespace) if resource.namespaced else resource.everywhere
                refs.setdefault(collection, []).append(key)
            elif self.inventory.is_unavailable(key.group):
                unreadable.append(Unreadable(str(key), "its API server does not respond", key.group))
        listing = await self.inventory.list_collections(refs)
        for ref in await self._served_otherwise(listing.unserved):
            detail = f"{ref.resource.api_version} is not served any more"
            unreadable += [Unreadable(str(key), detail, key.group, str(ref.resource)) for key in refs[ref]]
        requested = set(keys)
        objects = [found for found in _present_objects(listing).objects if found.key in requested]
        for unlisted in listing.unlisted:
            for key in refs[unlisted.ref]:
                found = await self._read_object(unlisted.ref.resource, key)
                if isinstance(found, Unreadable):
                    unreadable.append(found)
                elif found is not None:
                    objects.append(found)
        return PresentObjects(tuple(objects), tuple(unreadable))

    async def _served_otherwise(self, unserved: Collection[Ref]) -> list[Ref]:
        """Those of these collections whose kind is served in another version now: the next look lists that one."""
        if unserved:
            await self._discover()
        return [each for each in unserved if self.inventory.discovery.find(each.resource.kind, each.resource.group)]

    async def _read_object(self, resource: Resource, key: ResourceKey) -> ObservedObject | Unreadable | None:
        if resource.namespaced and not key.namespace:
            return Unreadable(str(key), "its status names no namespace", key.group, str(resource))
        try:
            found = await self.reader.get(
                resource.named(key.name, key.namespace if resource.namespaced else ""), PartialObjectMetadata
            )
        except NotFound:
            return None
        except KubeError as error:
            return Unreadable(str(key), error.what, key.group, str(resource), is_permanent=_is_permanent(error))
        return observed_object(resource, found.metadata)

    def ref_to(self, key: ResourceKey) -> Ref | None:
        resource = self.inventory.discovery.find(key.kind, key.group)
        return resource.named(key.name, key.namespace if resource.namespaced else "") if resource else None


async def open_cluster_objects(cluster: ObservedCluster) -> ClusterObjects:
    return ClusterObjects(ClusterInventory(cluster.reader, await cluster.served.discovery()))


def unreadable_notice(unreadable: Collection[Unreadable]) -> str:
    names = sorted({each.what for each in unreadable})
    return f"could not be listed, so it is unknown what of it is left: {', '.join(names)}"


def _present_objects(listing: InventoryListing) -> PresentObjects:
    objects = tuple(observed_object(each.resource, each.metadata) for each in listing.objects)
    unlisted = tuple(
        Unreadable(
            str(each.ref),
            each.error.what,
            each.ref.resource.group,
            str(each.ref.resource),
            each.is_permanent,
            missing_right(each.error),
        )
        for each in listing.unlisted
    )
    unavailable = tuple(
        Unreadable(each, "its API server does not respond", each.rpartition("/")[0])
        for each in listing.unavailable_groups
    )
    return PresentObjects(objects, (*unlisted, *unavailable))


def _unreadable_kind(crd_name: str, error: str, is_permanent: bool) -> Unreadable:
    return Unreadable(crd_name, error, crd_name.partition(".")[2], crd_name, is_permanent=is_permanent)


def _is_permanent(error: KubeError) -> bool:
    return not isinstance(error, TRANSIENT_ERRORS)
