"""Parents that would recreate what a teardown deletes.

Such a parent is deleted first, without cascade; if it must stay, the teardown is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.planning.plans import Unmet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.teardown.inventory import Item


@dataclass(frozen=True, slots=True)
class Maker:
    """An Application or ApplicationSet that defines Applications or ApplicationSets."""

    item: Item
    makes: frozenset[Item]
    makes_again: bool
    """It recreates a deleted child without being asked: an ApplicationSet, or an Application with automated sync."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a teardown removes."""

    nodes: Mapping[Item, str]
    """Names of all nodes of the platform that are Applications."""
    graph: Graph
    """As returned by `with_parent_dependencies`."""
    selected: frozenset[str]
    """Nodes in the scope."""
    live: frozenset[str]
    """Nodes that exist in the cluster."""
    is_whole: bool
    """The scope is the whole platform."""


@dataclass(frozen=True, slots=True)
class Detachment:
    first: tuple[Maker, ...] = ()
    """Parents to delete before anything else, in this order and without cascade."""
    refused: tuple[Unmet, ...] = ()
    """Parents that keep the teardown from running, each with the reason."""


def ordered(graph: Graph, makers: Iterable[Maker], nodes: Mapping[Item, str]) -> Graph:
    """The graph in which children also depend on their parent node, so that a teardown deletes the parent after them.

    Left out are parents that recreate their children by themselves, and children that the parent itself depends on.
    """
    known = {maker.item: maker for maker in makers}
    for item in sorted(known.keys() & nodes.keys()):
        own = nodes[item]
        made = {nodes[leaf] for leaf in _leaves(item, known, nodes) if leaf in nodes}
        after = made - graph.closure([own])
        if after and not known[item].makes_again:
            needs = {name: (*needed, own) if name in after else needed for name, needed in graph.needs.items()}
            graph = Graph.build(needs)
    return graph


def detachment(makers: Iterable[Maker], reach: Reach) -> Detachment:
    known = {maker.item: maker for maker in makers}
    first, refused = [], []
    for item in _from_the_top(known):
        decided = _decided(known[item], _leaves(item, known, reach.nodes), reach)
        if isinstance(decided, Unmet):
            refused.append(decided)
        elif decided:
            first.append(known[item])
    return Detachment(tuple(first), tuple(refused))


def _decided(maker: Maker, leaves: frozenset[Item], reach: Reach) -> Unmet | bool:
    """Whether the parent is deleted first; an `Unmet` if the teardown must be refused because of it."""
    names = {leaf: reach.nodes.get(leaf, "") for leaf in leaves}
    inside = frozenset(name for name in names.values() if name in reach.selected)
    outside = sorted(leaf for leaf, name in names.items() if name not in reach.selected)
    own = reach.nodes.get(maker.item, "")
    endangered = tuple(sorted(inside & reach.live))
    if own in reach.selected:
        taken = [leaf for leaf in outside if names[leaf] in reach.live]
        why = f"it would take {_list(taken)} along, which is outside the scope: widen the scope"
        is_last = not maker.makes_again and all(own in reach.graph.closure([name]) for name in inside)
        return Unmet(str(maker.item), (own,), why) if taken else bool(inside) and not is_last
    if not inside:
        return False
    if not own and not outside:
        return maker.makes_again or reach.is_whole
    if not maker.makes_again or not endangered:
        return False
    stays = f"it makes {_list(outside)} too" if outside else "it is outside the scope"
    hint = "widen the scope, or first take out of it what is to go"
    return Unmet(str(maker.item), endangered, f"it would make them again, and cannot go, for {stays}: {hint}")


def _leaves(item: Item, known: Mapping[Item, Maker], nodes: Mapping[Item, str]) -> frozenset[Item]:
    """Its descendants, except for those that are themselves parents and not nodes."""
    reached: set[Item] = set()
    todo = [item]
    while todo:
        maker = known.get(todo.pop())
        for made in (maker.makes if maker else frozenset()) - reached - {item}:
            reached.add(made)
            todo.append(made)
    return frozenset(made for made in reached if made in nodes or made not in known)


def _from_the_top(known: Mapping[Item, Maker]) -> list[Item]:
    """Every parent after its own parents; a cycle is entered at its first key in sort order."""
    order: dict[Item, None] = {}
    above = {item: sorted(upper for upper, maker in known.items() if item in maker.makes) for item in known}

    def visit(item: Item, path: frozenset[Item]) -> None:
        for upper in above[item]:
            if upper not in path:
                visit(upper, path | {upper})
        order.setdefault(item)

    for item in sorted(known):
        visit(item, frozenset({item}))
    return list(order)


def _list(items: Iterable[Item]) -> str:
    return ", ".join(str(item) for item in items)
