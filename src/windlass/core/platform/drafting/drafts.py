"""Drafts a platform from a live Argo CD: stacks by parent, order from sync waves, steps and annotations.

Users review and edit the draft: it gives the reason for every dependency and lists what it leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.platform.drafting.ownership import FoundApplication, FoundSet, Kind, Thing, lineage_of
from windlass.core.platform.model.annotations import DEPENDS_ON
from windlass.core.platform.model.cycles import cycles_of
from windlass.core.platform.model.graphs import Cycle, Graph
from windlass.core.platform.model.node_names import LONGEST, unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from windlass.core.platform.drafting.ownership import Inventory, Lineage

Edge = tuple[str, str]
"""(name, dependency)."""
Reasons = dict[Edge, str]


class Group(NamedTuple):
    """The Applications of one stack: those of a project, or of a parent, at one sync wave or step if it has several."""

    maker: Thing | str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    target: str
    """Empty if the Application has the name of the node and is in the default namespace."""
    needs: tuple[Edge, ...] | None = None
    """(dependency, reason) pairs; `None` if the draft has no `dependsOn` for the node."""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftStack:
    name: str
    about: str
    needs: tuple[Edge, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    stacks: tuple[DraftStack, ...]
    graph: Graph
    """The graph that follows from the stacks and nodes."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Found:
    """Everything that is known before dependencies: the objects, their parents, node names and stacks."""

    inventory: Inventory
    lineage: Lineage
    ranks: Mapping[Thing, Mapping[Thing, int]]
    """By parent: the sync wave or ApplicationSet step of each child. Empty if all children have the same."""
    names: Mapping[Thing, str]
    groups: Mapping[Thing, Group]
    stacks: Mapping[Group, str]

    @cached_property
    def members(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for thing in sorted(self.groups, key=self.names.__getitem__):
            found.setdefault(self.stack_of(thing), []).append(self.names[thing])
        return found

    def stack_of(self, thing: Thing) -> str:
        return self.stacks[self.groups[thing]]


def drafted(inventory: Inventory) -> Draft:
    lineage, odd = lineage_of(inventory)
    ranks = {maker: _ranks(maker, inventory, lineage) for maker in sorted(lineage.made)}
    groups = {each.thing: _group(each, lineage, ranks) for each in inventory.applications}
    found = _Found(inventory, lineage, ranks, _node_names(inventory), groups, _stack_names(groups.values()))
    stack_edges, edges = _stack_edges(found), _parent_edges(found)
    needs = _expanded(found.members, stack_edges, edges)
    left_out = _with_annotations(found, edges, needs)
    _reduce(found.members, Graph.build(needs), stack_edges, edges)
    graph = Graph.build(_expanded(found.members, stack_edges, edges))
    told = (*odd, *(f"{name}: {each}" for name in sorted(left_out) for each in left_out[name]))
    return Draft(_stacks(found, graph, (stack_edges, edges), left_out), graph, told)


def _ranks(maker: Thing, inventory: Inventory, lineage: Lineage) -> Mapping[Thing, int]:
    found: dict[Thing, int] = {}
    for thing in lineage.made[maker]:
        each = inventory.by_thing[thing]
        rank = each.wave if maker.kind is Kind.APPLICATION else _step(each, inventory.by_thing[maker])
        if rank is not None:
            found[thing] = rank
    return found if len(set(found.values())) > 1 else {}


def _step(found: FoundApplication | FoundSet, maker: FoundApplication | FoundSet) -> int | None:
    """The first step that matches, counted from 1; `None` if no step matches."""
    assert isinstance(found, FoundApplication)
    assert isinstance(maker, FoundSet)
    fitting = (n for n, step in enumerate(maker.steps, 1) if all(match.fits(found.labels) for match in step))
    return next(fitting, None)


def _group(found: FoundApplication, lineage: Lineage, ranks: Mapping[Thing, Mapping[Thing, int]]) -> Group:
    """A parent is in the stack of its own children; an Application without a parent is in the stack of its project."""
    if lineage.is_parent(found.thing):
        return Group(found.thing)
    maker = lineage.makers.get(found.thing)
    if maker is None:
        return Group(found.project)
    return Group(maker, ranks[maker].get(found.thing))


def _node_names(inventory: Inventory) -> Mapping[Thing, str]:
    """Applications in the default namespace keep their name; others get a different one if it is taken."""
    found: dict[Thing, str] = {}
    taken: set[str] = set()
    for thing in sorted((each.thing for each in inventory.applications), key=lambda it: _rank_of_home(it, inventory)):
        found[thing] = unique((thing.name, f"{thing.namespace}-{thing.name}"), taken)
        taken.add(found[thing])
    return found


def _rank_of_home(thing: Thing, inventory: Inventory) -> tuple[bool, bool, Thing]:
    return (thing.namespace != inventory.assumed, thing.namespace != inventory.home, thing)


def _stack_names(groups: Iterable[Group]) -> Mapping[Group, str]:
    found: dict[Group, str] = {}
    for group in sorted(set(groups), key=_by_maker):
        found[group] = unique(_stack_wishes(group), set(found.values()))
    return found


def _by_maker(group: Group) -> tuple[bool, tuple[str, ...], bool, int]:
    is_project = isinstance(group.maker, str)
    maker = (group.maker,) if isinstance(group.maker, str) else group.maker
    return (is_project, maker, group.rank is not None, group.rank or 0)


def _stack_wishes(group: Group) -> tuple[str, ...]:
    if isinstance(group.maker, str):
        return (group.maker, f"{group.maker}-project")
    word = "wave" if group.maker.kind is Kind.APPLICATION else "step"
    sign = "minus-" if group.rank is not None and group.rank < 0 else ""
    suffix = "" if group.rank is None else f"-{word}-{sign}{abs(group.rank)}"
    kind, _, name = group.maker
    return (f"{name}{suffix}", f"{name}-{kind}{suffix}", f"{'-'.join(group.maker)}{suffix}")


def _stack_edges(found: _Found) -> Reasons:
    """Dependencies between stacks: each wave or step depends on the previous one, the first wave on the parent."""
    edges: Reasons = {}
    for maker, ranks in found.ranks.items():
        levels = _levels(found, ranks)
        is_parent = maker.kind is Kind.APPLICATION
        if is_parent and levels and not found.inventory.parents_count_children:
            made = levels[min(levels)]
            edges |= {(stack, found.stack_of(maker)): f"{maker.name} makes these" for stack in made}
        for before, after in pairwise(levels):
            reason = f"{'sync wave' if is_parent else 'step'} {before} before {after} in {maker}"
            edges |= {(late, early): reason for late in levels[after] for early in levels[before]}
    return edges


def _levels(found: _Found, ranks: Mapping[Thing, int]) -> Mapping[int, set[str]]:
    """The stacks at each wave or step, including those of all descendants; a level without Applications is left out."""
    levels: dict[int, set[str]] = {}
    for unit in sorted(ranks, key=ranks.__getitem__):
        for thing in found.lineage.below(unit):
            levels.setdefault(ranks[unit], set()).add(found.stack_of(thing))
    return levels


def _parent_edges(found: _Found) -> Reasons:
    if found.inventory.parents_count_children:
        return {}
    parents = ((thing, found.lineage.parent_of(thing)) for thing in found.names)
    return {(found.names[thing], found.names[parent]): f"made by {parent}" for thing, parent in parents if parent}


def _expanded(
    members: Mapping[str, list[str]], stack_edges: Iterable[Edge], edges: Iterable[Edge]
) -> dict[str, set[str]]:
    needs: dict[str, set[str]] = {name: set() for names in members.values() for name in names}
    for stack, other in stack_edges:
        for name in members[stack]:
            needs[name].update(members[other])
    for name, dependency in edges:
        needs[name].add(dependency)
    return needs


def _with_annotations(found: _Found, edges: Reasons, needs: dict[str, set[str]]) -> dict[str, list[str]]:
    """Add dependencies from annotations, except unknown names and those that close a cycle; return what is omitted."""
    left_out: dict[str, list[str]] = {}
    said: list[Edge] = []
    for each in found.inventory.applications:
        name = found.names[each.thing]
        for word in each.depends_on or ():
            if dependency := _meant(word, each.thing, found):
                said.append((name, dependency))
            else:
                what = f"{DEPENDS_ON} names {word[:LONGEST]!r}, which is no Application here"
                left_out.setdefault(name, []).append(what)
    is_sound = not cycles_of(_sorted(_expanded(found.members, (), [*_edges_of(needs), *said])))
    for name, dependency in said:
        is_new = dependency not in needs[name]
        needs[name].add(dependency)
        circles = () if is_sound or not is_new else cycles_of(_sorted(needs))
        if circles:
            needs[name].discard(dependency)
            left_out.setdefault(name, []).append(f"{DEPENDS_ON} names {dependency}, but {Cycle(circles[0])}")
        else:
            edges.setdefault((name, dependency), f"annotation {DEPENDS_ON}")
    return left_out


def _edges_of(needs: Mapping[str, set[str]]) -> Iterator[Edge]:
    return ((name, dependency) for name, needed in needs.items() for dependency in needed)


def _sorted(needs: Mapping[str, set[str]]) -> Mapping[str, list[str]]:
    return {name: sorted(needed) for name, needed in needs.items()}


def _meant(said: str, by: Thing, found: _Found) -> str | None:
    """The node of a reference: NAMESPACE/NAME, or NAME in the same namespace, then in that of Argo CD."""
    namespace, _, name = said.rpartition("/")
    for place in (namespace,) if namespace else (by.namespace, found.inventory.home):
        if node := found.names.get(Thing(Kind.APPLICATION, place, name)):
            return node
    return None


def _reduce(members: Mapping[str, list[str]], graph: Graph, stack_edges: Reasons, edges: Reasons) -> None:
    """Remove edges that the remaining ones imply; the order stays the same."""
    implied = set(graph.implied_edges())

    def spread(edge: Edge) -> Iterator[Edge]:
        return ((name, other) for name in members[edge[0]] for other in members[edge[1]])

    for edge in [each for each in stack_edges if implied.issuperset(spread(each))]:
        del stack_edges[edge]
    covered = {pair for edge in stack_edges for pair in spread(edge)}
    for edge in [each for each in edges if each in implied or each in covered]:
        del edges[edge]


def _stacks(
    found: _Found, graph: Graph, order: tuple[Reasons, Reasons], left_out: Mapping[str, list[str]]
) -> tuple[DraftStack, ...]:
    """The stacks of the draft, in starting order."""
    level = {name: number for number, wave in enumerate(graph.waves) for name in wave}
    stack_edges, edges = (_by_name(reasons) for reasons in order)
    groups = {stack: group for group, stack in found.stacks.items()}
    things = {name: found.inventory.by_thing[thing] for thing, name in found.names.items()}
    drafts = []
    for stack in sorted(found.members, key=lambda stack: (min(level[each] for each in found.members[stack]), stack)):
        names = sorted(found.members[stack], key=lambda name: (level[name], name))
        entries = tuple(_entry(name, things[name], edges, left_out, found.inventory.assumed) for name in names)
        drafts.append(DraftStack(stack, _about(groups[stack], found.lineage), stack_edges.get(stack, ()), entries))
    return tuple(drafts)


def _by_name(reasons: Reasons) -> Mapping[str, tuple[Edge, ...]]:
    found: dict[str, list[Edge]] = {}
    for (name, dependency), reason in sorted(reasons.items()):
        found.setdefault(name, []).append((dependency, reason))
    return {name: tuple(needs) for name, needs in found.items()}


def _entry(
    name: str,
    found: FoundApplication | FoundSet,
    edges: Mapping[str, tuple[Edge, ...]],
    left_out: Mapping[str, list[str]],
    assumed: str,
) -> Entry:
    """A node with the annotation always gets a `dependsOn`, so that the file takes precedence from now on."""
    thing = found.thing
    target = thing.name if thing.namespace == assumed else f"{thing.namespace}/{thing.name}"
    is_stated = isinstance(found, FoundApplication) and found.depends_on is not None
    needs = edges.get(name, () if is_stated else None)
    return Entry(name, "" if target == name else target, needs, tuple(left_out.get(name, ())))


def _about(group: Group, lineage: Lineage) -> str:
    if isinstance(group.maker, str):
        return f"project {group.maker}"
    if group.rank is not None:
        word = "sync wave" if group.maker.kind is Kind.APPLICATION else "step"
        return f"made by {group.maker}, {word} {group.rank}"
    return f"{group.maker}, which makes others" if lineage.is_parent(group.maker) else f"made by {group.maker}"
