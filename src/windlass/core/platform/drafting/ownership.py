"""What was found in an Argo CD, and who made what: parents that list Applications, ApplicationSets that own them."""

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
    """One expression of a step of an ApplicationSet, over the labels of its Applications."""

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
    """Within its parent."""
    owner: Thing | None = None
    """The ApplicationSet that it is of."""
    tracked_by: str = ""
    """The Application whose object it is, as Argo CD marks it: NAME, or NAMESPACE_NAME outside its own namespace."""
    lists: frozenset[Thing] = frozenset()
    """What is among its own objects."""
    depends_on: tuple[str, ...] | None = None
    """What it says itself that it waits for; None if it does not say."""


@dataclass(frozen=True, slots=True)
class FoundSet:
    thing: Thing
    wave: int = 0
    tracked_by: str = ""
    steps: tuple[tuple[Match, ...], ...] = ()
    """In which it lets its Applications sync; empty if in any."""


@dataclass(frozen=True)
class Inventory:
    applications: tuple[FoundApplication, ...]
    sets: tuple[FoundSet, ...] = ()
    home: str = "argocd"
    """The namespace that Argo CD is in."""
    assumed: str = "argocd"
    """The namespace that a platform file means where it names none."""
    parents_count_children: bool = False
    """Whether the health of a parent is that of its children; if so, no child can wait for it."""

    @cached_property
    def by_thing(self) -> Mapping[Thing, FoundApplication | FoundSet]:
        """ApplicationSets that could not be read, too: what they own names them."""
        found: dict[Thing, FoundApplication | FoundSet] = {}
        for each in self.applications:
            found[each.thing] = each
            if each.owner:
                found[each.owner] = FoundSet(each.owner)
        return found | {each.thing: each for each in self.sets}


@dataclass(frozen=True)
class Lineage:
    """A forest: `makers[x]` is what made x. What nobody made is not in it."""

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
        """The Applications of a branch, itself among them if it is one."""
        queue = [thing]
        while queue:
            each = queue.pop()
            if each.kind is Kind.APPLICATION:
                yield each
            queue += self.made.get(each, ())

    def parent_of(self, thing: Thing) -> Thing | None:
        """The nearest Application above."""
        maker = self.makers.get(thing)
        return self.makers.get(maker) if maker and maker.kind is Kind.SET else maker


def lineage_of(inventory: Inventory) -> tuple[Lineage, tuple[str, ...]]:
    """And what was odd: Applications that list each other in a circle count as made by nobody there."""
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
    """Its owner; else of those that list it the one that it is marked for; else the one that it is marked for."""
    if isinstance(found, FoundApplication) and found.owner:
        return found.owner
    namespace, _, name = found.tracked_by.rpartition("_")
    marked = Thing(Kind.APPLICATION, namespace or inventory.home, name)
    if marked != found.thing and (marked in listed_by or (not listed_by and marked in inventory.by_thing)):
        return marked
    return listed_by[0] if listed_by else None


def _above(thing: Thing, makers: Mapping[Thing, Thing]) -> Iterable[Thing]:
    """Itself, and what made it, up to the root."""
    each: Thing | None = thing
    while each is not None:
        yield each
        each = makers.get(each)
