"""Observe the cluster as a `Snapshot`: one list of Applications, and one read per object that is itself a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_resources import illegal_rows, kinds_with_health, parse_own_state
from windlass.argo.cd.applications import (
    APPLICATIONS,
    GROUP,
    Application,
    NotServed,
    ObjectKey,
    project_name,
)
from windlass.argo.cd.hooks import hook_resources
from windlass.argo.cd.ownership import declared_dependencies
from windlass.argo.health.assessment import BuiltInHealthAssessor
from windlass.core.platform.model import applications as nodes
from windlass.core.platform.model.applications import ApplicationRef, Platform, ResourceRef, Stack
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    ResourceKind,
    ResourceState,
    Snapshot,
)
from windlass.errors import WindlassError
from windlass.kube.api_errors import Forbidden, KubeError, NotFound, missing_right
from windlass.kube.client.objects import RawObject, TypedObject
from windlass.kube.client.resources import CONFIG_MAPS, Resource
from windlass.operations.definitions import DefinitionReader
from windlass.operations.resync_interval import ResyncInterval

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from datetime import datetime

    from windlass.argo.cd.hooks import HookResource
    from windlass.argo.health.assessment import HealthAssessor
    from windlass.core.platform.model.snapshots import NodeState
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Ref

DEFAULT_ARGOCD_NAMESPACE = "argocd"
BUILT_IN_ASSESSOR = BuiltInHealthAssessor()
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
APP_PROJECTS = Resource(GROUP, "v1alpha1", "appprojects", "AppProject")
ARGOCD_CONFIG_MAP = "argocd-cm"
ILLEGAL_ROWS_NOTICE = "left out of Argo CD's statuses, because no object can have such a name: {}"
DEFAULT_PROJECT = "default"
REDISCOVERY_INTERVAL = 1.0  # seconds; a CRD may appear at any time, but one observation discovers only once


@dataclass(slots=True)
class DiscoveryCache:
    """API discovery, read once, and again if a kind is missing that may have been installed since."""

    reader: KubeReader
    _discovery: Discovery | None = None
    _discovered_at: float = 0.0

    async def discovery(self) -> Discovery:
        if self._discovery is None:
            self._discovered_at = self.reader.clock.monotonic()
            self._discovery = await self.reader.discover()
        return self._discovery

    async def find(self, kind: str, group: str, version: str = "") -> Resource | None:
        resource = (await self.discovery()).find(kind, group, version)
        if resource is None and self.reader.clock.monotonic() - self._discovered_at >= REDISCOVERY_INTERVAL:
            self._discovery = None
            resource = (await self.discovery()).find(kind, group, version)
        return resource


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """The cluster that is observed: its client, its clock, and the namespace of Argo CD."""

    reader: KubeReader
    now: Callable[[], datetime]
    """Current time by the server's clock."""
    argocd_namespace: str = DEFAULT_ARGOCD_NAMESPACE
    assessor: HealthAssessor = BUILT_IN_ASSESSOR
    """Assesses objects that are read directly."""
    served: DiscoveryCache = field(init=False)
    resync: ResyncInterval = field(init=False)
    definitions: DefinitionReader = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "served", DiscoveryCache(self.reader))
        object.__setattr__(self, "resync", ResyncInterval(self.reader, self.argocd_namespace))
        object.__setattr__(self, "definitions", DefinitionReader(self.reader))


@dataclass(frozen=True, slots=True)
class Observation:
    snapshot: Snapshot
    assessed_kinds: frozenset[ResourceKind] = frozenset()
    """Kinds whose health Argo CD assesses."""
    applications: Mapping[str, Application] = field(default_factory=dict)
    """Applications as they were read, by node."""


class NoNamespace(WindlassError):
    """The namespace in which Argo CD should be does not exist."""

    recommendation_key = "TargetNotFound"

    def __init__(self, namespace: str, where: str) -> None:
        hint = "argocdNamespace in environment.yaml names the namespace that Argo CD is in; nothing was changed"
        super().__init__(f"there is no namespace {namespace}, in which Argo CD should be", where=where, hint=hint)


class NoArgoCd(NoNamespace):
    """The namespace in which Argo CD should be exists and does not contain Argo CD."""

    def __init__(self, namespace: str, where: str) -> None:
        super().__init__(namespace, where)
        self.what = (
            f"namespace {namespace} is not that of Argo CD: it contains no Application, no ConfigMap "
            f"{ARGOCD_CONFIG_MAP} and no AppProject {DEFAULT_PROJECT}"
        )


class _AnnotatedObject(TypedObject, frozen=True, gc=False):
    """Any object, read only for its annotations."""


ApplicationsByKey = Mapping[tuple[str, str], Application]


async def observe(cluster: ObservedCluster, platform: Platform, names: Collection[str]) -> Observation:
    """Observe the named nodes of a platform, including the hooks of their last operations."""
    taken_at = cluster.now()  # before the list, so that no health is taken as older than it is
    applications = await list_applications(cluster, platform, names)
    await check_argocd_namespace(cluster, applications)
    observation = await build_observation(cluster, platform, names, taken_at, applications)
    return await _with_hooks(cluster, observation)


async def observe_all_applications(cluster: ObservedCluster) -> tuple[Platform, Observation]:
    """Observe every Application of the cluster, as a platform without order whose stacks are Argo CD's projects."""
    taken_at = cluster.now()
    applications = await _list_by_key(cluster.reader, APPLICATIONS.everywhere)
    platform = platform_from_applications(applications)
    observation = await build_observation(cluster, platform, platform.managed_nodes, taken_at, applications)
    return platform, await _with_hooks(cluster, observation)


async def check_argocd_namespace(cluster: ObservedCluster, applications: ApplicationsByKey) -> None:
    """Raise `NoNamespace` if Argo CD's namespace does not exist, `NoArgoCd` if Argo CD is not in it.

    Reads nothing if an Application was seen there. What may not be read counts as present.
    """
    namespace = cluster.argocd_namespace
    if any(application_namespace == namespace for application_namespace, _ in applications):
        return
    if not await _may_exist(cluster, NAMESPACES.named(namespace)):
        raise NoNamespace(namespace, cluster.reader.server)
    for ref in (
        APP_PROJECTS.named(DEFAULT_PROJECT, namespace),
        CONFIG_MAPS.named(ARGOCD_CONFIG_MAP, namespace),
    ):
        if await _may_exist(cluster, ref):
            return
    raise NoArgoCd(namespace, cluster.reader.server)


async def _may_exist(cluster: ObservedCluster, ref: Ref) -> bool:
    try:
        await cluster.reader.get(ref)
    except NotFound:
        return False
    except Forbidden:
        return True
    return True


async def _with_hooks(cluster: ObservedCluster, observation: Observation) -> Observation:
    snapshot = observation.snapshot
    changed_states = await _states_with_hooks(cluster, observation.applications, snapshot.states)
    return replace(observation, snapshot=replace(snapshot, states={**snapshot.states, **changed_states}))


def platform_from_applications(applications: ApplicationsByKey) -> Platform:
    """A platform of these Applications, without dependencies."""
    name_counts = Counter(name for _, name in applications)
    platform_nodes: dict[str, nodes.ApplicationNode] = {}
    stacks: dict[str, list[str]] = {}
    for (namespace, name), application in sorted(applications.items()):
        node_name = name if name_counts[name] == 1 else f"{namespace}/{name}"
        project = project_name(application)
        platform_nodes[node_name] = nodes.ApplicationNode(node_name, project, ApplicationRef(name, namespace))
        stacks.setdefault(project, []).append(node_name)
    ordered_stacks = tuple(Stack(name, tuple(members)) for name, members in sorted(stacks.items()))
    return Platform(
        "all", ordered_stacks, platform_nodes, Graph.build(dict.fromkeys(platform_nodes, ())), frozenset(platform_nodes)
    )


async def build_observation(
    cluster: ObservedCluster,
    platform: Platform,
    names: Collection[str],
    taken_at: datetime,
    applications: ApplicationsByKey,
) -> Observation:
    refs = {name: platform.applications[name].target for name in sorted(names)}
    keys = {name: _application_key(cluster, ref) for name, ref in refs.items() if isinstance(ref, ApplicationRef)}
    present = {name: applications[key] for name, key in keys.items() if key in applications}
    resources = {name: ref for name, ref in refs.items() if isinstance(ref, ResourceRef)}
    nodes = frozenset(keys.values())
    states: dict[str, NodeState] = {name: parse_own_state(each, nodes) for name, each in present.items()}
    states |= await _resource_states(cluster, resources)
    snapshot = await with_definitions(cluster, platform, Snapshot(taken_at, states), applications)
    return Observation(snapshot, _assessed_kinds(present.values()), present)


def annotated_dependencies(
    cluster: ObservedCluster, platform: Platform, applications: ApplicationsByKey
) -> Mapping[str, tuple[str, ...]]:
    """The dependencies that Applications declare in their annotation, by node."""
    dependencies = {}
    for name, node in platform.applications.items():
        if not isinstance(node.target, ApplicationRef):
            continue
        application = applications.get(_application_key(cluster, node.target))
        if application and (names := declared_dependencies(application.metadata)) is not None:
            dependencies[name] = names
    return dependencies


def illegal_row_notices(applications: Iterable[Application]) -> list[str]:
    """How much of the statuses was left out, if anything was."""
    dropped = sum(map(illegal_rows, applications))
    return [ILLEGAL_ROWS_NOTICE.format(dropped)] if dropped else []


async def with_definitions(
    cluster: ObservedCluster, platform: Platform, snapshot: Snapshot, applications: ApplicationsByKey
) -> Snapshot:
    """Add what defines the nodes of the platform."""
    targets = {name: node.target for name, node in platform.applications.items()}
    keys = {name: _application_key(cluster, ref) for name, ref in targets.items() if isinstance(ref, ApplicationRef)}
    known, namespace = frozenset(keys.values()), cluster.argocd_namespace
    names = {key: name for name, key in keys.items()}
    definitions = await cluster.definitions.definitions(applications, names, namespace)
    platform_parents = definitions.platform_parents(known, (namespace, root_application.NAME))
    unknown = definitions.unknown_applications(known, platform_parents)
    return replace(
        snapshot,
        parents={name: parent for name, key in keys.items() if (parent := definitions.parent_of(key))},
        platform_parents=platform_parents,
        unanswered=frozenset(name for name, key in keys.items() if key in cluster.definitions.unanswered),
        has_all_definitions=definitions.are_all_in_sync(platform_parents) and _are_all_compared(snapshot),
        unknown_applications=tuple("/".join(key) for key in unknown),
    )


def _are_all_compared(snapshot: Snapshot) -> bool:
    """Whether every node that exists shows what it defines."""
    states = [state for state in snapshot.states.values() if isinstance(state, ApplicationState)]
    return not any(state.comparison_problem for state in states)


def _application_key(cluster: ObservedCluster, ref: ApplicationRef) -> ObjectKey:
    return ref.key(cluster.argocd_namespace)


async def list_applications(cluster: ObservedCluster, platform: Platform, names: Collection[str]) -> ApplicationsByKey:
    """List Applications with one request: of the namespace that contains all these nodes, or of the whole cluster."""
    refs = [platform.applications[name].target for name in names]
    namespaces = {_application_key(cluster, ref)[0] for ref in refs if isinstance(ref, ApplicationRef)}
    if not namespaces:
        return {}
    single_namespace = next(iter(namespaces)) if len(namespaces) == 1 else ""
    return await _list_by_key(
        cluster.reader, APPLICATIONS.in_namespace(single_namespace) if single_namespace else APPLICATIONS.everywhere
    )


async def _list_by_key(reader: KubeReader, ref: Ref) -> ApplicationsByKey:
    try:
        listing = await reader.list(ref, Application)
    except NotFound as error:
        raise NotServed(error.where) from None
    return {(item.metadata.namespace, item.metadata.name): item for item in listing.items}


def _assessed_kinds(applications: Iterable[Application]) -> frozenset[ResourceKind]:
    return frozenset().union(*(kinds_with_health(application) for application in applications))


async def _resource_states(cluster: ObservedCluster, refs: Mapping[str, ResourceRef]) -> dict[str, NodeState]:
    """States of objects that are themselves nodes; an object that does not exist has none."""
    states = {name: await read_resource_state(cluster, ref) for name, ref in refs.items()}
    return {name: state for name, state in states.items() if state is not None}


async def read_resource_state(cluster: ObservedCluster, ref: ResourceRef) -> ResourceState | None:
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
        message = f"it cannot be read: {error.what}"
        return ResourceState(Health.UNKNOWN, message, missing_right=missing_right(error))
    return await assess_item(cluster, item)


async def assess_item(cluster: ObservedCluster, item: RawObject) -> ResourceState:
    """The health of an object, with a message of limited length: it quotes the object."""
    state = await cluster.assessor.assess(item)
    return replace(state, health_message=cluster.reader.redactor.message(state.health_message))


async def _states_with_hooks(
    cluster: ObservedCluster, applications: Mapping[str, Application], states: Mapping[str, NodeState]
) -> dict[str, NodeState]:
    """States with the hooks of the last operation, as the hook objects describe them; reads nothing without hooks."""
    rows = {
        name: application_hooks
        for name, application in applications.items()
        if (application_hooks := hook_resources(application))
    }
    if not rows:
        return {}
    try:
        discovery, changed = await cluster.served.discovery(), dict[str, "NodeState"]()
    except KubeError:
        return {}
    for name, application_hooks in rows.items():
        state = states[name]
        assert isinstance(state, ApplicationState)
        if state.operation:
            parsed = [
                row.parse_hook(await _hook_annotations(cluster.reader, discovery, row)) for row in application_hooks
            ]
            hooks = tuple(hook for hook in parsed if hook)
            changed[name] = replace(state, operation=replace(state.operation, hooks=hooks))
    return changed


async def _hook_annotations(reader: KubeReader, discovery: Discovery, row: HookResource) -> Mapping[str, str]:
    """Annotations of a hook; empty if it was deleted after it ran, or may not be read."""
    resource = discovery.find(row.kind, row.group, row.version)
    if resource is None or not row.name or (resource.namespaced and not row.namespace):
        return {}
    try:
        hook = await reader.get(
            resource.named(row.name, row.namespace if resource.namespaced else ""), _AnnotatedObject
        )
    except KubeError:
        return {}
    return hook.metadata.annotations
