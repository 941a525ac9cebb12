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

    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.store import StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.health import Health

APPLICATIONS = "applications.argoproj.io"
TRACKING_ANNOTATION = "argocd.argoproj.io/tracking-id"
INSTANCE_LABEL = "app.kubernetes.io/instance"
WAVE_ANNOTATION = "argocd.argoproj.io/sync-wave"
KEEPING_OPTIONS = {"argocd.argoproj.io/sync-options": "Delete=false", "helm.sh/resource-policy": "keep"}
HOOK_ANNOTATION, HOOK_DELETE_POLICY = "argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"
SYNC_PHASES = ("PreSync", "Sync", "PostSync")
KIND_ORDER = (
    *("Namespace", "NetworkPolicy", "ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("Service", "DaemonSet", "Pod", "ReplicaSet", "Deployment", "StatefulSet", "Job", "CronJob", "Ingress"),
)


@dataclass(frozen=True, eq=False)
class ComparedResource:
    """One resource of an Application: target manifest, live object, or both. Reused while neither changes."""

    group: str
    version: str
    kind: str
    kind_id: str
    """Empty if the server does not serve the kind."""
    namespace: str
    name: str
    target: Body | None = None
    live: Body | None = None

    @cached_property
    def key(self) -> tuple[str, str, str, str]:
        return (self.group, self.kind, self.namespace, self.name)

    @property
    def annotations(self) -> Body:
        return ((self.target or self.live or {}).get("metadata") or {}).get("annotations") or {}

    @property
    def is_kept(self) -> bool:
        """Whether it outlives its Application: CustomResourceDefinitions, and what its annotations exclude."""
        return self.kind == "CustomResourceDefinition" or any(
            option in self.annotations.get(name, "") for name, option in KEEPING_OPTIONS.items()
        )

    @property
    def wave(self) -> int:
        return int(self.annotations.get(WAVE_ANNOTATION, 0))

    @cached_property
    def hook(self) -> str:
        """The first sync phase in which the hook runs; empty if the resource is not a hook."""
        return str(self.annotations.get(HOOK_ANNOTATION, "")).partition(",")[0].strip()

    @property
    def phase_and_wave(self) -> tuple[int, int]:
        """Phase and wave: an operation applies resources with the same value together."""
        return (SYNC_PHASES.index(self.hook or "Sync"), self.wave)

    @property
    def apply_order(self) -> tuple[tuple[int, int], int, str, str]:
        """Sort key in which resources are applied: by phase and wave, then by kind and name."""
        rank = KIND_ORDER.index(self.kind) if self.kind in KIND_ORDER else len(KIND_ORDER)
        return (self.phase_and_wave, rank, self.kind, self.name)

    @cached_property
    def is_synced(self) -> bool:
        return self.live is not None and self.target is not None and _is_subset(self.target, self.live)

    @property
    def reference(self) -> Body:
        """Group, kind, namespace and name, as in `status.resources` and in the sync result."""
        return {"group": self.group, "kind": self.kind, "namespace": self.namespace, "name": self.name}

    @cached_property
    def images(self) -> list[str]:
        spec = (self.target or self.live or {}).get("spec") or {}
        pod = (spec.get("template") or {}).get("spec") or {} if isinstance(spec, dict) else {}
        return sorted({row["image"] for row in pod.get("containers") or () if "image" in row})

    def health(self, *, applications: bool) -> Health | None:
        """Health status and message; `None` for kinds without a health check."""
        if self.live is None:
            return "Missing", ""
        if self.live["metadata"].get("deletionTimestamp"):
            return "Progressing", "Pending deletion"
        if self.kind_id == APPLICATIONS and applications:
            return healths.application_health(self.live)
        rule = healths.RULES.get(self.kind_id)
        return rule(self.live) if rule else None


def target_resource(body: Body, app: Body, kind: ServedKind | None, *, by_label: bool) -> ComparedResource:
    """Target state of a manifest: in the destination namespace unless it names one, with the tracking id or label."""
    api_version, kind_name = body["apiVersion"], body["kind"]
    group, _, version = api_version.rpartition("/")
    meta = {**body["metadata"]}
    own_namespace, namespace = meta.pop("namespace", ""), ""
    if kind is None or kind.namespaced:
        namespace = meta["namespace"] = own_namespace or app["spec"]["destination"].get("namespace", "default")
    if "name" not in meta:  # Argo CD names hooks that only have generateName
        meta["name"] = f"{meta.pop('generateName')}{object_builders.short_hash(body)[:7]}"
    owner = application_specs.instance_name(app["metadata"])
    if by_label:
        meta["labels"] = {**(meta.get("labels") or {}), INSTANCE_LABEL: owner}
    else:
        tracking_id = f"{owner}:{group}/{kind_name}:{namespace}/{meta['name']}"
        meta["annotations"] = {**(meta.get("annotations") or {}), TRACKING_ANNOTATION: tracking_id}
    target = {**body, "metadata": meta}
    if kind_name == "Secret" and "stringData" in target:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in target.pop("stringData").items()}
        target["data"] = {**target.get("data", {}), **encoded}
    return ComparedResource(group, version, kind_name, kind.id if kind else "", namespace, meta["name"], target)


@dataclass(slots=True)
class CachedResource:
    """A resource with the manifest, kind and live object of the last comparison."""

    target: Body
    kind: ServedKind | None
    item: ComparedResource
    live: StoredObject | None = None


class ResourceCache:
    """Resources of the last comparison, by Application: between comparisons most do not change."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str | None, int], CachedResource] = {}

    def get(self, target: Body, app: Body, kind: ServedKind | None, *, by_label: bool) -> CachedResource:
        """The entry of this manifest object in this Application, created anew if its kind is served differently."""
        key = (
            application_specs.instance_name(app["metadata"]),
            app["spec"]["destination"].get("namespace"),
            id(target),
        )
        entry = self._entries.get(key)
        if entry is None or entry.kind is not kind:
            entry = self._entries[key] = CachedResource(
                target, kind, target_resource(target, app, kind, by_label=by_label)
            )
        return entry


def live_resource(kind: ServedKind, live: Body) -> ComparedResource:
    meta = live["metadata"]
    return ComparedResource(
        kind.group, kind.version, kind.kind, kind.id, meta.get("namespace", ""), meta["name"], None, live
    )


def _is_subset(target: Any, live: Any) -> bool:
    """Whether the live value contains the target value; fields that the server or other clients added are ignored."""
    if isinstance(target, dict):
        if not isinstance(live, dict):
            return not target and live is None
        return all(value is None or _is_subset(value, live.get(name)) for name, value in target.items())
    if isinstance(target, list):
        if not isinstance(live, list) or len(live) != len(target):
            return not target and live is None
        return all(map(_is_subset, target, live))
    return bool(target == live)


def sync_status(items: Iterable[ComparedResource]) -> str:
    return "Synced" if all(item.is_synced for item in items if not item.hook) else "OutOfSync"


def health_status(items: list[ComparedResource], *, applications: bool) -> str:
    """The worst health of all resources except hooks; missing or unknown child Applications are ignored."""
    resources = [item for item in items if not item.hook]
    assessed = [(item.kind_id == APPLICATIONS, item.health(applications=applications)) for item in resources]
    counted = [
        health[0] for is_app, health in assessed if health and not (is_app and health[0] in {"Missing", "Unknown"})
    ]
    return healths.worst(counted)


def resource_entry(item: ComparedResource, *, applications: bool, with_health: bool) -> Body:
    entry = {name: value for name, value in item.reference.items() if value}
    if item.hook:
        return {**entry, "version": item.version, "hook": True, "requiresPruning": True}
    entry |= {"status": "Synced" if item.is_synced else "OutOfSync", "version": item.version}
    if item.wave:
        entry["syncWave"] = item.wave
    if item.target is None:
        entry["requiresPruning"] = True
    if with_health and (health := item.health(applications=applications)):
        entry["health"] = {"status": health[0], **({"message": health[1]} if health[1] else {})}
    return entry


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
