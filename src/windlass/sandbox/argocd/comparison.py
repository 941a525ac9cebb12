"""Comparison of target manifests with live objects, and the sync and health status it gives. Pure."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from windlass.sandbox.argocd import application_specs
from windlass.sandbox.argocd import health as healths
from windlass.sandbox.controllers import object_builders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.objects.kinds import Kind
    from windlass.sandbox.apiserver.store import Stored
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.health import Health

APPLICATIONS = "applications.argoproj.io"
TRACKING = "argocd.argoproj.io/tracking-id"
LABEL = "app.kubernetes.io/instance"
WAVE = "argocd.argoproj.io/sync-wave"
HOOK, HOOK_POLICY = "argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"
PHASES = ("PreSync", "Sync", "PostSync")
IN_ORDER = (
    *("Namespace", "NetworkPolicy", "ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("Service", "DaemonSet", "Pod", "ReplicaSet", "Deployment", "StatefulSet", "Job", "CronJob", "Ingress"),
)


@dataclass(frozen=True, eq=False)
class Item:
    """One resource of an Application: target manifest, live object, or both. Reused while neither changes."""

    group: str
    version: str
    kind: str
    kind_id: str
    """Empty if the server does not serve the kind."""
    namespace: str
    name: str
    wanted: Body | None = None
    live: Body | None = None

    @cached_property
    def key(self) -> tuple[str, str, str, str]:
        return (self.group, self.kind, self.namespace, self.name)

    @property
    def notes(self) -> Body:
        return ((self.wanted or self.live or {}).get("metadata") or {}).get("annotations") or {}

    @property
    def wave(self) -> int:
        return int(self.notes.get(WAVE, 0))

    @cached_property
    def hook(self) -> str:
        """The first sync phase in which the hook runs; empty if the resource is not a hook."""
        return str(self.notes.get(HOOK, "")).partition(",")[0].strip()

    @property
    def stage(self) -> tuple[int, int]:
        """Phase and wave: an operation applies resources with the same value together."""
        return (PHASES.index(self.hook or "Sync"), self.wave)

    @property
    def order(self) -> tuple[tuple[int, int], int, str, str]:
        """Sort key in which resources are applied: by phase and wave, then by kind and name."""
        rank = IN_ORDER.index(self.kind) if self.kind in IN_ORDER else len(IN_ORDER)
        return (self.stage, rank, self.kind, self.name)

    @cached_property
    def is_synced(self) -> bool:
        return self.live is not None and self.wanted is not None and _is_within(self.wanted, self.live)

    @property
    def head(self) -> Body:
        """Group, kind, namespace and name, as in `status.resources` and in the sync result."""
        return {"group": self.group, "kind": self.kind, "namespace": self.namespace, "name": self.name}

    @cached_property
    def images(self) -> list[str]:
        spec = (self.wanted or self.live or {}).get("spec") or {}
        pod = (spec.get("template") or {}).get("spec") or {} if isinstance(spec, dict) else {}
        return sorted({row["image"] for row in pod.get("containers") or () if "image" in row})

    def health(self, *, applications: bool) -> Health | None:
        """Health status and message; `None` for kinds without a health check."""
        if self.live is None:
            return "Missing", ""
        if self.live["metadata"].get("deletionTimestamp"):
            return "Progressing", "Pending deletion"
        if self.kind_id == APPLICATIONS and applications:
            return healths.of_application(self.live)
        rule = healths.RULES.get(self.kind_id)
        return rule(self.live) if rule else None


def wanted_item(body: Body, app: Body, kind: Kind | None, *, by_label: bool) -> Item:
    """Target state of a manifest: in the destination namespace unless it names one, with the tracking id or label."""
    api_version, kind_name = body["apiVersion"], body["kind"]
    group, _, version = api_version.rpartition("/")
    meta = {**body["metadata"]}
    given, namespace = meta.pop("namespace", ""), ""
    if kind is None or kind.namespaced:
        namespace = meta["namespace"] = given or app["spec"]["destination"].get("namespace", "default")
    if "name" not in meta:  # Argo CD names hooks that only have generateName
        meta["name"] = f"{meta.pop('generateName')}{object_builders.short_hash(body)[:7]}"
    owner = application_specs.instance_name(app["metadata"])
    if by_label:
        meta["labels"] = {**(meta.get("labels") or {}), LABEL: owner}
    else:
        mark = f"{owner}:{group}/{kind_name}:{namespace}/{meta['name']}"
        meta["annotations"] = {**(meta.get("annotations") or {}), TRACKING: mark}
    wanted = {**body, "metadata": meta}
    if kind_name == "Secret" and "stringData" in wanted:
        plain = {name: base64.b64encode(text.encode()).decode() for name, text in wanted.pop("stringData").items()}
        wanted["data"] = {**wanted.get("data", {}), **plain}
    return Item(group, version, kind_name, kind.id if kind else "", namespace, meta["name"], wanted)


@dataclass(slots=True)
class Look:
    """A resource with the manifest, kind and live object of the last comparison."""

    wanted: Body
    kind: Kind | None
    item: Item
    live: Stored | None = None


class Looks:
    """Resources of the last comparison, by Application: between comparisons most do not change."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str | None, int], Look] = {}

    def at(self, wanted: Body, app: Body, kind: Kind | None, *, by_label: bool) -> Look:
        """The entry of this manifest object in this Application, created anew if its kind is served differently."""
        where = (
            application_specs.instance_name(app["metadata"]),
            app["spec"]["destination"].get("namespace"),
            id(wanted),
        )
        last = self._last.get(where)
        if last is None or last.kind is not kind:
            last = self._last[where] = Look(wanted, kind, wanted_item(wanted, app, kind, by_label=by_label))
        return last


def live_item(kind: Kind, live: Body) -> Item:
    meta = live["metadata"]
    return Item(kind.group, kind.version, kind.kind, kind.id, meta.get("namespace", ""), meta["name"], None, live)


def _is_within(wanted: Any, live: Any) -> bool:
    """Whether the live value contains the target value; fields that the server or other clients added are ignored."""
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return not wanted and live is None
        return all(value is None or _is_within(value, live.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(live, list) or len(live) != len(wanted):
            return not wanted and live is None
        return all(map(_is_within, wanted, live))
    return bool(wanted == live)


def sync_status(items: Iterable[Item]) -> str:
    return "Synced" if all(item.is_synced for item in items if not item.hook) else "OutOfSync"


def health_status(items: list[Item], *, applications: bool) -> str:
    """The worst health of all resources except hooks; missing or unknown child Applications are ignored."""
    counted_in = [item for item in items if not item.hook]
    found = [(item.kind_id == APPLICATIONS, item.health(applications=applications)) for item in counted_in]
    counted = [health[0] for is_app, health in found if health and not (is_app and health[0] in {"Missing", "Unknown"})]
    return healths.worst_of(counted)


def resource_row(item: Item, *, applications: bool, with_health: bool) -> Body:
    row = {name: value for name, value in item.head.items() if value}
    if item.hook:
        return {**row, "version": item.version, "hook": True, "requiresPruning": True}
    row |= {"status": "Synced" if item.is_synced else "OutOfSync", "version": item.version}
    if item.wave:
        row["syncWave"] = item.wave
    if item.wanted is None:
        row["requiresPruning"] = True
    if with_health and (health := item.health(applications=applications)):
        row["health"] = {"status": health[0], **({"message": health[1]} if health[1] else {})}
    return row


def merge_patch(old: Any, new: Any) -> Any:
    """The JSON merge patch from one object to another; empty if they are equal."""
    patch: Body = {name: None for name in old if name not in new}
    for name, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(name), dict):
            if changes := merge_patch(old[name], value):
                patch[name] = changes
        elif name not in old or old[name] != value:
            patch[name] = value
    return patch
