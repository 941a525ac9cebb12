"""Which objects belong to removed Applications, which of them remain, and what may be deleted afterwards.

Pure functions: they compare the cluster's objects before and after a teardown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

CRD_GROUP_KIND = ("apiextensions.k8s.io", "CustomResourceDefinition")
DEFAULT_OBJECTS = frozenset({
    ("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "istio-ca-root-cert"),
})  # fmt: skip
"""(Kind, name) of objects that controllers create in every namespace."""
LEASE_GROUP_KIND = ("coordination.k8s.io", "Lease")
"""Leader election leases, which do not count as contents: without a participant they mean nothing."""
_IN_NO_TURN = frozenset({
    "customresourcedefinitions.apiextensions.k8s.io", "persistentvolumeclaims", "persistentvolumes",
})  # fmt: skip
"""Resources whose objects are not removed in the turn of a node, as `plural.group`."""
MAX_SHOWN_UNLISTED = 3
SHARED_NAMESPACES = frozenset({"", "default"})


@dataclass(frozen=True, slots=True, order=True)
class ResourceKey:
    """Identifies an object independently of its API version."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def is_crd(self) -> bool:
        return (self.group, self.kind) == CRD_GROUP_KIND

    @property
    def is_namespace(self) -> bool:
        return (self.group, self.kind) == ("", "Namespace")

    @property
    def is_container(self) -> bool:
        """A CustomResourceDefinition or Namespace: its deletion deletes all objects of its kind, or in it."""
        return self.is_crd or self.is_namespace

    @property
    def is_storage(self) -> bool:
        """A claim or volume: the volume policy decides on these."""
        return self.group == "" and self.kind in {"PersistentVolumeClaim", "PersistentVolume"}

    @property
    def is_lasting(self) -> bool:
        """Neither a lease nor one of the objects that controllers create in every namespace."""
        return (self.group, self.kind) != LEASE_GROUP_KIND and (self.kind, self.name) not in DEFAULT_OBJECTS

    def __str__(self) -> str:
        full_name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {full_name} ({self.group})" if self.group else f"{self.kind} {full_name}"


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """The metadata of an object, as of one listing of the cluster."""

    key: ResourceKey
    uid: str
    resource_name: str = ""
    """The resource as `plural.group`, which is the name of its CustomResourceDefinition if it has one."""
    owner_uids: tuple[str, ...] = ()
    tracking_instance: str = ""
    """The Application in its tracking annotation; empty if there is none or it was copied from another object."""
    label_instance: str = ""
    """The Application in its instance label."""
    finalizers: tuple[str, ...] = ()
    is_kept: bool = False
    """Its annotations exclude it from deletion (`Delete=false`, or Helm's `keep`)."""
    is_deleting: bool = False
    created: str = ""
    """Creation time as the server writes it: RFC 3339 in UTC, so that texts compare as times do."""

    def instance(self, *, by_label: bool) -> str:
        return self.tracking_instance or (self.label_instance if by_label else "")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Objects that could not be listed or read. They count as present: nothing is deleted because they are not seen."""

    what: str
    """The collection, object or API group."""
    error: str
    group: str
    resource_name: str = ""
    """As `plural.group`; empty for every resource of the group."""
    is_permanent: bool = False
    """Another attempt would fail in the same way, for example because a permission is missing."""
    missing_right: str = ""
    """The right without which it could not be read; empty if none is missing."""

    def includes(self, resource_name: str) -> bool:
        """Whether objects of this resource are among them."""
        if self.resource_name:
            return self.resource_name == resource_name
        return resource_name.partition(".")[2] == self.group

    def __str__(self) -> str:
        return f"{self.what}: {self.error}"


@dataclass(frozen=True, slots=True)
class PresentObjects:
    """The objects that exist, out of those asked for, and what could not be read."""

    objects: tuple[ObservedObject, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedApplications:
    """Applications that are deleted or being deleted."""

    instances: frozenset[str]
    """Their names as used in tracking annotations and instance labels."""
    managed_keys: frozenset[ResourceKey]
    """The resources that their status listed."""
    tracks_by_label: bool = False
    """Argo CD tracks resources by label only."""
    excluded_keys: frozenset[ResourceKey] = frozenset()
    """Objects that are removed in another way, or not at all."""

    def manages(self, observed: ObservedObject) -> bool:
        """Whether one of them manages the object. An object that another Application has taken over is not theirs."""
        instance = observed.instance(by_label=self.tracks_by_label)
        is_managed = instance in self.instances if instance else observed.key in self.managed_keys
        return is_managed and observed.key not in self.excluded_keys


def uses_label_tracking(objects: Iterable[ObservedObject], synced_keys: Collection[ResourceKey]) -> bool:
    """Whether Argo CD tracks by label only: its resources have the label, and none has a tracking annotation.

    `synced_keys`: resources that are in sync. Others may carry the label although Argo CD never wrote them: Helm uses
    the same one.
    """
    synced = [found for found in objects if found.key in synced_keys]
    return any(found.label_instance for found in synced) and not any(found.tracking_instance for found in synced)


def left_behind_objects(
    listed: PresentObjects, nodes: Mapping[str, str], *, by_label: bool
) -> dict[str, tuple[ResourceKey, ...]]:
    """Objects that still carry the tracking mark of an Application that is gone, by node.

    `nodes` are the names of nodes by their instance name. Left out is what is not removed in the turn of a node:
    objects that others own or that are marked to be kept, CustomResourceDefinitions, claims and volumes.
    """
    left: dict[str, list[ResourceKey]] = {}
    for found in listed.objects:
        node = nodes.get(found.instance(by_label=by_label))
        is_removed = not (found.owner_uids or found.is_kept or found.key.is_crd or found.key.is_storage)
        if node and is_removed:
            left.setdefault(node, []).append(found.key)
    return {node: tuple(sorted(keys)) for node, keys in left.items()}


def unlisted_summary(unreadable: Iterable[Unreadable]) -> str:
    """What could not be listed and may contain objects that `left_behind_objects` would find; empty if nothing."""
    hiding = sorted((each for each in unreadable if each.resource_name not in _IN_NO_TURN), key=lambda each: each.what)
    if not hiding:
        return ""
    shown = "; ".join(f"{each.what} ({each.missing_right or each.error})" for each in hiding[:MAX_SHOWN_UNLISTED])
    more = f"; and {len(hiding) - MAX_SHOWN_UNLISTED} more" if len(hiding) > MAX_SHOWN_UNLISTED else ""
    return f"its objects could not be listed: {shown}{more}"


def owned_uids(
    objects: Collection[ObservedObject], removed: RemovedApplications, known: Collection[str] = ()
) -> frozenset[str]:
    """UIDs of the objects they manage and, transitively, of everything those objects own.

    `known`: UIDs of further objects of theirs, which may be missing in `objects`.
    """
    dependents: dict[str, list[str]] = {}
    for found in objects:
        if found.key not in removed.excluded_keys:
            for owner in found.owner_uids:
                dependents.setdefault(owner, []).append(found.uid)
    pending = [*known, *(found.uid for found in objects if removed.manages(found))]
    owned = set(pending)
    while pending:
        for uid in dependents.get(pending.pop(), ()):
            if uid not in owned:
                owned.add(uid)
                pending.append(uid)
    return frozenset(owned)


def remaining_objects(
    objects: Collection[ObservedObject], previously_owned: Collection[str], removed: RemovedApplications
) -> tuple[ObservedObject, ...]:
    """Objects of theirs that still exist, without those that will be garbage collected with a remaining owner."""
    remaining = {found.uid for found in objects if found.uid in previously_owned or removed.manages(found)}
    remaining -= {found.uid for found in objects if found.key in removed.excluded_keys}
    without_owned = [
        found for found in objects if found.uid in remaining and not remaining.intersection(found.owner_uids)
    ]
    return tuple(sorted(without_owned, key=lambda found: found.key))


def unused_crds(listed: PresentObjects, remaining: Iterable[ObservedObject]) -> tuple[ObservedObject, ...]:
    """Those remaining CustomResourceDefinitions whose kind has no objects, and which are not marked to be kept."""
    used = {found.resource_name for found in listed.objects}
    return tuple(
        found
        for found in remaining
        if found.key.is_crd
        and not found.is_kept
        and found.key.name not in used
        and not any(each.includes(found.key.name) for each in listed.unreadable)
    )


def namespace_contents(objects: Iterable[ObservedObject], namespace: str) -> tuple[ResourceKey, ...]:
    """What a namespace contains, except for leases and what every namespace contains."""
    return tuple(sorted(found.key for found in objects if found.key.namespace == namespace and found.key.is_lasting))


def exclusive_namespaces(
    candidates: Iterable[str], used_by_others: Collection[str], argocd_namespace: str
) -> tuple[str, ...]:
    """Candidates that no other Application uses and that are not system, default or Argo CD's namespaces."""
    return tuple(
        sorted(
            {
                name
                for name in candidates
                if name not in used_by_others
                and name not in SHARED_NAMESPACES | {argocd_namespace}
                and not _is_system_namespace(name)
            }
        )
    )


def _is_system_namespace(namespace: str) -> bool:
    return namespace.startswith("kube-")
