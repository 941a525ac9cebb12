"""The health of Applications by their objects: how gates, plans and `validate` check Argo CD's verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from windlass.argo.cd.application_resources import desired_resources
from windlass.argo.cd.applications import APPLICATIONS, resource_kind
from windlass.argo.health.builtin import BUILTIN_RESOURCES
from windlass.core.platform import freshness
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.health import Health, worst_health
from windlass.core.platform.model.snapshots import ApplicationState, ResourceKind
from windlass.kube.api_errors import KubeError, NotFound, missing_right
from windlass.operations.observation import assess_item

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Container, Iterator, Sequence

    from windlass.argo.cd.applications import Application, ManagedResource, ObjectKey
    from windlass.core.platform.model.applications import ApplicationNode, Platform
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Resource
    from windlass.operations.observation import Observation, ObservedCluster

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
    missing_right: str = ""
    """The right without which it could not be read."""

    def __str__(self) -> str:
        return f"{self.name}: {self.message or f'it is {self.health}'}"


@dataclass(frozen=True, slots=True)
class ObjectCheck:
    """An Application whose objects are checked, and its state as Argo CD shows it."""

    application: Application
    state: ApplicationState
    is_critical: bool


@dataclass(frozen=True, slots=True)
class ObjectFindings:
    """A state that is no healthier than the objects of the Application, and the objects that are not Healthy."""

    state: ApplicationState
    unhealthy: Sequence[UnhealthyObject] = ()


_ReadResult = Mapping[str, "RawObject"] | KubeError
"""Objects by name, or the error if they could not be read."""


def application_assessment(
    cluster: ObservedCluster, platform: Platform
) -> Callable[[ApplicationNode, Application, ApplicationState], Awaitable[ApplicationState]]:
    """The assessment of one Application, for its gate."""
    exclude = node_keys(platform, cluster.argocd_namespace)

    async def assess(node: ApplicationNode, application: Application, state: ApplicationState) -> ApplicationState:
        checks = {node.name: ObjectCheck(application, state, node.critical)}
        return (await check_objects(cluster, checks, exclude))[node.name].state

    return assess


async def assess_snapshot(
    cluster: ObservedCluster, platform: Platform, observation: Observation, names: Collection[str]
) -> tuple[Snapshot, Mapping[str, Sequence[UnhealthyObject]]]:
    """The snapshot with these nodes assessed, as far as they are Applications, and unhealthy objects by node."""
    snapshot, checks = observation.snapshot, dict[str, ObjectCheck]()
    for name in names:
        state, application = snapshot.states.get(name), observation.applications.get(name)
        if application is not None and isinstance(state, ApplicationState):
            checks[name] = ObjectCheck(application, state, platform.applications[name].critical)
    findings = await check_objects(cluster, checks, node_keys(platform, cluster.argocd_namespace))
    states = {**snapshot.states, **{name: each.state for name, each in findings.items()}}
    return replace(snapshot, states=states), {name: each.unhealthy for name, each in findings.items()}


def node_keys(platform: Platform, argocd_namespace: str) -> frozenset[ObjectKey]:
    """The Applications that are nodes and assessed on their own: no parent is as unhealthy as its worst child."""
    targets = (node.target for node in platform.applications.values())
    return frozenset(target.key(argocd_namespace) for target in targets if isinstance(target, ApplicationRef))


async def check_objects(
    cluster: ObservedCluster, checks: Mapping[str, ObjectCheck], exclude: Container[ObjectKey]
) -> dict[str, ObjectFindings]:
    """Check Argo CD's verdict about each Application by reading its objects.

    Of a critical Application, and of one whose verdict is stale, all workloads and objects whose kind has a check are
    read; of the others, the kinds that Windlass or a mounted file has a check for. Objects that cannot be read are
    Unknown. `exclude`: Applications that are not checked as objects.
    """
    stale = await _stale_names(cluster, checks)
    rows: dict[str, list[ManagedResource]] = {}
    for name, check in checks.items():
        candidates = () if check.state.is_remote else _candidates(check.application, exclude)
        own_kinds = None if check.is_critical or name in stale else cluster.assessor.kinds
        rows[name] = [row for row in candidates if own_kinds is None or resource_kind(row) in own_kinds]
    try:
        counts, unhealthy = await _unhealthy_objects(cluster, rows)
    except KubeError as error:
        unknown = _unreadable("its objects", "they cannot be read", error)
        counts, unhealthy = dict.fromkeys(rows, 0), {name: [unknown] if each else [] for name, each in rows.items()}
    return {
        name: _findings(check, counts[name], unhealthy[name], is_stale=name in stale) for name, check in checks.items()
    }


async def _stale_names(cluster: ObservedCluster, checks: Mapping[str, ObjectCheck]) -> frozenset[str]:
    """The Applications that Argo CD has not compared for so long that it may not be running."""
    now = cluster.now()
    ages = {name: freshness.comparison_age(check.state, now) for name, check in checks.items()}
    old = {name: age for name, age in ages.items() if age is not None and age > freshness.STALE_AFTER}
    limit = await cluster.resync.stale_after() if old else None
    return frozenset(name for name, age in old.items() if limit is not None and age > limit)


def _findings(
    check: ObjectCheck, count: int, unhealthy: Sequence[UnhealthyObject], *, is_stale: bool
) -> ObjectFindings:
    state = replace(check.state, objects_read=count)
    if not is_stale:
        return ObjectFindings(state_with_objects(state, unhealthy), unhealthy)
    if state.is_remote:
        unhealthy = [UnhealthyObject("its objects", Health.UNKNOWN, "they are in another cluster")]
    since = state.written_at or state.reconciled_at
    return ObjectFindings(
        state_with_objects(state, unhealthy, f"Argo CD has not compared it since {since:%Y-%m-%dT%H:%M:%SZ}; "),
        unhealthy,
    )


def state_with_objects(
    state: ApplicationState, unhealthy: Sequence[UnhealthyObject], introduction: str = ""
) -> ApplicationState:
    """Lower the health of the Application to that of its worst object.

    The message names that object, unless Argo CD shows the Application as unhealthy with a message of its own.
    """
    if not unhealthy:
        return state
    worst = worst_health(each.health for each in unhealthy)
    first = next(each for each in unhealthy if each.health is worst)
    more = f" (and {len(unhealthy) - 1} more)" if len(unhealthy) > 1 else ""
    message = "" if state.health is Health.HEALTHY else state.health_message
    return replace(
        state,
        health=worst_health([state.health, worst]),
        health_message=message or f"{introduction}{first}{more}",
        missing_right=next((each.missing_right for each in unhealthy if each.missing_right), ""),
    )


def _candidates(application: Application, exclude: Container[ObjectKey]) -> Iterator[ManagedResource]:
    default_namespace = application.metadata.namespace
    for row in desired_resources(application):
        if (
            resource_kind(row) != APPLICATION_KIND
            or (row.namespace or default_namespace, row.name or "") not in exclude
        ):
            yield row


async def _unhealthy_objects(
    cluster: ObservedCluster, candidates: Mapping[str, list[ManagedResource]]
) -> tuple[dict[str, int], dict[str, list[UnhealthyObject]]]:
    """How many objects were read, and which are not Healthy, by node."""
    kinds = {resource_kind(row) for rows in candidates.values() for row in rows}
    assessable_kinds = {kind for kind in kinds if await cluster.assessor.can_assess(kind)}
    rows = {name: [row for row in each if resource_kind(row) in assessable_kinds] for name, each in candidates.items()}
    read_results = await _read_all(cluster, [row for each in rows.values() for row in each])
    checked = {name: [await _check_object(cluster, row, read_results) for row in each] for name, each in rows.items()}
    counts = {name: len(each) for name, each in rows.items()}
    return counts, {name: [unhealthy for unhealthy in each if unhealthy] for name, each in checked.items()}


async def _read_all(cluster: ObservedCluster, rows: list[ManagedResource]) -> Mapping[_KindInNamespace, _ReadResult]:
    names_by_key: dict[_KindInNamespace, set[str]] = {}
    for row in rows:
        names_by_key.setdefault(_read_key(row), set()).add(row.name or "")
    resources = {key: await _find_resource(cluster, key) for key in names_by_key}
    limit = asyncio.Semaphore(MAX_CONCURRENT_READS)
    async with asyncio.TaskGroup() as tasks:
        reads = {
            place: tasks.create_task(_read(cluster.reader, limit, place, resources[place], names))
            for place, names in names_by_key.items()
        }
    return {place: task.result() for place, task in reads.items()}


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
    cluster: ObservedCluster, row: ManagedResource, read_results: Mapping[_KindInNamespace, _ReadResult]
) -> UnhealthyObject | None:
    name = f"{row.kind} {row.namespace}/{row.name}" if row.namespace else f"{row.kind} {row.name}"
    objects = read_results[_read_key(row)]
    if isinstance(objects, KubeError):
        return _unreadable(name, "it cannot be read", objects)
    item = objects.get(row.name or "")
    if item is None:
        return UnhealthyObject(name, Health.MISSING, "it is not there")
    state = await assess_item(cluster, item)
    if state.is_deleting:
        return UnhealthyObject(name, Health.PROGRESSING, "it is being deleted")
    return None if state.health is Health.HEALTHY else UnhealthyObject(name, state.health, state.health_message)


def _unreadable(name: str, what: str, error: KubeError) -> UnhealthyObject:
    return UnhealthyObject(name, Health.UNKNOWN, f"{what}: {error.what}", missing_right(error))


def _read_key(row: ManagedResource) -> _KindInNamespace:
    return _KindInNamespace(resource_kind(row), row.version or "", row.namespace or "")


def _built_in_resource(key: _KindInNamespace) -> Resource | None:
    known = BUILTIN_RESOURCES.get(key.kind)
    return known if known and key.version in {"", known.version} else None


async def _find_resource(cluster: ObservedCluster, key: _KindInNamespace) -> Resource | None:
    """A kind may have been installed since the cluster was discovered, by the same Application as its objects."""
    if known := _built_in_resource(key):
        return known
    kind, group = key.kind.kind, key.kind.group
    return await cluster.served.find(kind, group, key.version) or await cluster.served.find(kind, group)
