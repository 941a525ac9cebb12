"""What a sync would change: whether the objects of an Application change, or only the revision that it is pinned to.

Two renderings of the same sources, at the revision of the last comparison and at the planned one, show what a commit
changes. Argo CD's own comparison shows how the live objects differ from the first of the two. Pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

from windlass.core.platform.planning.field_changes import (
    ABSENT,
    FieldChange,
    changed_fields,
    with_fields,
    with_manifest_change,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Manifest = dict[str, Any]
_Key = tuple[str, str, str]
"""Kind with API group, namespace, name."""
MAX_CHANGED_OBJECTS = 100  # of one Application in a report
MAX_CHANGED_FIELDS = 50  # of one object in a report
HOOK_ANNOTATIONS = ("argocd.argoproj.io/hook", "helm.sh/hook")


class Effect(StrEnum):
    """What a sync does to the objects of an Application."""

    CREATES = "creates"
    """The Application does not exist, so all of its objects are created."""
    CHANGES = "changes"
    PIN = "pin"
    """Only the revision that it is pinned to changes."""
    NONE = "none"
    """Neither an object nor the revision changes."""
    UNKNOWN = "unknown"


class ObjectEffect(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REMOVE = "remove"
    """The sources do not contain it any more. A sync deletes it only if the Application prunes."""
    OUT_OF_SYNC = "out-of-sync"
    """Argo CD's comparison says that it differs, but not in which fields."""


@dataclass(frozen=True, slots=True)
class ChangedObject:
    kind: str
    """With the API group: `apps/Deployment`."""
    namespace: str
    name: str
    effect: ObjectEffect
    fields: tuple[FieldChange, ...] = ()
    is_truncated: bool = False
    """More fields change than are listed."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ApplicationChange:
    """What the sync of a step changes."""

    name: str
    effect: Effect
    detail: str = ""
    """Why the effect is not known, or what else a reader must know."""
    objects: tuple[ChangedObject, ...] = ()
    is_truncated: bool = False
    """More objects change than are listed."""


@dataclass(frozen=True, slots=True)
class ComparedObject:
    """An object of an Application, as Argo CD compared it."""

    kind: str
    """With the API group: `apps/Deployment`."""
    namespace: str
    name: str
    live: Manifest | None = None
    normalized: Manifest | None = None
    """The live object without the fields that Argo CD ignores."""
    predicted: Manifest | None = None
    """The normalized object after a sync of the revision that was compared."""
    has_target: bool = True
    """The sources contain it."""

    @property
    def key(self) -> _Key:
        return self.kind, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class RenderedApplication:
    """The manifests of an Application at two revisions, and its objects in the cluster."""

    current: tuple[Manifest, ...]
    """At the revision of Argo CD's comparison."""
    planned: tuple[Manifest, ...]
    objects: tuple[ComparedObject, ...]
    namespace: str = ""
    """The namespace of the destination, for objects that name none."""


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """An object that a sync may change. `desired` is `None` unless it exists and stays."""

    key: _Key
    effect: ObjectEffect
    live: Manifest | None = None
    raw: Manifest | None = None
    """The live object with the fields that Argo CD ignores."""
    desired: Any = None


def desired_objects(rendered: RenderedApplication) -> Iterator[DesiredObject]:
    """The objects after a sync at the planned revision. Hooks are left out, as in Argo CD's own comparison."""
    objects = {each.key: each for each in rendered.objects}
    current, planned = _by_key(rendered.current, rendered), _by_key(rendered.planned, rendered)
    for key in sorted({*objects, *current, *planned}):
        before, after, item = current.get(key), planned.get(key), objects.get(key, ComparedObject(*key))
        live = item.normalized or item.live
        if _is_hook(after) or _is_hook(item.live):
            continue
        if live is None:
            if after is not None:
                yield DesiredObject(key, ObjectEffect.CREATE)
        elif after is None and not (item.has_target and before is None):
            yield DesiredObject(key, ObjectEffect.REMOVE, live, item.live)
        else:
            desired = _desired(live, item.predicted, before, after)
            yield DesiredObject(key, ObjectEffect.UPDATE, live, item.live, desired)


def object_changes(objects: Iterable[DesiredObject], shorten: Callable[[str], str]) -> Iterator[ChangedObject]:
    """Those of the objects that change. `shorten`: removes secrets from a text and limits its length."""
    for each in objects:
        if each.effect is not ObjectEffect.UPDATE:
            yield ChangedObject(*each.key, each.effect)
        elif change := _update(each, shorten):
            yield change


def _desired(live: Manifest, predicted: Manifest | None, before: Manifest | None, after: Manifest | None) -> Any:
    if after is None:  # Argo CD itself adds it to the manifests, such as the namespace of the destination
        return predicted or live
    if before is None:
        return with_fields(live, _comparable(after))
    return with_manifest_change(predicted or live, _comparable(before), _comparable(after))


def _update(item: DesiredObject, shorten: Callable[[str], str]) -> ChangedObject | None:
    is_secret = item.key[0] == "Secret"
    fields = changed_fields(item.live, item.desired, item.raw or ABSENT, shorten, hides_values=is_secret)
    listed = tuple(islice(fields, MAX_CHANGED_FIELDS + 1))
    if not listed:
        return None
    shown = listed[:MAX_CHANGED_FIELDS]
    return ChangedObject(*item.key, ObjectEffect.UPDATE, shown, is_truncated=len(listed) > len(shown))


def _by_key(manifests: Iterable[Manifest], rendered: RenderedApplication) -> dict[_Key, Manifest]:
    """Manifests by the keys that their objects have in the cluster; what is no object is left out."""
    has_namespace = {each.kind: bool(each.namespace) for each in rendered.objects}
    found = {}
    for manifest in manifests:
        metadata, kind = manifest.get("metadata"), object_kind(manifest)
        if not isinstance(metadata, dict) or not metadata.get("name") or not kind:
            continue  # a hook with generateName has no name before it exists
        namespace = str(metadata.get("namespace") or "")
        namespace = (namespace or rendered.namespace) if has_namespace.get(kind, bool(namespace)) else ""
        found[kind, namespace, str(metadata["name"])] = manifest
    return found


def object_kind(manifest: Manifest) -> str:
    """The kind with its API group; empty if the manifest has none."""
    group, kind = str(manifest.get("apiVersion") or "").rpartition("/")[0], manifest.get("kind")
    if not isinstance(kind, str):
        return ""
    return f"{group}/{kind}" if group else kind


def _comparable(manifest: Manifest) -> Manifest:
    """The manifest without its namespace, which the live object always names."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "namespace"}
    return {**manifest, "metadata": metadata}


def _is_hook(manifest: Manifest | None) -> bool:
    metadata = (manifest or {}).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and any(name in annotations for name in HOOK_ANNOTATIONS)


def limited_objects(changes: Iterable[ChangedObject]) -> tuple[tuple[ChangedObject, ...], bool]:
    """The changes that a report lists, and whether there are more."""
    listed = tuple(islice(changes, MAX_CHANGED_OBJECTS + 1))
    return listed[:MAX_CHANGED_OBJECTS], len(listed) > MAX_CHANGED_OBJECTS


def is_pin(change: FieldChange) -> bool:
    """Whether the field of an Application is the revision that a source of it is pinned to."""
    return change.path.startswith("spec.source") and change.path.endswith(".targetRevision")


def changes_sources(fields: Iterable[FieldChange]) -> bool:
    return any(each.path.startswith("spec.source") and not is_pin(each) for each in fields)


_PHRASES = {
    Effect.CREATES: ("creates its objects", "create their objects"),
    Effect.CHANGES: ("changes", "change"),
    Effect.PIN: ("only moves its pin", "only move their pin"),
    Effect.NONE: ("changes no object", "change no object"),
}


def changes_summary(changes: Iterable[ApplicationChange]) -> str:
    """`1 changes, 12 only move their pin`; empty if nothing is synced."""
    counts = Counter(change.effect for change in changes)
    parts = [f"{counts[each]} {phrases[counts[each] > 1]}" for each, phrases in _PHRASES.items() if counts[each]]
    if unknown := counts[Effect.UNKNOWN]:
        parts.append(f"which objects change is not known for {unknown}")
    return ", ".join(parts)
