"""Observe the cluster as a `Snapshot`: one list of Applications, and one read per object that is itself a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import (
    APPLICATIONS,
    Application,
    NotServed,
    Place,
    children,
    kinds_with_health,
    parent_of,
    parse,
    project_of,
    rows_out_of_sync,
)
from windlass.argo.cd.hooks import hook_rows
from windlass.argo.cd.ownership import depends_on
from windlass.argo.health.assessment import BuiltInJudge
from windlass.core.platform.model import applications as nodes
from windlass.core.platform.model.applications import ApplicationRef, Platform, ResourceRef, Stack
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ApplicationState, Parent, ResourceKind, ResourceState, Snapshot, Sync
from windlass.errors import WindlassError
from windlass.kube.api_errors import Forbidden, KubeError, NotFound
from windlass.kube.client.objects import Typed
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from datetime import datetime

    from windlass.argo.cd.hooks import HookRow
    from windlass.argo.health.assessment import Judge
    from windlass.core.platform.model.snapshots import State
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Ref

ARGOCD = "argocd"
BUILT_IN = BuiltInJudge()
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ASKED_AGAIN_AFTER = 1.0  # seconds; a CRD may appear at any time, but one observation discovers only once


@dataclass(slots=True)
class Served:
    """API discovery, read once, and again if a kind is missing that may have been installed since."""

    reader: KubeReader
    _found: Discovery | None = None
    _asked: float = 0.0

    async def discovery(self) -> Discovery:
        if self._found is None:
            self._asked = self.reader.clock.monotonic()
            self._found = await self.reader.discover()
        return self._found

    async def find(self, kind: str, group: str, version: str) -> Resource | None:
        found = (await self.discovery()).find(kind, group, version)
        if found is None and self.reader.clock.monotonic() - self._asked >= ASKED_AGAIN_AFTER:
            self._found = None
            found = (await self.discovery()).find(kind, group, version)
        return found


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that is observed: its client, its clock, and the namespace of Argo CD."""

    reader: KubeReader
    now: Callable[[], datetime]
    """Current time by the server's clock."""
    argocd: str = ARGOCD
    judge: Judge = BUILT_IN
    """Assesses objects that are read directly."""
    served: Served = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "served", Served(self.reader))


@dataclass(frozen=True, slots=True)
class Observation:
    snapshot: Snapshot
    judged_kinds: frozenset[ResourceKind] = frozenset()
    """Kinds whose health Argo CD assesses."""
    annotated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Dependencies from annotations of Applications, by node, in scope or not; merged into the platform."""
    applications: Mapping[str, Application] = field(default_factory=dict)
    """Applications as they were read, by node."""


class NoNamespace(WindlassError):
    """The namespace in which Argo CD should be does not exist."""

    trouble = "TargetNotFound"

    def __init__(self, namespace: str, where: str) -> None:
        hint = "argocdNamespace in environment.yaml names the namespace that Argo CD is in; nothing was changed"
        super().__init__(f"there is no namespace {namespace}, in which Argo CD should be", where=where, hint=hint)


class _Marked(Typed, frozen=True, gc=False):
    """Any object, read only for its annotations."""


Listed = Mapping[tuple[str, str], Application]


async def observe(cluster: Cluster, platform: Platform, names: Collection[str]) -> Observation:
    """Observe the named nodes of a platform, including the hooks of their last operations."""
    taken_at = cluster.now()  # before the list, so that no health is taken as older than it is
    view = await listed(cluster, platform, names)
    await check_place(cluster, view)
    found = await observation_of(cluster, platform, names, taken_at, view)
    return await _with_hooks(cluster, found)


async def observe_everything(cluster: Cluster) -> tuple[Platform, Observation]:
    """Observe every Application of the cluster, as a platform without order whose stacks are Argo CD's projects."""
    taken_at = cluster.now()
    found = await _list(cluster.reader, APPLICATIONS.everywhere)
    platform = platform_of(found)
    observation = await observation_of(cluster, platform, platform.subset, taken_at, found)
    return platform, await _with_hooks(cluster, observation)


async def check_place(cluster: Cluster, view: Listed) -> None:
    """Raise `NoNamespace` if Argo CD's namespace contains no Application and does not exist."""
    if any(namespace == cluster.argocd for namespace, _ in view):
        return
    try:
        await cluster.reader.get(NAMESPACES.named(cluster.argocd))
    except NotFound:
        raise NoNamespace(cluster.argocd, cluster.reader.server) from None
    except Forbidden:
        return  # it may still exist


async def _with_hooks(cluster: Cluster, observation: Observation) -> Observation:
    snapshot = observation.snapshot
    changed = await _with_read_hooks(cluster, observation.applications, snapshot.states)
    return replace(observation, snapshot=replace(snapshot, states={**snapshot.states, **changed}))


def platform_of(listed: Listed) -> Platform:
    """A platform of these Applications, without dependencies."""
    times = Counter(name for _, name in listed)
    made: dict[str, nodes.Application] = {}
    stacks: dict[str, list[str]] = {}
    for (namespace, name), application in sorted(listed.items()):
        node = name if times[name] == 1 else f"{namespace}/{name}"
        project = project_of(application)
        made[node] = nodes.Application(node, project, ApplicationRef(name, namespace))
        stacks.setdefault(project, []).append(node)
    rows = tuple(Stack(name, tuple(members)) for name, members in sorted(stacks.items()))
    return Platform("all", rows, made, Graph.build(dict.fromkeys(made, ())), frozenset(made))


async def observation_of(
    cluster: Cluster, platform: Platform, names: Collection[str], taken_at: datetime, listed: Listed
) -> Observation:
    refs = {name: platform.applications[name].target for name in sorted(names)}
    places = {name: _place(cluster, ref) for name, ref in refs.items() if isinstance(ref, ApplicationRef)}
    there = {name: listed[place] for name, place in places.items() if place in listed}
    resources = {name: ref for name, ref in refs.items() if isinstance(ref, ResourceRef)}
    states: dict[str, State] = {name: parse(application) for name, application in there.items()}
    states |= await _resource_states(cluster, resources)
    states |= _without_nodes(there, states, places)
    snapshot = Snapshot(taken_at, states, _parents(listed, places))
    return Observation(snapshot, _judged(there.values()), _annotated(cluster, platform, listed), there)


def _annotated(cluster: Cluster, platform: Platform, listed: Listed) -> Mapping[str, tuple[str, ...]]:
    found = {}
    for name, node in platform.applications.items():
        application = listed.get(_place(cluster, node.target)) if isinstance(node.target, ApplicationRef) else None
        if application and (said := depends_on(application.metadata)) is not None:
            found[name] = said
    return found


def _parents(listed: Listed, places: Mapping[str, Place]) -> dict[str, Parent]:
    """The parents of nodes that another Application defines, by node."""
    found: dict[Place, Parent] = {}
    for application in listed.values():
        for child, is_followed in children(application):
            found[child] = parent_of(application, is_followed=is_followed)
    return {name: found[place] for name, place in places.items() if place in found}


def _without_nodes(
    there: Mapping[str, Application], states: Mapping[str, State], places: Mapping[str, Place]
) -> dict[str, State]:
    """Count a parent as Synced if only child nodes are out of sync: these are synced in their own turn."""
    changed: dict[str, State] = {}
    for name, application in there.items():
        state = states[name]
        if isinstance(state, ApplicationState) and state.sync is Sync.OUT_OF_SYNC:
            rows = rows_out_of_sync(application, without=frozenset(places.values()))
            if not rows and rows_out_of_sync(application, without=()):
                changed[name] = replace(state, sync=Sync.SYNCED)
    return changed


def _place(cluster: Cluster, ref: ApplicationRef) -> Place:
    return (ref.namespace or cluster.argocd, ref.name)


async def listed(cluster: Cluster, platform: Platform, names: Collection[str]) -> Listed:
    """List Applications with one request: of the namespace that contains all these nodes, or of the whole cluster."""
    refs = [platform.applications[name].target for name in names]
    namespaces = {_place(cluster, ref)[0] for ref in refs if isinstance(ref, ApplicationRef)}
    if not namespaces:
        return {}
    only = next(iter(namespaces)) if len(namespaces) == 1 else ""
    return await _list(cluster.reader, APPLICATIONS.within(only) if only else APPLICATIONS.everywhere)


async def _list(reader: KubeReader, ref: Ref) -> Listed:
    try:
        listing = await reader.list(ref, Application)
    except NotFound as error:
        raise NotServed(error.where) from None
    return {(item.metadata.namespace, item.metadata.name): item for item in listing.items}


def _judged(applications: Iterable[Application]) -> frozenset[ResourceKind]:
    return frozenset().union(*(kinds_with_health(application) for application in applications))


async def _resource_states(cluster: Cluster, refs: Mapping[str, ResourceRef]) -> dict[str, State]:
    """States of objects that are themselves nodes; an object that does not exist has none."""
    found = {name: await resource_state(cluster, ref) for name, ref in refs.items()}
    return {name: state for name, state in found.items() if state is not None}


async def resource_state(cluster: Cluster, ref: ResourceRef) -> ResourceState | None:
    """Read and assess an object; `None` if it does not exist or its kind is not served."""
    group, _, version = ref.api_version.rpartition("/")
    try:
        resource = await cluster.served.find(ref.kind, group, version)
        if resource is None:
            return None
        namespace = (ref.namespace or "default") if resource.namespaced else ""
        item = await cluster.reader.get(resource.named(ref.name, namespace))
    except NotFound:
        return None
    except KubeError as error:  # a later read may succeed; one object must not end the run
        return ResourceState(Health.UNKNOWN, f"it cannot be read: {error.what}")
    return await cluster.judge.judge(item)


async def _with_read_hooks(
    cluster: Cluster, applications: Mapping[str, Application], states: Mapping[str, State]
) -> dict[str, State]:
    """States with the hooks of the last operation, as the hook objects describe them; reads nothing without hooks."""
    rows = {name: found for name, application in applications.items() if (found := hook_rows(application))}
    if not rows:
        return {}
    try:
        discovery, changed = await cluster.served.discovery(), dict[str, "State"]()
    except KubeError:
        return {}
    for name, found in rows.items():
        state = states[name]
        assert isinstance(state, ApplicationState)
        if state.operation:
            read = [row.hook(await _annotations(cluster.reader, discovery, row)) for row in found]
            hooks = tuple(hook for hook in read if hook)
            changed[name] = replace(state, operation=replace(state.operation, hooks=hooks))
    return changed


async def _annotations(reader: KubeReader, discovery: Discovery, row: HookRow) -> Mapping[str, str]:
    """Annotations of a hook; empty if it was deleted after it ran, or may not be read."""
    resource = discovery.find(row.kind, row.group, row.version)
    if resource is None or not row.name:
        return {}
    try:
        found = await reader.get(resource.named(row.name, row.namespace if resource.namespaced else ""), _Marked)
    except KubeError:
        return {}
    return found.metadata.annotations
