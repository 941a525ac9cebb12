"""Which objects belong to removed Applications, which of them remain, and what may be deleted afterwards.

Pure functions: they compare the cluster's objects before and after a teardown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
FURNITURE = frozenset({
    ("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "istio-ca-root-cert"),
})  # fmt: skip
"""(Kind, name) of objects that controllers create in every namespace."""
ELECTIONS = ("coordination.k8s.io", "Lease")
"""Leader election leases, which do not count as contents: without a participant they mean nothing."""
NOBODYS = frozenset({"", "default"})


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """Identifies an object independently of its API version."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def is_definition(self) -> bool:
        return (self.group, self.kind) == DEFINITION

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place} ({self.group})" if self.group else f"{self.kind} {place}"


@dataclass(frozen=True, slots=True)
class Found:
    """The metadata of an object, as of one listing of the cluster."""

    item: Item
    uid: str
    resource: str = ""
    """The resource as `plural.group`, which is the name of its CustomResourceDefinition if it has one."""
    owners: tuple[str, ...] = ()
    mark: str = ""
    """The Application in its tracking annotation; empty if there is none or it was copied from another object."""
    label: str = ""
    """The Application in its instance label."""
    finalizers: tuple[str, ...] = ()
    is_kept: bool = False
    """Its annotations exclude it from deletion (`Delete=false`, or Helm's `keep`)."""
    is_deleting: bool = False

    def maker(self, *, by_label: bool) -> str:
        return self.mark or (self.label if by_label else "")


@dataclass(frozen=True, slots=True)
class Leaving:
    """Applications that are deleted or being deleted."""

    makers: frozenset[str]
    """Their names as used in tracking annotations and instance labels."""
    made: frozenset[Item]
    """The resources that their status listed."""
    by_label: bool = False
    """Argo CD tracks resources by label only."""
    without: frozenset[Item] = frozenset()
    """Objects that are removed in another way, or not at all."""

    def holds(self, found: Found) -> bool:
        """Whether one of them manages the object. An object that another Application has taken over is not theirs."""
        maker = found.maker(by_label=self.by_label)
        is_theirs = maker in self.makers if maker else found.item in self.made
        return is_theirs and found.item not in self.without


def are_labels_marks(looked: Iterable[Found], made: Collection[Item]) -> bool:
    """Whether Argo CD tracks by label only: its resources have the label, and none has a tracking annotation."""
    theirs = [found for found in looked if found.item in made]
    return any(found.label for found in theirs) and not any(found.mark for found in theirs)


def belongings(looked: Collection[Found], leaving: Leaving) -> frozenset[str]:
    """UIDs of the objects they manage and, transitively, of everything those objects own."""
    dependents: dict[str, list[str]] = {}
    for found in looked:
        if found.item not in leaving.without:
            for owner in found.owners:
                dependents.setdefault(owner, []).append(found.uid)
    todo = [found.uid for found in looked if leaving.holds(found)]
    known = set(todo)
    while todo:
        for uid in dependents.get(todo.pop(), ()):
            if uid not in known:
                known.add(uid)
                todo.append(uid)
    return frozenset(known)


def left_behind(looked: Collection[Found], before: Collection[str], leaving: Leaving) -> tuple[Found, ...]:
    """Objects of theirs that still exist, without those that will be garbage collected with a remaining owner."""
    there = {found.uid for found in looked if found.uid in before or leaving.holds(found)}
    there -= {found.uid for found in looked if found.item in leaving.without}
    roots = [found for found in looked if found.uid in there and not there.intersection(found.owners)]
    return tuple(sorted(roots, key=lambda found: found.item))


def idle_definitions(looked: Collection[Found], left: Iterable[Found]) -> tuple[Found, ...]:
    """Those remaining CustomResourceDefinitions whose kind has no objects."""
    used = {found.resource for found in looked}
    return tuple(found for found in left if found.item.is_definition and found.item.name not in used)


def contents(looked: Iterable[Found], namespace: str) -> tuple[Item, ...]:
    """What a namespace contains, except for leases and what every namespace contains."""
    inside = (found.item for found in looked if found.item.namespace == namespace)
    lasting = (item for item in inside if (item.group, item.kind) != ELECTIONS)
    return tuple(sorted(item for item in lasting if (item.kind, item.name) not in FURNITURE))


def own_namespaces(wanted: Iterable[str], others: Collection[str], argocd: str) -> tuple[str, ...]:
    """Candidates that no other Application uses and that are not system, default or Argo CD's namespaces."""
    return tuple(
        sorted(
            {name for name in wanted if name not in others and name not in NOBODYS | {argocd} and not _is_system(name)}
        )
    )


def _is_system(namespace: str) -> bool:
    return namespace.startswith("kube-")
