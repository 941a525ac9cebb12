"""Argo CD's application controller: comparison, health, sync operations, self-heal and cascading deletion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.argocd import application_specs, comparison, projects
from windlass.sandbox.argocd.application_specs import NAMESPACE, ControllerDelays, Staleness
from windlass.sandbox.argocd.comparison import APPLICATIONS
from windlass.sandbox.argocd.repositories import ComparisonFailure, Repositories
from windlass.sandbox.argocd.sync_operations import SyncOperations
from windlass.sandbox.clock import format_timestamp
from windlass.sandbox.controllers.controller import CACHE_LAG, SandboxController

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.sandbox.apiserver.store import StoreChange, StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.application_specs import StaleStatus
    from windlass.sandbox.argocd.comparison import ComparedResource
    from windlass.sandbox.controllers.controller import StoreKey
    from windlass.sandbox.sandbox import Sandbox

ERROR_CONDITIONS = ("ComparisonError", "InvalidSpecError", "UnknownError")
FAKE_REVISION = "0" * 40  # shown for `Staleness.WRONG_REVISION`


@dataclass(slots=True)
class ApplicationTimers:
    """When the next actions for one Application are due. `reconcile` accesses step, recent and latest by name."""

    uid: str
    step: datetime | None = None  # next step of its sync operation or deletion
    recent: datetime | None = None  # comparison with the revision of the last one (CompareWithRecent)
    latest: datetime | None = None  # comparison with the target revision (CompareWithLatest)
    requested: datetime | None = None  # when `latest` was requested: its `reconciledAt`
    refreshing: bool = False
    objects: int | None = None  # tracked objects at the last step of the deletion
    stale_until: datetime | None = None  # no comparison before, so the status stays stale
    spec: Body | None = None  # `compared_spec` at the last comparison with `latest`


class ApplicationController(SandboxController):
    """Configured by its public fields; `stale_statuses` and `health_overrides` are keyed by `instance_name`."""

    user = controller_user("argocd-application-controller", NAMESPACE)
    primary = APPLICATIONS
    watched: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self, sandbox: Sandbox, *, lag: float = CACHE_LAG) -> None:
        self.repositories = Repositories()
        self.delays = ControllerDelays()
        self.application_namespaces: tuple[str, ...] = ()  # patterns, in addition to its own namespace
        self.stale_statuses: dict[str, StaleStatus] = {}
        self.health_overrides: dict[str, str] = {}  # health to show instead of the assessed one
        self.applications_have_health = False
        self.persists_health = False
        self.tracks_by_label = False
        self._operations = SyncOperations(self)
        super().__init__(sandbox, lag=lag)

    def reset(self) -> None:
        self._timers: dict[StoreKey, ApplicationTimers] = {}
        self._keys: dict[str, StoreKey] = {}
        self._tracked: dict[str, dict[StoreKey, None]] = {}
        self._owners: dict[StoreKey, str] = {}
        self._write_count = 0
        self._resource_cache = comparison.ResourceCache()
        self._own_versions: set[int] = set()  # resourceVersions of own writes: `reconcile` requeues after these itself
        self._operations.reset()
        super().reset()

    def update_cache(self, key: StoreKey, stored: StoredObject | None) -> None:
        super().update_cache(key, stored)
        owner = self._owner_name(stored) if stored else ""
        if (old := self._owners.pop(key, "")) != owner and old:
            self._tracked[old].pop(key, None)
        if owner:
            self._owners[key] = owner
            self._tracked.setdefault(owner, {})[key] = None

    def _owner_name(self, stored: StoredObject) -> str:  # a tracking id copied from another object is ignored
        if self.tracks_by_label:
            return stored.labels.get(comparison.INSTANCE_LABEL, "")
        tracking_id = (stored.body["metadata"].get("annotations") or {}).get(comparison.TRACKING_ANNOTATION, "")
        return tracking_id.partition(":")[0] if tracking_id.endswith(f":{stored.namespace}/{stored.name}") else ""

    def affected_keys(self, change: StoreChange) -> Iterable[StoreKey]:
        owners = {self._owner_name(state) for state in (change.old, change.new) if state}
        for owner in sorted(owners & self._keys.keys()):
            key = self._keys[owner]
            timers = self._timers[key]
            timers.recent = min(filter(None, (timers.recent, self._after(self.delays.recent))))
            yield key
        if change.new.kind_id == projects.PROJECTS:
            yield from self._compare_project(change.new.name)
        if change.new.kind_id == APPLICATIONS and change.new.version not in self._own_versions:
            yield (APPLICATIONS, change.new.namespace, change.new.name)
        self._own_versions.discard(change.new.version)

    def _compare_project(self, project: str) -> Iterable[StoreKey]:
        for key, timers in self._timers.items():
            app = self.find(key[0], key[2], key[1])
            if app and projects.project_name(app["spec"]) == project:
                timers.latest, timers.requested, timers.objects = self._after(self.delays.first), self.clock.now(), None
                yield key

    def _after(self, seconds: float) -> datetime:
        factor = 1 + self.delays.jitter * (2 * self.clock.rng.random() - 1) if self.delays.jitter else 1.0
        return self.clock.now() + timedelta(seconds=seconds * factor)

    def discard_state(self, key: StoreKey) -> None:
        self._timers.pop(key, None)
        self._keys.pop(_instance_name(key), None)

    async def reconcile(self, key: StoreKey, app: Body) -> float | None:
        if key[1] != NAMESPACE and not any(fnmatchcase(key[1], name) for name in self.application_namespaces):
            self.discard_state(key)
            return None
        timers, uid = self._timers.get(key), app["metadata"]["uid"]
        if timers is None or timers.uid != uid:  # after a restart its objects may have changed; or it was recreated
            timers = self._timers[key] = ApplicationTimers(uid, recent=self._after(self.delays.recent))
        self._keys[_instance_name(key)] = key
        if "status" not in app and not self._is_deleting(app):
            await self.write(app, {"status": {}})
            timers.latest, timers.requested = self._after(self.delays.first), self.clock.now()
            return 0.0
        self._update_timers(key, app, timers)
        now = self.clock.now()
        for name, act in (("step", self._run_step), ("recent", self._compare_recent), ("latest", self._compare_latest)):
            due = getattr(timers, name)
            if due is not None and due <= now:
                setattr(timers, name, None)
                before = self._write_count
                await act(key, app, timers)
                if self._write_count != before:
                    return 0.0
        dues = [due for due in (timers.step, timers.recent, timers.latest) if due]
        return (min(dues) - now).total_seconds() if dues else None

    def _is_deleting(self, app: Body) -> bool:
        return bool(app["metadata"].get("deletionTimestamp"))

    def _update_timers(self, key: StoreKey, app: Body, timers: ApplicationTimers) -> None:
        now, status = self.clock.now(), app.get("status", {})
        if self._is_deleting(app):
            timers.latest = None
            if (
                application_specs.cascades(app)
                and timers.step is None
                and timers.objects != len(self._tracked.get(_instance_name(key), ()))
            ):
                timers.step = self._after(self.delays.start if timers.objects is None else self.delays.delete)
            return
        if application_specs.REFRESH_ANNOTATION in (app["metadata"].get("annotations") or {}):
            if not timers.refreshing:
                timers.refreshing, timers.stale_until = True, None
                timers.latest, timers.requested = self._after(self.delays.refresh), now
        elif timers.latest is None:
            changed = status.get("sync", {}).get("comparedTo") != application_specs.compared_to(app["spec"])
            seconds = self.delays.first if changed else self.delays.resync
            timers.latest, timers.requested = self._after(seconds), None
        elif timers.spec not in (None, spec := application_specs.compared_spec(app["spec"])):
            timers.latest, timers.requested, timers.spec = self._after(self.delays.first), now, spec
        if "operation" in app and timers.step is None and not self._operations.is_waiting(key):
            timers.step = self._after(self.delays.wave if application_specs.is_running(app) else self.delays.start)
        elif status.get("operationState", {}).get("phase") == "Terminating" and "operation" in app:
            timers.step = min(timers.step or self._after(self.delays.start), self._after(self.delays.start))

    async def _run_step(self, key: StoreKey, app: Body, timers: ApplicationTimers) -> None:
        if self._is_deleting(app):
            if application_specs.cascades(app):
                await self._delete_resources(app, timers)
            return
        if "operation" not in app:
            return  # another client removed it
        name = _instance_name(key)
        if name in self.stale_statuses and timers.stale_until is None:
            timers.stale_until = self.clock.now() + timedelta(days=1)
        delay = await self._operations.run_step(key, app)
        if delay is not None:
            timers.step = self._after(delay)
            return
        after = self.reread(APPLICATIONS, app)
        if "operation" not in after:
            timers.latest, timers.requested = self._after(self.delays.latest), self.clock.now()
            if name in self.stale_statuses:
                await self._write_stale_status(after, timers, self.stale_statuses[name])

    async def _write_stale_status(self, app: Body, timers: ApplicationTimers, stale: StaleStatus) -> None:
        timers.stale_until = self.clock.now() + timedelta(seconds=stale.seconds)
        status = app["status"]
        result = status["operationState"].get("syncResult") or {}
        if stale.staleness is Staleness.OLD_STATUS or not application_specs.get_revisions(result):
            return
        revision_fields: Body = {name: result[name] for name in ("revision", "revisions") if name in result}
        if stale.staleness is Staleness.WRONG_REVISION:
            revision_fields = application_specs.source_fields(
                app["spec"], "revision", [FAKE_REVISION for _ in application_specs.get_revisions(result)]
            )
        patch: Body = {"sync": {**revision_fields, "status": "Synced"}}
        if stale.staleness is not Staleness.LAGGING:
            patch["reconciledAt"] = status["operationState"]["finishedAt"]
        await self.write(app, {"status": patch})

    async def _compare_recent(self, key: StoreKey, app: Body, timers: ApplicationTimers) -> None:
        status = app.get("status", {})
        revisions = application_specs.get_revisions(status.get("sync", {}))
        if timers.stale_until and self.clock.now() < timers.stale_until:
            timers.recent = timers.stale_until
        elif revisions and FAKE_REVISION not in revisions and not (self._is_deleting(app) and timers.latest):
            await self._compare(app, revisions)

    async def _compare_latest(self, key: StoreKey, app: Body, timers: ApplicationTimers) -> None:
        if timers.stale_until and self.clock.now() < timers.stale_until and not timers.refreshing:
            timers.latest = timers.stale_until
            return
        since, timers.stale_until, timers.spec = timers.requested, None, application_specs.compared_spec(app["spec"])
        timers.requested, timers.refreshing, timers.latest = None, False, self._after(self.delays.resync)
        if since or self._needs_comparison(app):
            await self._compare(app, [], since or self.clock.now())
        else:  # the comparison would show the same again
            await self.write(app, {"status": {"reconciledAt": self.clock.timestamp()}})

    def _needs_comparison(self, app: Body) -> bool:
        spec, status = app["spec"], app.get("status", {})
        pairs = zip(
            application_specs.get_sources(spec), application_specs.get_revisions(status.get("sync", {})), strict=False
        )
        try:
            commits = [(self.repositories.open(s["repoURL"]).resolve(s.get("targetRevision", "")), r) for s, r in pairs]
        except ComparisonFailure:
            return True
        same = bool(commits) and all(commit == revision for commit, revision in commits)
        return not same or status["sync"].get("comparedTo") != application_specs.compared_to(spec)

    async def _compare(self, app: Body, revisions: list[str], since: datetime | None = None) -> None:
        old = app.get("status") or {}
        status = self._comparison_status(app, old, revisions, since)
        operation = None if self._is_deleting(app) else self._automated_operation(app, status, recent=not since)
        if operation:
            kept = {**application_specs.EMPTY_STATUS, **old, "operationState": None}
            version = {"resourceVersion": app["metadata"]["resourceVersion"]}  # never overwrite an unseen operation
            await self.write(app, {"metadata": version, "operation": operation, "status": kept})
            status.pop("operationState", None)
            app = self.reread(APPLICATIONS, app)
        patch: Body = {"status": comparison.merge_patch(app.get("status") or {}, status)}
        if since and application_specs.REFRESH_ANNOTATION in (app["metadata"].get("annotations") or {}):
            patch["metadata"] = {"annotations": {application_specs.REFRESH_ANNOTATION: None}}
        if patch["status"] or "metadata" in patch:
            await self.write(app, patch)

    def _comparison_status(self, app: Body, old: Body, revisions: list[str], since: datetime | None) -> Body:
        spec, broken = app["spec"], None
        status = {
            **old,
            "controllerNamespace": NAMESPACE,
            **({"reconciledAt": format_timestamp(since + self.clock.skew)} if since else {}),
        }
        try:
            commits, targets = self.resolve(app, {}, revisions)
            status |= self._resource_status(app, self.resources(app, targets)) | {"sourceType": self._source_type(spec)}
        except ComparisonFailure as error:
            broken, commits = (
                error,
                [source.get("targetRevision", "HEAD") for source in application_specs.get_sources(spec)],
            )
            status["sync"] = {"status": "Unknown"}
            status["health"] = self._health(old, comparison.health_status(self.resources(app, []), applications=False))
        if broken and broken.condition != "ComparisonError":  # Argo CD does not compare it at all
            sync = {**old.get("sync", {}), "status": "Unknown"}
            status = {**old, "sync": sync, "health": self._health(old, "Unknown")}
        else:
            status["sync"] |= {
                "comparedTo": application_specs.compared_to(spec),
                **application_specs.source_fields(spec, "revision", commits),
            }
        conditions = [row for row in old.get("conditions") or () if row["type"] not in ERROR_CONDITIONS]
        conditions += [{"type": broken.condition, "message": str(broken)}] if broken else []
        status["conditions"] = [_with_time(row, old, self.clock.timestamp()) for row in conditions]
        return status if conditions else {name: value for name, value in status.items() if name != "conditions"}

    def _automated_operation(self, app: Body, status: Body, *, recent: bool) -> Body | None:
        if status["sync"]["status"] != "OutOfSync":
            return None
        state = status.get("operationState") or {}
        result = state.get("syncResult") or {}
        if recent and application_specs.get_revisions(result) != application_specs.get_revisions(status["sync"]):
            return None
        out_of_sync = [row for row in status.get("resources", ()) if row.get("status") == "OutOfSync"]
        prune = ((app["spec"].get("syncPolicy") or {}).get("automated") or {}).get("prune")
        if not prune and all(row.get("requiresPruning") for row in out_of_sync):
            return None
        return application_specs.automated_operation({**app, "status": status}, out_of_sync)

    def _resource_status(self, app: Body, items: list[ComparedResource]) -> Body:
        old, with_apps = app.get("status") or {}, self.applications_have_health
        items = [item for item in items if not item.hook or item.live]  # hooks are listed while they exist
        health = self.health_overrides.get(
            application_specs.instance_name(app["metadata"])
        ) or comparison.health_status(items, applications=with_apps)
        project, persists = self.find_project(app), self.persists_health
        rows = [(item, comparison.resource_entry(item, applications=with_apps, with_health=persists)) for item in items]
        status: Body = {
            "sync": {"status": comparison.sync_status(items)},
            "health": self._health(old, health),
            "resources": [
                row if projects.permits_kind(item, project) else {**row, "status": "Unknown"} for item, row in rows
            ],
        }
        if not self.persists_health:
            status["resourceHealthSource"] = "appTree"
        images = sorted({image for item in items if item.live for image in item.images})
        if images or "summary" in old:
            status["summary"] = {"images": images} if images else {}
        return status

    def _health(self, old: Body, status: str) -> Body:
        before = old.get("health") or {}
        same = before.get("status") == status
        return before if same else {"status": status, "lastTransitionTime": self.clock.timestamp()}

    def _source_type(self, spec: Body) -> str:
        is_helm = any(source.get("chart") or source.get("helm") for source in application_specs.get_sources(spec))
        return "Helm" if is_helm else "Directory"

    def resolve(self, app: Body, sync: Body, revisions: list[str]) -> tuple[list[str], list[Body]]:
        projects.require_permitted(app, self.find_project(app))
        return self.repositories.resolve_sources(
            application_specs.get_sources(sync) or application_specs.get_sources(app["spec"]), revisions
        )

    def resources(self, app: Body, targets: list[Body]) -> list[ComparedResource]:
        found = {item.key: item for item in (self._managed_resource(body, app) for body in targets)}
        for key in self._tracked.get(application_specs.instance_name(app["metadata"]), ()):
            kind = self.catalogue.by_id(key[0])
            if kind is None or (kind.group, kind.kind, *key[1:]) in found:
                continue
            if live := self.find(key[0], key[2], key[1]):
                item = comparison.live_resource(kind, live)
                found[item.key] = item
        return [found[key] for key in sorted(found)]

    def _managed_resource(self, target: Body, app: Body) -> ComparedResource:
        kind = self.catalogue.by_type(target["apiVersion"], target["kind"])
        cached = self._resource_cache.get(target, app, kind, by_label=self.tracks_by_label)
        live = self._cache.get(cached.item.kind_id, {}).get((cached.item.namespace, cached.item.name))
        if live is not cached.live:  # otherwise the ManagedResource of the last comparison is reused
            cached.live, cached.item = live, replace(cached.item, live=self._with_type_meta(live) if live else None)
        return cached.item

    def resolve_kind(self, app: Body, item: ComparedResource) -> ComparedResource:
        if item.kind_id or not item.target:
            return item
        kind = self.catalogue.by_type(item.target["apiVersion"], item.kind)
        return comparison.target_resource(item.target, app, kind, by_label=self.tracks_by_label)

    def find_project(self, app: Body) -> Body | None:
        return self.find(projects.PROJECTS, projects.project_name(app["spec"]), NAMESPACE)

    async def write(self, app: Body, patch: Body) -> None:
        meta = (await self.patch(APPLICATIONS, app, patch))["metadata"]
        self._own_versions.add(int(meta["resourceVersion"]))
        self._write_count += 1

    async def _delete_resources(self, app: Body, timers: ApplicationTimers) -> None:
        """Delete resources, last wave first, then the finalizer. `objects` is set last, so refusals are retried."""
        project = self.find_project(app)
        try:
            projects.require_project(app, project)
        except ComparisonFailure as broken:  # deletion waits until the project exists again
            row = {"type": "DeletionError", "message": broken.message.removeprefix(f"{projects.LOAD_ERROR}: ")}
            timers.objects = len(self._tracked.get(application_specs.instance_name(app["metadata"]), ()))
            if row["message"] not in str(app.get("status", {}).get("conditions")):
                await self.write(app, {"status": {"conditions": [_with_time(row, {}, self.clock.timestamp())]}})
            return
        rows = self.resources(app, [])
        items = [item for item in rows if item.live and not item.is_kept and not projects.refusal(item, app, project)]
        last = max((item.wave for item in items), default=0)
        for item in items:
            if item.wave == last and item.live and not self._is_deleting(item.live):
                await self.delete(item.kind_id, item.live, policy="Foreground")
        if not items:
            await self.write(app, {"metadata": application_specs.without_cascade(app["metadata"])})
        timers.objects = len(self._tracked.get(application_specs.instance_name(app["metadata"]), ())) if items else 0


def _instance_name(key: StoreKey) -> str:
    return application_specs.instance_name({"namespace": key[1], "name": key[2]})


def _with_time(row: Body, old: Body, now: str) -> Body:
    since = [other["lastTransitionTime"] for other in old.get("conditions") or () if other["message"] == row["message"]]
    return {**row, "lastTransitionTime": since[0] if since else now}
