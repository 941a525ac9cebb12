"""`status`: what a cluster shows now, read from its Applications and from the Lease of runs. Reads only."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic

from windlass.argo.cd import root_application
from windlass.argo.cd.application_resources import child_applications, parse_own_state
from windlass.argo.cd.applications import APPLICATIONS, Application, NotServed
from windlass.argo.cd.diagnostics import diagnose_application, main_problem
from windlass.core.platform import cluster_status, freshness
from windlass.core.platform.cluster_status import ClusterStatus, RootStatus
from windlass.core.platform.model.snapshots import Snapshot
from windlass.kube.api_errors import Forbidden, KubeError, NotFound
from windlass.kube.client.objects import RawObject, T, object_version
from windlass.kube.client.readers import Selection
from windlass.kube.client.reflectors import Reflector
from windlass.kube.client.resources import LEASES, is_path_segment
from windlass.operations.cluster_identity import LEASE_NAME, lease_identity
from windlass.operations.object_health import ObjectCheck, check_objects
from windlass.operations.observation import illegal_row_notices, platform_from_applications
from windlass.operations.validate import with_proven_health

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windlass.core.platform.cluster_status import ActiveApplication, FailedApplication
    from windlass.core.platform.model.snapshots import ApplicationState
    from windlass.kube.client.resources import Ref
    from windlass.operations.observation import ApplicationsByKey, ObservedCluster

MAX_EXPLAINED = 3  # failed, and progressing, applications whose objects are read; others have Argo CD's message only
EXPLANATION_LIFETIME = 15.0  # seconds; objects of a failed application change without a change of the Application
MIN_INTERVAL = 0.5  # seconds between two statuses: a deploy changes Applications many times a second
RENEWAL_WAIT = 5.0  # seconds; a living run renews its lock every 4 s
ABANDONED_AFTER = 15.0  # seconds without a renewal, after which the next run takes the lock
REEVALUATE_INTERVAL = 1.0  # seconds; elapsed time alone proves some health, and a lost connection is no change


@dataclass(frozen=True, slots=True)
class _ClusterView:
    """The objects that a status is computed from."""

    ref: Ref
    """The Applications that may be read: of the whole cluster, or of Argo CD's namespace."""
    argocd_namespace: str
    applications: ApplicationsByKey
    lease: RawObject | None = None
    is_lease_readable: bool = True
    is_lease_abandoned: bool = False
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class _Explanations:
    """Causes of failures and delays, read from the objects of the applications and kept for a while."""

    cluster: ObservedCluster
    _known: dict[str, tuple[ApplicationState, float, str]] = field(default_factory=dict)

    async def failure(self, failed: FailedApplication, application: Application) -> FailedApplication:
        if failed.is_explained:
            return failed
        return replace(failed, cause=_joined(failed.cause, await self._cause(failed.name, application)))

    async def delay(self, active: ActiveApplication, application: Application) -> ActiveApplication:
        """What an application that was synced waits for: Argo CD shows a crashing pod as Progressing for minutes."""
        if not active.is_synced:
            return active
        return replace(active, detail=_joined(active.detail, await self._cause(active.name, application)))

    async def _cause(self, name: str, application: Application) -> str:
        now = self.cluster.reader.clock.monotonic()
        known, read_at, cause = self._known.get(name, (None, 0.0, ""))
        if known != application.state or now - read_at > EXPLANATION_LIFETIME:
            cause = await _read_cause(self.cluster, application)
            self._known[name] = (application.state, now, cause)
        return cause


class _Follower(Generic[T]):
    """Runs a reflector and keeps its error for the task that shows the status."""

    def __init__(self, cluster: ObservedCluster, ref: Ref, into: type[T], select: Selection) -> None:
        self.reflector = Reflector(cluster.reader, ref, into, select=select)
        self.is_complete = False
        self.changed_at = cluster.reader.clock.monotonic()
        self.error: KubeError | None = None
        self._clock = cluster.reader.clock

    async def run(self, changed: asyncio.Event) -> None:
        try:
            async for change in self.reflector.changes():
                self.is_complete = self.is_complete or change.completes_view
                self.changed_at = self._clock.monotonic()
                changed.set()
        except KubeError as error:
            self.error = error
            changed.set()

    @property
    def problem(self) -> KubeError | None:
        return self.error or self.reflector.current_error


async def read_status(cluster: ObservedCluster) -> ClusterStatus:
    """Read the status once. If the lock seems to be abandoned, that takes longer than a renewal of a living holder."""
    view = await _read_view(cluster)
    if cluster_status.seems_abandoned(view.lease or {}, cluster.now()):
        await cluster.reader.clock.sleep(RENEWAL_WAIT)
        again = await _read_view(cluster)
        is_abandoned = again.lease is not None and object_version(again.lease) == object_version(view.lease or {})
        view = replace(again, is_lease_abandoned=is_abandoned)
    return await _status(_Explanations(cluster), view)


async def watch_status(cluster: ObservedCluster, show: Callable[[ClusterStatus], None]) -> None:
    """Call `show` with the status after every change, and once a second, until cancelled or an error ends the watch."""
    view, changed = await _read_view(cluster), asyncio.Event()
    applications = _Follower(cluster, view.ref, Application, Selection())
    lease_name = Selection(fields=f"metadata.name={LEASE_NAME}")
    leases = _Follower(cluster, LEASES.in_namespace(view.argocd_namespace), RawObject, lease_name)
    followers: list[_Follower[Any]] = [applications, leases] if view.is_lease_readable else [applications]
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each.run(changed)) for each in followers]
        try:
            error = await _show_changes(cluster, view, (applications, leases), changed, show)
        finally:
            for task in running:
                task.cancel()
    raise error


async def _show_changes(
    cluster: ObservedCluster,
    view: _ClusterView,
    followers: tuple[_Follower[Application], _Follower[RawObject]],
    changed: asyncio.Event,
    show: Callable[[ClusterStatus], None],
) -> KubeError:
    """Show the status until a reflector ends with an error, and return the error."""
    applications, leases = followers
    explanations, clock = _Explanations(cluster), cluster.reader.clock
    while True:
        changed.clear()
        if applications.is_complete:
            view = replace(view, applications=dict(applications.reflector.view))
        if leases.is_complete:
            is_silent = clock.monotonic() - leases.changed_at > ABANDONED_AFTER
            lease = next(iter(leases.reflector.view.values()), None)
            view = replace(view, lease=lease, is_lease_abandoned=is_silent and leases.problem is None)
        status = await _status(explanations, view)
        if problem := applications.problem or leases.problem:
            status = replace(status, notices=(*status.notices, f"no news from the server: {problem.what}"))
        show(status)
        if error := applications.error or leases.error:
            return error
        with suppress(TimeoutError):
            async with asyncio.timeout(REEVALUATE_INTERVAL):
                await changed.wait()
                await clock.sleep(MIN_INTERVAL)


def find_argocd_namespace(applications: ApplicationsByKey, default: str) -> str:
    """The namespace of the root Application; without one the default, or the one with most Applications."""
    legal = {key: each for key, each in applications.items() if is_path_segment(key[0])}
    for (namespace, name), application in legal.items():
        if name == root_application.NAME and root_application.is_managed_by_windlass(application):
            return namespace
    counts = Counter(namespace for namespace, _ in legal)
    return default if not counts or default in counts else counts.most_common(1)[0][0]


async def _read_view(cluster: ObservedCluster) -> _ClusterView:
    ref, notices = APPLICATIONS.everywhere, list[str]()
    try:
        listing = await cluster.reader.list(ref, Application)
    except NotFound as error:
        raise NotServed(error.where) from None
    except Forbidden as error:
        ref = APPLICATIONS.in_namespace(cluster.argocd_namespace)
        notices.append(f"only namespace {cluster.argocd_namespace} is shown: {error.what}")
        listing = await cluster.reader.list(ref, Application)
    applications = {(item.metadata.namespace, item.metadata.name): item for item in listing.items}
    namespace = find_argocd_namespace(applications, cluster.argocd_namespace)
    lease, is_lease_readable = None, True
    try:
        lease = await cluster.reader.get(LEASES.named(LEASE_NAME, namespace))
    except NotFound:
        pass
    except Forbidden as error:
        is_lease_readable = False
        notices.append(f"lock and platform are unknown: {error.what}")
    return _ClusterView(ref, namespace, applications, lease, is_lease_readable, notices=tuple(notices))


async def _status(explanations: _Explanations, view: _ClusterView) -> ClusterStatus:
    cluster, now = explanations.cluster, explanations.cluster.now()
    platform, keys = platform_from_applications(view.applications), frozenset(view.applications)
    ordered = (view.applications[key] for key in sorted(keys))  # the order of the nodes
    applications = dict(zip(platform.applications, ordered, strict=True))
    shown = {name: parse_own_state(application, keys) for name, application in applications.items()}
    proven = with_proven_health(Snapshot(now, shown), platform, {}).states
    failed, active = cluster_status.failed_applications(shown), cluster_status.active_applications(shown, proven)
    failures = [await explanations.failure(each, applications[each.name]) for each in failed[:MAX_EXPLAINED]]
    delays = [await explanations.delay(each, applications[each.name]) for each in active[:MAX_EXPLAINED]]
    return ClusterStatus(
        server=cluster.reader.server,
        identity=lease_identity(view.lease),
        root=_root_status(view),
        lock=cluster_status.lock_status(view.lease or {}, is_abandoned=view.is_lease_abandoned),
        is_lock_known=view.is_lease_readable,
        applications=len(shown),
        health=cluster_status.health_counts(shown, proven),
        sync=cluster_status.sync_counts(shown.values()),
        active=(*delays, *active[MAX_EXPLAINED:]),
        failed=(*failures, *failed[MAX_EXPLAINED:]),
        notices=(*view.notices, *await _stale_notices(cluster, shown), *illegal_row_notices(applications.values())),
    )


def _root_status(view: _ClusterView) -> RootStatus | None:
    application = view.applications.get((view.argocd_namespace, root_application.NAME))
    if application is None:
        return None
    state = application.state
    targets = tuple(source.target_revision for source in state.sources)
    return RootStatus(f"{view.argocd_namespace}/{root_application.NAME}", state.revisions, targets, state.sync)


async def _stale_notices(cluster: ObservedCluster, states: Mapping[str, ApplicationState]) -> list[str]:
    """Whether Argo CD has compared no Application for so long that it may not be running."""
    now = cluster.now()
    times = [state.reconciled_at for state in states.values() if state.reconciled_at is not None]
    ages = [age for state in states.values() if (age := freshness.comparison_age(state, now)) is not None]
    if not ages or min(ages) <= freshness.STALE_AFTER:
        return []
    limit = await cluster.resync.stale_after()
    if limit is None or min(ages) <= limit:
        return []
    return [f"Argo CD has compared no Application since {max(times):%Y-%m-%dT%H:%M:%SZ}: is its controller running?"]


def _joined(message: str, cause: str) -> str:
    return "; ".join(filter(None, (message, cause)))


async def _read_cause(cluster: ObservedCluster, application: Application) -> str:
    """Why the Application is not healthy, by its pods and objects; empty if they do not tell."""
    state = application.state
    if state.is_remote:
        return ""
    if problem := main_problem(await diagnose_application(cluster.reader, application)):
        return problem
    checks = {"": ObjectCheck(application, state, is_critical=True)}
    children = {key for key, _ in child_applications(application)}  # each has a status of its own
    unhealthy = (await check_objects(cluster, checks, children))[""].unhealthy
    return str(unhealthy[0]) if unhealthy else ""
