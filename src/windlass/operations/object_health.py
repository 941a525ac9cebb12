"""The health of objects of Applications, read directly to check what Argo CD reports about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from windlass.argo.cd.application_resources import desired_resources
from windlass.argo.cd.applications import APPLICATIONS, resource_kind
from windlass.argo.health.builtin import BUILTIN_RESOURCES
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceKind
from windlass.kube.api_errors import Forbidden, KubeError, NotFound

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from windlass.argo.cd.applications import Application, ManagedResource, ObjectKey
    from windlass.argo.health.assessment import HealthAssessor
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Resource
    from windlass.operations.observation import ObservedCluster

MAX_CONCURRENT_READS = 8
APPLICATION_KIND = ResourceKind(APPLICATIONS.group, APPLICATIONS.kind)


class _KindInNamespace(NamedTuple):
    """Objects of one kind in one namespace; they are read with one request."""

    kind: ResourceKind
    version: str
    namespace: str


@dataclass(frozen=True, slots=True)
class UnhealthyObject:
    """An object that is not Healthy."""

    name: str
    health: Health
    message: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.message or f'it is {self.health}'}"


_ReadResult = Mapping[str, "RawObject"] | KubeError
"""Objects by name, or the error if they could not be read."""


def application_keys(applications: Iterable[Application]) -> frozenset[ObjectKey]:
    return frozenset((each.metadata.namespace, each.metadata.name) for each in applications)


async def find_unhealthy_objects(
    cluster: ObservedCluster, applications: Mapping[str, Application], *, exclude: Container[ObjectKey] = ()
) -> dict[str, list[UnhealthyObject]]:
    """Return the objects of each Application that are not Healthy, by node.

    Only workloads and objects whose kind has a health check are read. `exclude`: Applications that are assessed on
    their own; otherwise every parent would be as unhealthy as its worst child.
    """
    all_rows = {name: _resources_to_check(application, exclude) for name, application in applications.items()}
    kinds = {resource_kind(row) for rows in all_rows.values() for row in rows}
    assessable_kinds = {kind for kind in kinds if await cluster.assessor.can_assess(kind)}
    rows = {name: [row for row in each if resource_kind(row) in assessable_kinds] for name, each in all_rows.items()}
    read_results = await _read_all(cluster, [row for each in rows.values() for row in each])
    checked = {
        name: [await _check_object(cluster.assessor, row, read_results) for row in each] for name, each in rows.items()
    }
    return {name: [unhealthy for unhealthy in each if unhealthy] for name, each in checked.items()}


def _resources_to_check(application: Application, exclude: Container[ObjectKey]) -> list[ManagedResource]:
    default_namespace = application.metadata.namespace
    rows = desired_resources(application)
    return [
        row
        for row in rows
        if resource_kind(row) != APPLICATION_KIND or (row.namespace or default_namespace, row.name or "") not in exclude
    ]


async def _read_all(cluster: ObservedCluster, rows: list[ManagedResource]) -> Mapping[_KindInNamespace, _ReadResult]:
    names_by_key: dict[_KindInNamespace, set[str]] = {}
    for row in rows:
        names_by_key.setdefault(_read_key(row), set()).add(row.name or "")
    is_known = all(_built_in_resource(key) for key in names_by_key)
    discovery = None if is_known else await cluster.served.discovery()
    limit = asyncio.Semaphore(MAX_CONCURRENT_READS)
    async with asyncio.TaskGroup() as tasks:
        reads = {
            place: tasks.create_task(_read(cluster.reader, limit, place, _resource(place, discovery), names))
            for place, names in names_by_key.items()
        }
    results = {place: task.result() for place, task in reads.items()}
    for each in results.values():
        if isinstance(each, KubeError) and not isinstance(each, Forbidden):
            raise each
    return results


async def _read(
    reader: KubeReader, limit: asyncio.Semaphore, key: _KindInNamespace, resource: Resource | None, names: set[str]
) -> _ReadResult:
    """Read one object by name, or several with one list. A kind that is not served has no objects."""
    if resource is None:
        return {}
    namespace = (key.namespace or "default") if resource.namespaced else ""
    async with limit:
        try:
            if len(names) == 1:
                items = [await reader.get(resource.named(next(iter(names)), namespace))]
            else:
                items = (await reader.list(resource.in_namespace(namespace))).items
        except NotFound:
            return {}
        except KubeError as error:
            return error
    type_fields = {"apiVersion": resource.api_version, "kind": resource.kind}  # items of a list omit both
    return {item["metadata"]["name"]: {**item, **type_fields} for item in items}


async def _check_object(
    assessor: HealthAssessor, row: ManagedResource, read_results: Mapping[_KindInNamespace, _ReadResult]
) -> UnhealthyObject | None:
    name = f"{row.kind} {row.namespace}/{row.name}" if row.namespace else f"{row.kind} {row.name}"
    objects = read_results[_read_key(row)]
    if isinstance(objects, KubeError):
        return UnhealthyObject(name, Health.UNKNOWN, f"it cannot be read: {objects.what}")
    item = objects.get(row.name or "")
    if item is None:
        return UnhealthyObject(name, Health.MISSING, "it is not there")
    state = await assessor.assess(item)
    if state.is_deleting:
        return UnhealthyObject(name, Health.PROGRESSING, "it is being deleted")
    return None if state.health is Health.HEALTHY else UnhealthyObject(name, state.health, state.health_message)


def _read_key(row: ManagedResource) -> _KindInNamespace:
    return _KindInNamespace(resource_kind(row), row.version or "", row.namespace or "")


def _built_in_resource(key: _KindInNamespace) -> Resource | None:
    known = BUILTIN_RESOURCES.get(key.kind)
    return known if known and key.version in {"", known.version} else None


def _resource(key: _KindInNamespace, discovery: Discovery | None) -> Resource | None:
    if discovery is None:
        return _built_in_resource(key)
    kind, group = key.kind.kind, key.kind.group
    return discovery.find(kind, group, key.version) or discovery.find(kind, group)
