"""Applications and ApplicationSets of a live Argo CD, and the parent of each: an Application or an ApplicationSet."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Kind(StrEnum):
    APPLICATION = "Application"
    SET = "ApplicationSet"


class Thing(NamedTuple):
    """An Application or an ApplicationSet."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Match:
    """A match expression of an ApplicationSet step, evaluated on the labels of its Applications."""

    key: str
    values: frozenset[str]
    is_negated: bool = False

    def fits(self, labels: Mapping[str, str]) -> bool:
        return (labels.get(self.key) in self.values) is not self.is_negated


@dataclass(frozen=True, slots=True)
class FoundApplication:
    thing: Thing
    project: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    wave: int = 0
    """Sync wave within its parent."""
    owner: Thing | None = None
    """The ApplicationSet that owns it."""
    tracked_by: str = ""
    """The Application in its Argo CD tracking mark: NAME, or NAMESPACE_NAME outside the namespace of Argo CD."""
    lists: frozenset[Thing] = frozenset()
    """Applications and ApplicationSets among its resources."""
    depends_on: tuple[str, ...] | None = None
    """Dependencies from its annotation; `None` without the annotation."""


@dataclass(frozen=True, slots=True)
class FoundSet:
    thing: Thing
    wave: int = 0
    tracked_by: str = ""
    steps: tuple[tuple[Match, ...], ...] = ()
    """Steps in which it syncs its Applications; empty if it does not order them."""


@dataclass(frozen=True)
class Inventory:
    applications: tuple[FoundApplication, ...]
    sets: tuple[FoundSet, ...] = ()
    home: str = "argocd"
    """The namespace of the Argo CD that reconciles the Applications."""
    assumed: str = "argocd"
    """The namespace of Applications for which a platform file gives none."""
    parents_count_children: bool = False
    """Whether the health of a parent includes that of its children; if so, no child can depend on its parent."""

    @cached_property
    def by_thing(self) -> Mapping[Thing, FoundApplication | FoundSet]:
        """Includes ApplicationSets that could not be read but are named as owners of Applications."""
        found: dict[Thing, FoundApplication | FoundSet] = {}
        for each in self.applications:
            found[each.thing] = each
            if each.owner:
                found[each.owner] = FoundSet(each.owner)
        return found | {each.thing: each for each in self.sets}


@dataclass(frozen=True)
class Lineage:
    """A forest: `parents[x]` is the parent of x. Objects without a parent have no entry."""

    makers: Mapping[Thing, Thing]

    @cached_property
    def made(self) -> Mapping[Thing, tuple[Thing, ...]]:
        found: dict[Thing, list[Thing]] = {}
        for thing in sorted(self.makers):
            found.setdefault(self.makers[thing], []).append(thing)
        return {maker: tuple(things) for maker, things in found.items()}

    def is_parent(self, thing: Thing) -> bool:
        return thing.kind is Kind.APPLICATION and thing in self.made

    def below(self, thing: Thing) -> Iterator[Thing]:
        """All Applications below an object, and the object itself if it is an Application."""
        queue = [thing]
        while queue:
            each = queue.pop()
            if each.kind is Kind.APPLICATION:
                yield each
            queue += self.made.get(each, ())

    def parent_of(self, thing: Thing) -> Thing | None:
        """The nearest Application above the object."""
        maker = self.makers.get(thing)
        return self.makers.get(maker) if maker and maker.kind is Kind.SET else maker


def lineage_of(inventory: Inventory) -> tuple[Lineage, tuple[str, ...]]:
    """The ownership, and notices: where Applications list each other in a cycle, one of the links is left out."""
    listed_by: dict[Thing, list[Thing]] = {}
    for application in inventory.applications:
        for thing in application.lists - {application.thing}:
            listed_by.setdefault(thing, []).append(application.thing)
    makers: dict[Thing, Thing] = {}
    notices = []
    for thing, found in sorted(inventory.by_thing.items()):
        maker = _maker(found, sorted(listed_by.get(thing, ())), inventory)
        if maker is None:
            continue
        if thing in _above(maker, makers):
            notices.append(f"{thing} and {maker} list each other: that one is its parent is left out")
        else:
            makers[thing] = maker
    return Lineage(makers), tuple(notices)


def _maker(found: FoundApplication | FoundSet, listed_by: list[Thing], inventory: Inventory) -> Thing | None:
    """Its owner, else the Application that tracks it (unless only others list it), else the first that lists it."""
    if isinstance(found, FoundApplication) and found.owner:
        return found.owner
    namespace, _, name = found.tracked_by.rpartition("_")
    marked = Thing(Kind.APPLICATION, namespace or inventory.home, name)
    if marked != found.thing and (marked in listed_by or (not listed_by and marked in inventory.by_thing)):
        return marked
    return listed_by[0] if listed_by else None


def _above(thing: Thing, makers: Mapping[Thing, Thing]) -> Iterable[Thing]:
    """The object itself and its parents, up to the top."""
    each: Thing | None = thing
    while each is not None:
        yield each
        each = makers.get(each)
