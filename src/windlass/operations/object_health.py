"""The health of objects of Applications, read directly to check what Argo CD reports about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from windlass.argo.cd.applications import APPLICATIONS, kind_of_row, lasting_rows
from windlass.argo.health.builtin import WORKLOADS
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceKind
from windlass.kube.api_errors import Forbidden, KubeError, NotFound

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from windlass.argo.cd.applications import Application, Place, ResourceRow
    from windlass.argo.health.assessment import Judge
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.objects import Plain
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Resource
    from windlass.operations.observation import Cluster

AT_ONCE = 8
NESTED = ResourceKind(APPLICATIONS.group, APPLICATIONS.kind)


class _Place(NamedTuple):
    """Objects of one kind in one namespace; they are read with one request."""

    kind: ResourceKind
    version: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Sick:
    """An object that is not Healthy."""

    which: str
    health: Health
    message: str = ""

    def __str__(self) -> str:
        return f"{self.which}: {self.message or f'it is {self.health}'}"


_Found = Mapping[str, "Plain"] | KubeError
"""Objects by name, or the error if they could not be read."""


def places_of(applications: Iterable[Application]) -> frozenset[Place]:
    return frozenset((each.metadata.namespace, each.metadata.name) for each in applications)


async def inspect(
    cluster: Cluster, applications: Mapping[str, Application], *, without: Container[Place] = ()
) -> dict[str, list[Sick]]:
    """Return the objects of each Application that are not Healthy, by node.

    Only workloads and objects whose kind has a health check are read. `exclude`: Applications that are assessed on
    their own; otherwise every parent would be as unhealthy as its worst child.
    """
    listed = {name: _rows(application, without) for name, application in applications.items()}
    kinds = {kind_of_row(row) for rows in listed.values() for row in rows}
    told = {kind for kind in kinds if await cluster.judge.can_judge(kind)}
    rows = {name: [row for row in each if kind_of_row(row) in told] for name, each in listed.items()}
    found = await _read_all(cluster, [row for each in rows.values() for row in each])
    judged = {name: [await _sick(cluster.judge, row, found) for row in each] for name, each in rows.items()}
    return {name: [sick for sick in each if sick] for name, each in judged.items()}


def _rows(application: Application, without: Container[Place]) -> list[ResourceRow]:
    here = application.metadata.namespace
    rows = lasting_rows(application)
    return [row for row in rows if kind_of_row(row) != NESTED or (row.namespace or here, row.name or "") not in without]


async def _read_all(cluster: Cluster, rows: list[ResourceRow]) -> Mapping[_Place, _Found]:
    wanted: dict[_Place, set[str]] = {}
    for row in rows:
        wanted.setdefault(_place(row), set()).add(row.name or "")
    is_known = all(_by_heart(place) for place in wanted)
    discovery = None if is_known else await cluster.served.discovery()
    limit = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        asked = {
            place: tasks.create_task(_read(cluster.reader, limit, place, _resource(place, discovery), names))
            for place, names in wanted.items()
        }
    found = {place: task.result() for place, task in asked.items()}
    for each in found.values():
        if isinstance(each, KubeError) and not isinstance(each, Forbidden):
            raise each
    return found


async def _read(
    reader: KubeReader, limit: asyncio.Semaphore, place: _Place, resource: Resource | None, names: set[str]
) -> _Found:
    """Read one object by name, or several with one list. A kind that is not served has no objects."""
    if resource is None:
        return {}
    namespace = (place.namespace or "default") if resource.namespaced else ""
    async with limit:
        try:
            if len(names) == 1:
                items = [await reader.get(resource.named(next(iter(names)), namespace))]
            else:
                items = (await reader.list(resource.within(namespace))).items
        except NotFound:
            return {}
        except KubeError as error:
            return error
    head = {"apiVersion": resource.api_version, "kind": resource.kind}  # items of a list omit both
    return {item["metadata"]["name"]: {**item, **head} for item in items}


async def _sick(judge: Judge, row: ResourceRow, found: Mapping[_Place, _Found]) -> Sick | None:
    which = f"{row.kind} {row.namespace}/{row.name}" if row.namespace else f"{row.kind} {row.name}"
    objects = found[_place(row)]
    if isinstance(objects, KubeError):
        return Sick(which, Health.UNKNOWN, f"it cannot be read: {objects.what}")
    item = objects.get(row.name or "")
    if item is None:
        return Sick(which, Health.MISSING, "it is not there")
    state = await judge.judge(item)
    if state.is_deleting:
        return Sick(which, Health.PROGRESSING, "it is being deleted")
    return None if state.health is Health.HEALTHY else Sick(which, state.health, state.health_message)


def _place(row: ResourceRow) -> _Place:
    return _Place(kind_of_row(row), row.version or "", row.namespace or "")


def _by_heart(place: _Place) -> Resource | None:
    known = WORKLOADS.get(place.kind)
    return known if known and place.version in {"", known.version} else None


def _resource(place: _Place, discovery: Discovery | None) -> Resource | None:
    if discovery is None:
        return _by_heart(place)
    kind, group = place.kind.kind, place.kind.group
    return discovery.find(kind, group, place.version) or discovery.find(kind, group)
