"""Argo CD's application controller: comparison, health, sync operations, self-heal and cascading deletion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.argocd import application_specs, comparison, projects
from windlass.sandbox.argocd.application_specs import NAMESPACE, Pace, Stale
from windlass.sandbox.argocd.comparison import APPLICATIONS
from windlass.sandbox.argocd.repositories import Broken, Repositories
from windlass.sandbox.argocd.sync_operations import Operations
from windlass.sandbox.clock import told
from windlass.sandbox.controllers.controller import LAG, Actor

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.sandbox.apiserver.store import Change, Stored
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.application_specs import Lie
    from windlass.sandbox.argocd.comparison import Item
    from windlass.sandbox.controllers.controller import Place
    from windlass.sandbox.sandbox import Sandbox

BROKEN = ("ComparisonError", "InvalidSpecError", "UnknownError")
NOWHERE = "0" * 40  # shown for `Staleness.WRONG_REVISION`


@dataclass(slots=True)
class Agenda:
    """When the next actions for one Application are due. `reconcile` accesses step, recent and latest by name."""

    step: datetime | None = None  # next step of its sync operation or deletion
    recent: datetime | None = None  # comparison with the revision of the last one (CompareWithRecent)
    latest: datetime | None = None  # comparison with the target revision (CompareWithLatest)
    since: datetime | None = None  # when `latest` was requested: its `reconciledAt`
    refreshing: bool = False
    left: int | None = None  # tracked objects at the last step of the deletion
    blind_until: datetime | None = None  # no comparison before, so the status stays stale
    looked_at: Body | None = None  # `compared_spec` at the last comparison with `latest`


class ArgoCD(Actor):
    """Configured by its public fields; `stale_statuses` and `health_overrides` are keyed by `instance_name`."""

    user = controller("argocd-application-controller", NAMESPACE)
    primary = APPLICATIONS
    watched: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self, sandbox: Sandbox, *, lag: float = LAG) -> None:
        self.repositories = Repositories()
        self.pace = Pace()
        self.application_namespaces: tuple[str, ...] = ()  # patterns, in addition to its own namespace
        self.stale: dict[str, Lie] = {}
        self.claims: dict[str, str] = {}  # health to show instead of the assessed one
        self.applications_have_health = False
        self.persists_health = False
        self.tracks_by_label = False
        self._operations = Operations(self)
        super().__init__(sandbox, lag=lag)

    def forget(self) -> None:
        self._agendas: dict[Place, Agenda] = {}
        self._places: dict[str, Place] = {}
        self._tracked: dict[str, dict[Place, None]] = {}
        self._owner: dict[Place, str] = {}
        self._writes = 0
        self._looks = comparison.Looks()
        self._written: set[int] = set()  # resourceVersions of own writes: `reconcile` requeues after these itself
        self._operations.forget()
        super().forget()

    def know(self, place: Place, found: Stored | None) -> None:
        super().know(place, found)
        owner = self._owner_in(found) if found else ""
        if (old := self._owner.pop(place, "")) != owner and old:
            self._tracked[old].pop(place, None)
        if owner:
            self._owner[place] = owner
            self._tracked.setdefault(owner, {})[place] = None

    def _owner_in(self, found: Stored) -> str:  # a tracking id copied from another object is ignored
        if self.tracks_by_label:
            return found.labels.get(comparison.LABEL, "")
        mark = (found.body["metadata"].get("annotations") or {}).get(comparison.TRACKING, "")
        return mark.partition(":")[0] if mark.endswith(f":{found.namespace}/{found.name}") else ""

    def concerned(self, change: Change) -> Iterable[Place]:
        owners = {self._owner_in(state) for state in (change.old, change.new) if state}
        for owner in sorted(owners & self._places.keys()):
            place = self._places[owner]
            agenda = self._agendas[place]
            agenda.recent = min(filter(None, (agenda.recent, self._after(self.pace.recent))))
            yield place
        if change.new.kind_id == projects.PROJECTS:
            yield from self._using(change.new.name)
        if change.new.kind_id == APPLICATIONS and change.new.version not in self._written:
            yield (APPLICATIONS, change.new.namespace, change.new.name)
        self._written.discard(change.new.version)

    def _using(self, project: str) -> Iterable[Place]:
        for place, agenda in self._agendas.items():
            app = self.find(place[0], place[2], place[1])
            if app and projects.name_in(app["spec"]) == project:
                agenda.latest, agenda.since, agenda.left = self._after(self.pace.first), self.sources.now(), None
                yield place

    def _after(self, seconds: float) -> datetime:
        share = 1 + self.pace.jitter * (2 * self.sources.chance.random() - 1) if self.pace.jitter else 1.0
        return self.sources.now() + timedelta(seconds=seconds * share)

    def gone(self, place: Place) -> None:
        self._agendas.pop(place, None)
        self._places.pop(_instance(place), None)

    async def reconcile(self, place: Place, app: Body) -> float | None:
        if place[1] != NAMESPACE and not any(fnmatchcase(place[1], name) for name in self.application_namespaces):
            self.gone(place)
            return None
        agenda = self._agendas.setdefault(place, Agenda())
        self._places[_instance(place)] = place
        if "status" not in app and not self._is_going(app):
            await self.write(app, {"status": {}})
            agenda.latest, agenda.since = self._after(self.pace.first), self.sources.now()
            return 0.0
        self._plan(place, app, agenda)
        now = self.sources.now()
        for name, act in (("step", self._step), ("recent", self._recent), ("latest", self._latest)):
            due = getattr(agenda, name)
            if due is not None and due <= now:
                setattr(agenda, name, None)
                before = self._writes
                await act(place, app, agenda)
                if self._writes != before:
                    return 0.0
        dues = [due for due in (agenda.step, agenda.recent, agenda.latest) if due]
        return (min(dues) - now).total_seconds() if dues else None

    def _is_going(self, app: Body) -> bool:
        return bool(app["metadata"].get("deletionTimestamp"))

    def _plan(self, place: Place, app: Body, agenda: Agenda) -> None:
        now, status = self.sources.now(), app.get("status", {})
        if self._is_going(app):
            agenda.latest = None
            cascades = any(
                name.startswith(application_specs.CASCADE) for name in app["metadata"].get("finalizers") or ()
            )
            if cascades and agenda.step is None and agenda.left != len(self._tracked.get(_instance(place), ())):
                agenda.step = self._after(self.pace.notice if agenda.left is None else self.pace.removal)
            return
        if application_specs.REFRESH in (app["metadata"].get("annotations") or {}):
            if not agenda.refreshing:
                agenda.refreshing, agenda.blind_until = True, None
                agenda.latest, agenda.since = self._after(self.pace.refresh), now
        elif agenda.latest is None:
            changed = status.get("sync", {}).get("comparedTo") != application_specs.compared_to(app["spec"])
            seconds = self.pace.first if changed else self.pace.resync
            agenda.latest, agenda.since = self._after(seconds), None
        elif agenda.looked_at not in (None, looks_at := application_specs.looked_at(app["spec"])):
            agenda.latest, agenda.since, agenda.looked_at = self._after(self.pace.first), now, looks_at
        if "operation" in app and agenda.step is None and not self._operations.is_held_up(place):
            agenda.step = self._after(self.pace.wave if application_specs.is_running(app) else self.pace.notice)
        elif status.get("operationState", {}).get("phase") == "Terminating" and "operation" in app:
            agenda.step = min(agenda.step or self._after(self.pace.notice), self._after(self.pace.notice))

    async def _step(self, place: Place, app: Body, agenda: Agenda) -> None:
        if self._is_going(app):
            await self._take_down(app, agenda)
            return
        if "operation" not in app:
            return  # another client removed it
        name = _instance(place)
        if name in self.stale and agenda.blind_until is None:
            agenda.blind_until = self.sources.now() + timedelta(days=1)
        again = await self._operations.step(place, app)
        if again is not None:
            agenda.step = self._after(again)
            return
        after = self.again(APPLICATIONS, app)
        if "operation" not in after:
            agenda.latest, agenda.since = self._after(self.pace.latest), self.sources.now()
            if name in self.stale:
                await self._lie(after, agenda, self.stale[name])

    async def _lie(self, app: Body, agenda: Agenda, lie: Lie) -> None:
        agenda.blind_until = self.sources.now() + timedelta(seconds=lie.seconds)
        status = app["status"]
        result = status["operationState"].get("syncResult") or {}
        if lie.how is Stale.OLD_VERDICT or not application_specs.revisions_of(result):
            return
        shown: Body = {name: result[name] for name in ("revision", "revisions") if name in result}
        if lie.how is Stale.WRONG_REVISION:
            shown = application_specs.named(
                app["spec"], "revision", [NOWHERE for _ in application_specs.revisions_of(result)]
            )
        patch: Body = {"sync": {**shown, "status": "Synced"}}
        if lie.how is not Stale.LAGGING:
            patch["reconciledAt"] = status["operationState"]["finishedAt"]
        await self.write(app, {"status": patch})

    async def _recent(self, place: Place, app: Body, agenda: Agenda) -> None:
        status = app.get("status", {})
        revisions = application_specs.revisions_of(status.get("sync", {}))
        if agenda.blind_until and self.sources.now() < agenda.blind_until:
            agenda.recent = agenda.blind_until
        elif revisions and not (self._is_going(app) and agenda.latest):
            await self._compare(app, revisions)

    async def _latest(self, place: Place, app: Body, agenda: Agenda) -> None:
        if agenda.blind_until and self.sources.now() < agenda.blind_until:
            agenda.latest = agenda.blind_until
            return
        since, agenda.blind_until, agenda.looked_at = agenda.since, None, application_specs.looked_at(app["spec"])
        agenda.since, agenda.refreshing, agenda.latest = None, False, self._after(self.pace.resync)
        if since or self._has_moved(app):  # Argo CD compares anyway, which only moves `reconciledAt`
            await self._compare(app, [], since or self.sources.now())

    def _has_moved(self, app: Body) -> bool:
        spec, status = app["spec"], app.get("status", {})
        pairs = zip(
            application_specs.sources_of(spec), application_specs.revisions_of(status.get("sync", {})), strict=False
        )
        try:
            commits = [(self.repositories.at(s["repoURL"]).commit(s.get("targetRevision", "")), r) for s, r in pairs]
        except Broken:
            return True
        same = bool(commits) and all(commit == revision for commit, revision in commits)
        return not same or status["sync"].get("comparedTo") != application_specs.compared_to(spec)

    async def _compare(self, app: Body, revisions: list[str], since: datetime | None = None) -> None:
        old = app.get("status") or {}
        status = self._judged(app, old, revisions, since)
        operation = None if self._is_going(app) else self._automated(app, status, recent=not since)
        if operation:
            kept = {**application_specs.EMPTY_STATUS, **old, "operationState": None}
            known = {"resourceVersion": app["metadata"]["resourceVersion"]}  # never overwrite an unseen operation
            await self.write(app, {"metadata": known, "operation": operation, "status": kept})
            status.pop("operationState", None)
            app = self.again(APPLICATIONS, app)
        patch: Body = {"status": comparison.merge_patch(app.get("status") or {}, status)}
        if since and application_specs.REFRESH in (app["metadata"].get("annotations") or {}):
            patch["metadata"] = {"annotations": {application_specs.REFRESH: None}}
        if patch["status"] or "metadata" in patch:
            await self.write(app, patch)

    def _judged(self, app: Body, old: Body, revisions: list[str], since: datetime | None) -> Body:
        spec, broken = app["spec"], None
        status = {**old, "controllerNamespace": NAMESPACE, **({"reconciledAt": told(since)} if since else {})}
        try:
            found, wanted = self.resolved(app, {}, revisions)
            status |= self._verdict(app, self.items(app, wanted)) | {"sourceType": self._source_type(spec)}
        except Broken as error:
            broken, found = (
                error,
                [source.get("targetRevision", "HEAD") for source in application_specs.sources_of(spec)],
            )
            status["sync"] = {"status": "Unknown"}
            status["health"] = self._health(old, comparison.health_status(self.items(app, []), applications=False))
        if broken and broken.condition != "ComparisonError":  # Argo CD does not compare it at all
            sync = {**old.get("sync", {}), "status": "Unknown"}
            status = {**old, "sync": sync, "health": self._health(old, "Unknown")}
        else:
            status["sync"] |= {
                "comparedTo": application_specs.compared_to(spec),
                **application_specs.named(spec, "revision", found),
            }
        rows = [row for row in old.get("conditions") or () if row["type"] not in BROKEN]
        rows += [{"type": broken.condition, "message": str(broken)}] if broken else []
        status["conditions"] = [_dated(row, old, self.sources.timestamp()) for row in rows]
        return status if rows else {name: value for name, value in status.items() if name != "conditions"}

    def _automated(self, app: Body, status: Body, *, recent: bool) -> Body | None:
        if status["sync"]["status"] != "OutOfSync":
            return None
        state = status.get("operationState") or {}
        result = state.get("syncResult") or {}
        if recent and application_specs.revisions_of(result) != application_specs.revisions_of(status["sync"]):
            return None
        rows = [row for row in status.get("resources", ()) if row.get("status") == "OutOfSync"]
        prune = ((app["spec"].get("syncPolicy") or {}).get("automated") or {}).get("prune")
        if not prune and all(row.get("requiresPruning") for row in rows):
            return None
        return application_specs.automated_operation({**app, "status": status}, rows)

    def _verdict(self, app: Body, items: list[Item]) -> Body:
        old, mode = app.get("status") or {}, self.applications_have_health
        items = [item for item in items if not item.hook or item.live]  # hooks are listed while they exist
        health = self.claims.get(application_specs.instance_name(app["metadata"])) or comparison.health_status(
            items, applications=mode
        )
        project, persists = self.project_of(app), self.persists_health
        rows = [(item, comparison.resource_row(item, applications=mode, with_health=persists)) for item in items]
        verdict: Body = {
            "sync": {"status": comparison.sync_status(items)},
            "health": self._health(old, health),
            "resources": [
                row if projects.permits_kind(item, project) else {**row, "status": "Unknown"} for item, row in rows
            ],
        }
        if not self.persists_health:
            verdict["resourceHealthSource"] = "appTree"
        images = sorted({image for item in items if item.live for image in item.images})
        if images or "summary" in old:
            verdict["summary"] = {"images": images} if images else {}
        return verdict

    def _health(self, old: Body, status: str) -> Body:
        before = old.get("health") or {}
        same = before.get("status") == status
        return before if same else {"status": status, "lastTransitionTime": self.sources.timestamp()}

    def _source_type(self, spec: Body) -> str:
        rendered = any(source.get("chart") or source.get("helm") for source in application_specs.sources_of(spec))
        return "Helm" if rendered else "Directory"

    def resolved(self, app: Body, holder: Body, revisions: list[str]) -> tuple[list[str], list[Body]]:
        projects.require(app, self.project_of(app))
        return self.repositories.resolved(
            application_specs.sources_of(holder) or application_specs.sources_of(app["spec"]), revisions
        )

    def items(self, app: Body, wanted: list[Body]) -> list[Item]:
        found = {item.key: item for item in (self._beside_live(body, app) for body in wanted)}
        for place in self._tracked.get(application_specs.instance_name(app["metadata"]), ()):
            kind = self.catalogue.find(place[0])
            if kind is None or (kind.group, kind.kind, *place[1:]) in found:
                continue
            if live := self.find(place[0], place[2], place[1]):
                item = comparison.live_item(kind, live)
                found[item.key] = item
        return [found[key] for key in sorted(found)]

    def _beside_live(self, wanted: Body, app: Body) -> Item:
        kind = self.catalogue.named(wanted["apiVersion"], wanted["kind"])
        look = self._looks.at(wanted, app, kind, by_label=self.tracks_by_label)
        live = self._known.get(look.item.kind_id, {}).get((look.item.namespace, look.item.name))
        if live is not look.live:  # otherwise the ManagedResource of the last comparison is reused
            look.live, look.item = live, replace(look.item, live=self._loaded(live) if live else None)
        return look.item

    def known(self, app: Body, item: Item) -> Item:
        if item.kind_id or not item.wanted:
            return item
        kind = self.catalogue.named(item.wanted["apiVersion"], item.kind)
        return comparison.wanted_item(item.wanted, app, kind, by_label=self.tracks_by_label)

    def project_of(self, app: Body) -> Body | None:
        return self.find(projects.PROJECTS, projects.name_in(app["spec"]), NAMESPACE)

    async def write(self, app: Body, patch: Body) -> None:
        after = await self.patch(APPLICATIONS, app, patch)
        self._written.add(int(after["metadata"]["resourceVersion"]))
        self._writes += 1

    async def _take_down(self, app: Body, agenda: Agenda) -> None:
        """Delete resources, last wave first, then the finalizer. `objects` is set last, so refusals are retried."""
        project = self.project_of(app)
        try:
            projects.require_project(app, project)
        except Broken as broken:  # deletion waits until the project exists again
            row = {"type": "DeletionError", "message": broken.told.removeprefix(f"{projects.UNLOADED}: ")}
            agenda.left = len(self._tracked.get(application_specs.instance_name(app["metadata"]), ()))
            if row["message"] not in str(app.get("status", {}).get("conditions")):
                await self.write(app, {"status": {"conditions": [_dated(row, {}, self.sources.timestamp())]}})
            return
        items = [i for i in self.items(app, []) if i.live is not None and not projects.refusal_of(i, app, project)]
        last = max((item.wave for item in items), default=0)
        for item in items:
            if item.wave == last and item.live and not item.live["metadata"].get("deletionTimestamp"):
                await self.delete(item.kind_id, item.live, policy="Foreground")
        if not items:
            finalizers = app["metadata"]["finalizers"]
            kept = [name for name in finalizers if not name.startswith(application_specs.CASCADE)]
            await self.write(app, {"metadata": {"finalizers": kept or None}})
        agenda.left = len(self._tracked.get(application_specs.instance_name(app["metadata"]), ())) if items else 0


def _instance(place: Place) -> str:
    return application_specs.instance_name({"namespace": place[1], "name": place[2]})


def _dated(row: Body, old: Body, now: str) -> Body:
    since = [other["lastTransitionTime"] for other in old.get("conditions") or () if other["message"] == row["message"]]
    return {**row, "lastTransitionTime": since[0] if since else now}
