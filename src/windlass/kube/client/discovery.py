"""API discovery: aggregated if the server offers it, otherwise one request per group version."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from windlass.kube.api_errors import BadAnswer, KubeError
from windlass.kube.client.resources import Ref, Resource
from windlass.kube.decoding import DecodingError, decode_json
from windlass.kube.transport.calls import Call
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.kube.client.objects import RawObject
    from windlass.kube.transport.calls import CallSender
    from windlass.kube.transport.transports import Response

A = TypeVar("A")
_PATH_PART = re.compile("[A-Za-z0-9][A-Za-z0-9.-]*")

AGGREGATED_MEDIA_TYPE = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT = ",".join([AGGREGATED_MEDIA_TYPE.format("v2"), AGGREGATED_MEDIA_TYPE.format("v2beta1"), "application/json"])


class _ResponseKind(msgspec.Struct, frozen=True):
    kind: str = ""


class _AggregatedResource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str
    response_kind: _ResponseKind = _ResponseKind()
    verbs: frozenset[str] = frozenset()


class _AggregatedVersion(msgspec.Struct):
    version: str
    resources: tuple[_AggregatedResource, ...] = ()
    freshness: str = "Current"


class _GroupMetadata(msgspec.Struct):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _GroupMetadata
    versions: tuple[_AggregatedVersion, ...] = ()


class _AggregatedGroupList(msgspec.Struct):
    items: tuple[_AggregatedGroup, ...] = ()


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _ApiGroup(msgspec.Struct):
    name: str
    versions: tuple[_GroupVersion, ...] = ()


class _ApiGroupList(msgspec.Struct):
    """APIVersions (`/api`) fills `versions`, APIGroupList (`/apis`) fills `groups`."""

    versions: tuple[str, ...] = ()
    groups: tuple[_ApiGroup, ...] = ()


class _ApiResource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()


class _ApiResourceList(msgspec.Struct):
    resources: tuple[_ApiResource, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovery:
    """The resources that an API server serves."""

    resources: tuple[Resource, ...]
    """In the server's order of preference: the first version of a group is the preferred one."""
    unavailable: tuple[str, ...] = ()
    """Group versions that are listed but could not be discovered, such as a broken aggregated API."""

    def find(self, kind: str, group: str = "", version: str = "") -> Resource | None:
        """The resource of a kind, in the preferred version unless `version` is given; `None` if it is not served."""
        for resource in self.resources:
            if (resource.kind, resource.group) == (kind, group) and version in {"", resource.version}:
                return resource
        return None

    def ref_to(self, item: RawObject) -> Ref | None:
        """The address of an object, from its apiVersion, kind and metadata; `None` if its kind is not served."""
        group, _, version = item["apiVersion"].rpartition("/")
        resource = self.find(item["kind"], group, version)
        if resource is None:
            return None
        namespace = item["metadata"].get("namespace", "default") if resource.namespaced else ""
        return resource.named(item["metadata"]["name"], namespace)


async def discover(sender: CallSender) -> Discovery:
    resources: list[Resource] = []
    unavailable: list[str] = []
    for prefix in ("/api", "/apis"):
        response = await sender.send(_call(prefix, ACCEPT))
        if "apidiscovery.k8s.io" in response.headers.get("Content-Type", ""):
            groups = _decode(response, _AggregatedGroupList, prefix).items
            resources += _aggregated_resources(groups)
            unavailable += [
                _group_version(g.metadata.name, v.version) for g in groups for v in g.versions if v.freshness == "Stale"
            ]
        else:
            results = await _fetch_group_versions(sender, prefix, _decode(response, _ApiGroupList, prefix))
            unavailable += [group_version for group_version, answer in results if answer is None]
            resources += [
                r for group_version, answer in results if answer for r in _api_resources(group_version, answer)
            ]
    unaddressable = [resource.api_version for resource in resources if not _is_addressable(resource)]
    return Discovery(tuple(filter(_is_addressable, resources)), tuple(dict.fromkeys([*unavailable, *unaddressable])))


def _is_addressable(resource: Resource) -> bool:
    """Whether its path is its own: the server of one group announces it, and must not name the path of another."""
    parts = (resource.version, resource.plural, *filter(None, [resource.group]))
    return all(_PATH_PART.fullmatch(part) for part in parts)


def _aggregated_resources(groups: tuple[_AggregatedGroup, ...]) -> Iterator[Resource]:
    for group in groups:
        for version in group.versions:
            for resource in version.resources:
                namespaced = resource.scope == "Namespaced"
                if kind := resource.response_kind.kind:  # a resource without a kind serves only its subresources
                    yield Resource(
                        group.metadata.name, version.version, resource.resource, kind, namespaced, resource.verbs
                    )


async def _fetch_group_versions(
    sender: CallSender, prefix: str, groups: _ApiGroupList
) -> list[tuple[str, _ApiResourceList | None]]:
    group_versions = [*groups.versions, *(v.group_version for g in groups.groups for v in g.versions)]
    async with asyncio.TaskGroup() as tasks:
        pending = [(name, tasks.create_task(_fetch_resources(sender, f"{prefix}/{name}"))) for name in group_versions]
    return [(name, task.result()) for name, task in pending]


async def _fetch_resources(sender: CallSender, path: str) -> _ApiResourceList | None:
    """`None` on any error: one broken aggregated API must not make the other groups undiscoverable."""
    try:
        return _decode(await sender.send(_call(path, "application/json")), _ApiResourceList, path)
    except KubeError:
        return None


def _api_resources(group_version: str, resource_list: _ApiResourceList) -> Iterator[Resource]:
    group, _, version = group_version.rpartition("/")
    for resource in resource_list.resources:
        if "/" not in resource.name:
            yield Resource(group, version, resource.name, resource.kind, resource.namespaced, resource.verbs)


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _call(path: str, accept: str) -> Call:
    return Call("get", "discovery", Request("GET", path, (("Accept", accept),), idempotent=True))


def _decode(response: Response, into: type[A], path: str) -> A:
    try:
        return decode_json(response.body, msgspec.json.Decoder(into))
    except DecodingError as error:
        raise BadAnswer(f"this is no API discovery: {error}", where=path) from None
