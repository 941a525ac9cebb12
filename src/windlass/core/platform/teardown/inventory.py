"""What belongs to Applications that go, what may go after them, and what they leave behind. Pure: by two looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
FURNITURE = frozenset({
    ("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "istio-ca-root-cert"),
})  # fmt: skip
"""What is in every namespace, whoever made it."""
ELECTIONS = ("coordination.k8s.io", "Lease")
"""Without anybody who takes part they mean nothing."""
NOBODYS = frozenset({"", "default"})


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """The address of an object, whatever its version."""

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
    """An object as it was there at one look."""

    item: Item
    uid: str
    resource: str = ""
    """The name of its kind's definition."""
    owners: tuple[str, ...] = ()
    mark: str = ""
    """The Application that made it, as the object itself says; its label may say so too."""
    label: str = ""
    finalizers: tuple[str, ...] = ()
    is_kept: bool = False
    """It says itself that it stays when its Application goes."""
    is_deleting: bool = False

    def maker(self, *, by_label: bool) -> str:
        return self.mark or (self.label if by_label else "")


@dataclass(frozen=True, slots=True)
class Leaving:
    """Applications that are gone, or go: their names as objects are marked with them, and what they said they made."""

    makers: frozenset[str]
    made: frozenset[Item]
    by_label: bool = False
    without: frozenset[Item] = frozenset()
    """What has a removal of its own."""

    def holds(self, found: Found) -> bool:
        """Made by one of them. Something of this name that another Application has taken over is not."""
        maker = found.maker(by_label=self.by_label)
        is_theirs = maker in self.makers if maker else found.item in self.made
        return is_theirs and found.item not in self.without


def are_labels_marks(looked: Iterable[Found], made: Collection[Item]) -> bool:
    """Whether this Argo CD marks what it makes by label alone: what it made has labels, and no other mark."""
    theirs = [found for found in looked if found.item in made]
    return any(found.label for found in theirs) and not any(found.mark for found in theirs)


def belongings(looked: Collection[Found], leaving: Leaving) -> frozenset[str]:
    """By uid: what they made, what that owns, and so on."""
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
    """What is still there of what was theirs. What goes with its owner is not named beside it."""
    there = {found.uid for found in looked if found.uid in before or leaving.holds(found)}
    there -= {found.uid for found in looked if found.item in leaving.without}
    roots = [found for found in looked if found.uid in there and not there.intersection(found.owners)]
    return tuple(sorted(roots, key=lambda found: found.item))


def idle_definitions(looked: Collection[Found], left: Iterable[Found]) -> tuple[Found, ...]:
    """Of what is left: definitions of kinds of which there is no object."""
    used = {found.resource for found in looked}
    return tuple(found for found in left if found.item.is_definition and found.item.name not in used)


def contents(looked: Iterable[Found], namespace: str) -> tuple[Item, ...]:
    """What is in a namespace, besides what is in all of them."""
    inside = (found.item for found in looked if found.item.namespace == namespace)
    lasting = (item for item in inside if (item.group, item.kind) != ELECTIONS)
    return tuple(sorted(item for item in lasting if (item.kind, item.name) not in FURNITURE))


def own_namespaces(wanted: Iterable[str], others: Collection[str], argocd: str) -> tuple[str, ...]:
    """Namespaces that are nobody else's: no Application that stays is in them, and they are not the cluster's own."""
    return tuple(
        sorted(
            {name for name in wanted if name not in others and name not in NOBODYS | {argocd} and not _is_system(name)}
        )
    )


def _is_system(namespace: str) -> bool:
    return namespace.startswith("kube-")
