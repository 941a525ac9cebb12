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

    from windlass.core.platform.teardown.inventory import ResourceKey


@dataclass(frozen=True, slots=True)
class ParentObject:
    """An Application or ApplicationSet that defines Applications or ApplicationSets."""

    key: ResourceKey
    child_keys: frozenset[ResourceKey]
    recreates_children: bool
    """It recreates a deleted child without being asked: an ApplicationSet, or an Application with automated sync."""


@dataclass(frozen=True, slots=True)
class TeardownSelection:
    """What a teardown removes."""

    nodes: Mapping[ResourceKey, str]
    """Names of all nodes of the platform that are Applications."""
    graph: Graph
    """As returned by `with_parent_dependencies`."""
    selected: frozenset[str]
    """Nodes in the scope."""
    live: frozenset[str]
    """Nodes that exist in the cluster."""
    is_whole_platform: bool
    """The scope is the whole platform."""


@dataclass(frozen=True, slots=True)
class ParentRemovalPlan:
    delete_first: tuple[ParentObject, ...] = ()
    """Parents to delete before anything else, in this order and without cascade."""
    refused: tuple[Unmet, ...] = ()
    """Parents that keep the teardown from running, each with the reason."""


def with_parent_dependencies(graph: Graph, parents: Iterable[ParentObject], nodes: Mapping[ResourceKey, str]) -> Graph:
    """The graph in which children also depend on their parent node, so that a teardown deletes the parent after them.

    Left out are parents that recreate their children by themselves, and children that the parent itself depends on.
    """
    parents_by_key = {parent.key: parent for parent in parents}
    for key in sorted(parents_by_key.keys() & nodes.keys()):
        parent_name = nodes[key]
        children = {nodes[leaf] for leaf in _leaf_keys(key, parents_by_key, nodes) if leaf in nodes}
        new_dependents = children - graph.closure([parent_name])
        if new_dependents and not parents_by_key[key].recreates_children:
            needs = {
                name: (*needed, parent_name) if name in new_dependents else needed
                for name, needed in graph.dependencies.items()
            }
            graph = Graph.build(needs)
    return graph


def plan_parent_removal(parents: Iterable[ParentObject], selection: TeardownSelection) -> ParentRemovalPlan:
    parents_by_key = {parent.key: parent for parent in parents}
    delete_first, refused = [], []
    for key in _top_down_keys(parents_by_key):
        decision = _decide_removal(parents_by_key[key], _leaf_keys(key, parents_by_key, selection.nodes), selection)
        if isinstance(decision, Unmet):
            refused.append(decision)
        elif decision:
            delete_first.append(parents_by_key[key])
    return ParentRemovalPlan(tuple(delete_first), tuple(refused))


def _decide_removal(parent: ParentObject, leaves: frozenset[ResourceKey], selection: TeardownSelection) -> Unmet | bool:
    """Whether the parent is deleted first; an `Unmet` if the teardown must be refused because of it."""
    names = {leaf: selection.nodes.get(leaf, "") for leaf in leaves}
    inside = frozenset(name for name in names.values() if name in selection.selected)
    outside = sorted(leaf for leaf, name in names.items() if name not in selection.selected)
    parent_name = selection.nodes.get(parent.key, "")
    recreated = tuple(sorted(inside & selection.live))
    if parent_name in selection.selected:
        also_deleted = [leaf for leaf in outside if names[leaf] in selection.live]
        why = f"would also delete {_join_keys(also_deleted)}, which is outside the scope: widen the scope"
        is_last = not parent.recreates_children and all(
            parent_name in selection.graph.closure([name]) for name in inside
        )
        return Unmet(str(parent.key), (parent_name,), why) if also_deleted else bool(inside) and not is_last
    if not inside:
        return False
    if not parent_name and not outside:
        return parent.recreates_children or selection.is_whole_platform
    if not parent.recreates_children or not recreated:
        return False
    reason = f"it also defines {_join_keys(outside)}" if outside else "it is outside the scope"
    hint = "widen the scope, or first remove their definitions from it"
    return Unmet(str(parent.key), recreated, f"would recreate them and cannot be deleted, because {reason}: {hint}")


def _leaf_keys(
    key: ResourceKey, parents_by_key: Mapping[ResourceKey, ParentObject], nodes: Mapping[ResourceKey, str]
) -> frozenset[ResourceKey]:
    """Its descendants, except for those that are themselves parents and not nodes."""
    reached: set[ResourceKey] = set()
    pending = [key]
    while pending:
        parent = parents_by_key.get(pending.pop())
        for child in (parent.child_keys if parent else frozenset()) - reached - {key}:
            reached.add(child)
            pending.append(child)
    return frozenset(made for made in reached if made in nodes or made not in parents_by_key)


def _top_down_keys(parents_by_key: Mapping[ResourceKey, ParentObject]) -> list[ResourceKey]:
    """Every parent after its own parents; a cycle is entered at its first key in sort order."""
    order: dict[ResourceKey, None] = {}
    parent_keys = {
        key: sorted(parent_key for parent_key, parent in parents_by_key.items() if key in parent.child_keys)
        for key in parents_by_key
    }

    def visit(key: ResourceKey, path: frozenset[ResourceKey]) -> None:
        for parent_key in parent_keys[key]:
            if parent_key not in path:
                visit(parent_key, path | {parent_key})
        order.setdefault(key)

    for item in sorted(parents_by_key):
        visit(item, frozenset({item}))
    return list(order)


def _join_keys(keys: Iterable[ResourceKey]) -> str:
    return ", ".join(str(key) for key in keys)
