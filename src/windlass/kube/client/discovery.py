"""API discovery: aggregated if the server offers it, otherwise one request per group version."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from windlass.kube.api_errors import BadAnswer, KubeError
from windlass.kube.client.resources import Ref, Resource
from windlass.kube.decoding import Unreadable, read
from windlass.kube.transport.calls import Call
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.kube.client.objects import Plain
    from windlass.kube.transport.calls import Calls
    from windlass.kube.transport.transports import Response

A = TypeVar("A")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT = ",".join([AGGREGATED.format("v2"), AGGREGATED.format("v2beta1"), "application/json"])


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""


class _AggregatedResource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str
    response_kind: _Kind = _Kind()
    verbs: frozenset[str] = frozenset()


class _AggregatedVersion(msgspec.Struct):
    version: str
    resources: tuple[_AggregatedResource, ...] = ()
    freshness: str = "Current"


class _Named(msgspec.Struct):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _Named
    versions: tuple[_AggregatedVersion, ...] = ()


class _Aggregated(msgspec.Struct):
    items: tuple[_AggregatedGroup, ...] = ()


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct):
    name: str
    versions: tuple[_GroupVersion, ...] = ()


class _Groups(msgspec.Struct):
    """APIVersions (`/api`) fills `versions`, APIGroupList (`/apis`) fills `groups`."""

    versions: tuple[str, ...] = ()
    groups: tuple[_Group, ...] = ()


class _PlainResource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()


class _PlainResources(msgspec.Struct):
    resources: tuple[_PlainResource, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovery:
    """The resources that an API server serves."""

    resources: tuple[Resource, ...]
    """In the server's order of preference: the first version of a group is the preferred one."""
    silent: tuple[str, ...] = ()
    """Group versions that are listed but could not be discovered, such as a broken aggregated API."""

    def find(self, kind: str, group: str = "", version: str = "") -> Resource | None:
        """The resource of a kind, in the preferred version unless `version` is given; `None` if it is not served."""
        for resource in self.resources:
            if (resource.kind, resource.group) == (kind, group) and version in {"", resource.version}:
                return resource
        return None

    def ref_to(self, item: Plain) -> Ref | None:
        """The address of an object, from its apiVersion, kind and metadata; `None` if its kind is not served."""
        group, _, version = item["apiVersion"].rpartition("/")
        resource = self.find(item["kind"], group, version)
        if resource is None:
            return None
        namespace = item["metadata"].get("namespace", "default") if resource.namespaced else ""
        return resource.named(item["metadata"]["name"], namespace)


async def discover(calls: Calls) -> Discovery:
    found: list[Resource] = []
    silent: list[str] = []
    for root in ("/api", "/apis"):
        response = await calls.send(_call(root, ACCEPT))
        if "apidiscovery.k8s.io" in response.headers.get("Content-Type", ""):
            groups = _decode(response, _Aggregated, root).items
            found += _aggregated(groups)
            silent += [_join(g.metadata.name, v.version) for g in groups for v in g.versions if v.freshness == "Stale"]
        else:
            answers = await _one_by_one(calls, root, _decode(response, _Groups, root))
            silent += [group_version for group_version, answer in answers if answer is None]
            found += [r for group_version, answer in answers if answer for r in _plain(group_version, answer)]
    return Discovery(tuple(found), tuple(silent))


def _aggregated(groups: tuple[_AggregatedGroup, ...]) -> Iterator[Resource]:
    for group in groups:
        for version in group.versions:
            for found in version.resources:
                namespaced = found.scope == "Namespaced"
                if kind := found.response_kind.kind:  # a resource without a kind serves only its subresources
                    yield Resource(group.metadata.name, version.version, found.resource, kind, namespaced, found.verbs)


async def _one_by_one(calls: Calls, root: str, groups: _Groups) -> list[tuple[str, _PlainResources | None]]:
    wanted = [*groups.versions, *(v.group_version for g in groups.groups for v in g.versions)]
    async with asyncio.TaskGroup() as tasks:
        asked = [(name, tasks.create_task(_resources(calls, f"{root}/{name}"))) for name in wanted]
    return [(name, task.result()) for name, task in asked]


async def _resources(calls: Calls, path: str) -> _PlainResources | None:
    """`None` on any error: one broken aggregated API must not make the other groups undiscoverable."""
    try:
        return _decode(await calls.send(_call(path, "application/json")), _PlainResources, path)
    except KubeError:
        return None


def _plain(group_version: str, answer: _PlainResources) -> Iterator[Resource]:
    group, _, version = group_version.rpartition("/")
    for found in answer.resources:
        if "/" not in found.name:
            yield Resource(group, version, found.name, found.kind, found.namespaced, found.verbs)


def _join(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _call(path: str, accept: str) -> Call:
    return Call("get", "discovery", Request("GET", path, (("Accept", accept),), repeatable=True))


def _decode(response: Response, into: type[A], path: str) -> A:
    try:
        return read(response.body, msgspec.json.Decoder(into))
    except Unreadable as error:
        raise BadAnswer(f"this is no API discovery: {error}", where=path) from None
