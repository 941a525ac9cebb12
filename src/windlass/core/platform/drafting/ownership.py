"""Applications and ApplicationSets of a live Argo CD, and the parent of each: an Application or an ApplicationSet."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class ArgoKind(StrEnum):
    APPLICATION = "Application"
    APPLICATION_SET = "ApplicationSet"


class ArgoRef(NamedTuple):
    """An Application or an ApplicationSet."""

    kind: ArgoKind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class LabelExpression:
    """A match expression of an ApplicationSet step, evaluated on the labels of its Applications."""

    key: str
    values: frozenset[str]
    is_negated: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return (labels.get(self.key) in self.values) is not self.is_negated


@dataclass(frozen=True, slots=True)
class ObservedApplication:
    ref: ArgoRef
    project: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    sync_wave: int = 0
    """Sync wave within its parent."""
    owner: ArgoRef | None = None
    """The ApplicationSet that owns it."""
    tracked_by: str = ""
    """The Application in its Argo CD tracking mark: NAME, or NAMESPACE_NAME outside the namespace of Argo CD."""
    listed_children: frozenset[ArgoRef] = frozenset()
    """Applications and ApplicationSets among its resources."""
    depends_on: tuple[str, ...] | None = None
    """Dependencies from its annotation; `None` without the annotation."""


@dataclass(frozen=True, slots=True)
class ObservedApplicationSet:
    ref: ArgoRef
    sync_wave: int = 0
    tracked_by: str = ""
    steps: tuple[tuple[LabelExpression, ...], ...] = ()
    """Steps in which it syncs its Applications; empty if it does not order them."""


@dataclass(frozen=True)
class ArgoInventory:
    applications: tuple[ObservedApplication, ...]
    application_sets: tuple[ObservedApplicationSet, ...] = ()
    argocd_namespace: str = "argocd"
    """The namespace of the Argo CD that reconciles the Applications."""
    default_namespace: str = "argocd"
    """The namespace of Applications for which a platform file gives none."""
    parent_health_includes_children: bool = False
    """Whether the health of a parent includes that of its children; if so, no child can depend on its parent."""

    @cached_property
    def by_ref(self) -> Mapping[ArgoRef, ObservedApplication | ObservedApplicationSet]:
        """Includes ApplicationSets that could not be read but are named as owners of Applications."""
        found: dict[ArgoRef, ObservedApplication | ObservedApplicationSet] = {}
        for each in self.applications:
            found[each.ref] = each
            if each.owner:
                found[each.owner] = ObservedApplicationSet(each.owner)
        return found | {each.ref: each for each in self.application_sets}


@dataclass(frozen=True)
class OwnershipTree:
    """A forest: `parents[x]` is the parent of x. Objects without a parent have no entry."""

    parents: Mapping[ArgoRef, ArgoRef]

    @cached_property
    def children(self) -> Mapping[ArgoRef, tuple[ArgoRef, ...]]:
        children: dict[ArgoRef, list[ArgoRef]] = {}
        for ref in sorted(self.parents):
            children.setdefault(self.parents[ref], []).append(ref)
        return {parent: tuple(refs) for parent, refs in children.items()}

    def is_parent(self, ref: ArgoRef) -> bool:
        return ref.kind is ArgoKind.APPLICATION and ref in self.children

    def applications_below(self, ref: ArgoRef) -> Iterator[ArgoRef]:
        """All Applications below an object, and the object itself if it is an Application."""
        queue = [ref]
        while queue:
            each = queue.pop()
            if each.kind is ArgoKind.APPLICATION:
                yield each
            queue += self.children.get(each, ())

    def parent_application(self, ref: ArgoRef) -> ArgoRef | None:
        """The nearest Application above the object."""
        parent = self.parents.get(ref)
        return self.parents.get(parent) if parent and parent.kind is ArgoKind.APPLICATION_SET else parent


def build_ownership(inventory: ArgoInventory) -> tuple[OwnershipTree, tuple[str, ...]]:
    """The ownership, and notices: where Applications list each other in a cycle, one of the links is left out."""
    listed_by: dict[ArgoRef, list[ArgoRef]] = {}
    for application in inventory.applications:
        for ref in application.listed_children - {application.ref}:
            listed_by.setdefault(ref, []).append(application.ref)
    parents: dict[ArgoRef, ArgoRef] = {}
    notices = []
    for ref, record in sorted(inventory.by_ref.items()):
        parent = _find_parent(record, sorted(listed_by.get(ref, ())), inventory)
        if parent is None:
            continue
        if ref in _ancestors(parent, parents):
            notices.append(f"{ref} and {parent} list each other: that one is its parent is left out")
        else:
            parents[ref] = parent
    return OwnershipTree(parents), tuple(notices)


def _find_parent(
    record: ObservedApplication | ObservedApplicationSet, listed_by: list[ArgoRef], inventory: ArgoInventory
) -> ArgoRef | None:
    """Its owner, else the Application that tracks it (unless only others list it), else the first that lists it."""
    if isinstance(record, ObservedApplication) and record.owner:
        return record.owner
    namespace, _, name = record.tracked_by.rpartition("_")
    tracked = ArgoRef(ArgoKind.APPLICATION, namespace or inventory.argocd_namespace, name)
    if tracked != record.ref and (tracked in listed_by or (not listed_by and tracked in inventory.by_ref)):
        return tracked
    return listed_by[0] if listed_by else None


def _ancestors(ref: ArgoRef, parents: Mapping[ArgoRef, ArgoRef]) -> Iterable[ArgoRef]:
    """The object itself and its parents, up to the top."""
    each: ArgoRef | None = ref
    while each is not None:
        yield each
        each = parents.get(each)
