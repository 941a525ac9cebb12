"""Which objects belong to removed Applications, which of them remain, and what may be deleted afterwards.

Pure functions: they compare the cluster's objects before and after a teardown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

CRD_GROUP_KIND = ("apiextensions.k8s.io", "CustomResourceDefinition")
DEFAULT_OBJECTS = frozenset({
    ("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "istio-ca-root-cert"),
})  # fmt: skip
"""(Kind, name) of objects that controllers create in every namespace."""
LEASE_GROUP_KIND = ("coordination.k8s.io", "Lease")
"""Leader election leases, which do not count as contents: without a participant they mean nothing."""
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

    def instance(self, *, by_label: bool) -> str:
        return self.tracking_instance or (self.label_instance if by_label else "")


@dataclass(frozen=True, slots=True)
class PresentObjects:
    """The objects that exist, out of those asked for. `unreadable`: what could not be read."""

    objects: tuple[ObservedObject, ...] = ()
    unreadable: tuple[str, ...] = ()


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


def uses_label_tracking(objects: Iterable[ObservedObject], managed_keys: Collection[ResourceKey]) -> bool:
    """Whether Argo CD tracks by label only: its resources have the label, and none has a tracking annotation."""
    managed = [found for found in objects if found.key in managed_keys]
    return any(found.label_instance for found in managed) and not any(found.tracking_instance for found in managed)


def owned_uids(objects: Collection[ObservedObject], removed: RemovedApplications) -> frozenset[str]:
    """UIDs of the objects they manage and, transitively, of everything those objects own."""
    dependents: dict[str, list[str]] = {}
    for found in objects:
        if found.key not in removed.excluded_keys:
            for owner in found.owner_uids:
                dependents.setdefault(owner, []).append(found.uid)
    pending = [found.uid for found in objects if removed.manages(found)]
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


def unused_crds(objects: Collection[ObservedObject], remaining: Iterable[ObservedObject]) -> tuple[ObservedObject, ...]:
    """Those remaining CustomResourceDefinitions whose kind has no objects."""
    used = {found.resource_name for found in objects}
    return tuple(found for found in remaining if found.key.is_crd and found.key.name not in used)


def namespace_contents(objects: Iterable[ObservedObject], namespace: str) -> tuple[ResourceKey, ...]:
    """What a namespace contains, except for leases and what every namespace contains."""
    inside = (found.key for found in objects if found.key.namespace == namespace)
    lasting = (item for item in inside if (item.group, item.kind) != LEASE_GROUP_KIND)
    return tuple(sorted(item for item in lasting if (item.kind, item.name) not in DEFAULT_OBJECTS))


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
