"""Drafts a platform from a live Argo CD: stacks by parent, order from sync waves, steps and annotations.

Users review and edit the draft: it gives the reason for every dependency and lists what it leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from windlass.core.platform.drafting.ownership import (
    ArgoKind,
    ArgoRef,
    ObservedApplication,
    ObservedApplicationSet,
    build_ownership,
)
from windlass.core.platform.model.annotations import DEPENDS_ON, MAX_NAMES_SHOWN, MAX_NOTICES, cycle_text
from windlass.core.platform.model.cycles import closing_additions, cycle_through
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.node_names import MAX_NAME_LENGTH, unique_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from windlass.core.platform.drafting.ownership import ArgoInventory, OwnershipTree

Edge = tuple[str, str]
"""(name, dependency)."""
EdgeReasons = dict[Edge, str]


class StackGroup(NamedTuple):
    """The Applications of one stack: those of a project, or of a parent, at one sync wave or step if it has several."""

    origin: ArgoRef | str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class DraftNode:
    name: str
    target: str
    """Empty if the Application has the name of the node and is in the default namespace."""
    dependencies: tuple[Edge, ...] | None = None
    """(dependency, reason) pairs; `None` if the draft has no `dependsOn` for the node."""
    omitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftStack:
    name: str
    description: str
    dependencies: tuple[Edge, ...]
    nodes: tuple[DraftNode, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    stacks: tuple[DraftStack, ...]
    graph: Graph
    """The graph that follows from the stacks and nodes."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _DraftContext:
    """Everything that is known before dependencies: the objects, their parents, node names and stacks."""

    inventory: ArgoInventory
    ownership: OwnershipTree
    ranks: Mapping[ArgoRef, Mapping[ArgoRef, int]]
    """By parent: the sync wave or ApplicationSet step of each child. Empty if all children have the same."""
    names: Mapping[ArgoRef, str]
    groups: Mapping[ArgoRef, StackGroup]
    stacks: Mapping[StackGroup, str]

    @cached_property
    def members(self) -> Mapping[str, list[str]]:
        members: dict[str, list[str]] = {}
        for ref in sorted(self.groups, key=self.names.__getitem__):
            members.setdefault(self.stack_name(ref), []).append(self.names[ref])
        return members

    def stack_name(self, ref: ArgoRef) -> str:
        return self.stacks[self.groups[ref]]


def draft_platform(inventory: ArgoInventory) -> Draft:
    ownership, warnings = build_ownership(inventory)
    ranks = {parent: _ranks(parent, inventory, ownership) for parent in sorted(ownership.children)}
    groups = {each.ref: _group(each, ownership, ranks) for each in inventory.applications}
    context = _DraftContext(inventory, ownership, ranks, _node_names(inventory), groups, _stack_names(groups.values()))
    stack_edges, edges = _stack_edges(context), _parent_edges(context)
    dependencies = _node_dependencies(context.members, stack_edges, edges)
    omitted = _add_annotations(context, edges, dependencies)
    _remove_implied_edges(context.members, Graph.build(dependencies), stack_edges, edges)
    graph = Graph.build(_node_dependencies(context.members, stack_edges, edges))
    notices = (*warnings, *(f"{name}: {each}" for name in sorted(omitted) for each in omitted[name]))
    return Draft(_draft_stacks(context, graph, (stack_edges, edges), omitted), graph, notices)


def _ranks(parent: ArgoRef, inventory: ArgoInventory, ownership: OwnershipTree) -> Mapping[ArgoRef, int]:
    ranks: dict[ArgoRef, int] = {}
    for ref in ownership.children[parent]:
        child = inventory.by_ref[ref]
        rank = (
            child.sync_wave if parent.kind is ArgoKind.APPLICATION else _rollout_step(child, inventory.by_ref[parent])
        )
        if rank is not None:
            ranks[ref] = rank
    return ranks if len(set(ranks.values())) > 1 else {}


def _rollout_step(
    application: ObservedApplication | ObservedApplicationSet,
    application_set: ObservedApplication | ObservedApplicationSet,
) -> int | None:
    """The first step that matches, counted from 1; `None` if no step matches."""
    assert isinstance(application, ObservedApplication)
    assert isinstance(application_set, ObservedApplicationSet)
    matching = (
        n for n, step in enumerate(application_set.steps, 1) if all(match.matches(application.labels) for match in step)
    )
    return next(matching, None)


def _group(
    application: ObservedApplication, ownership: OwnershipTree, ranks: Mapping[ArgoRef, Mapping[ArgoRef, int]]
) -> StackGroup:
    """A parent is in the stack of its own children; an Application without a parent is in the stack of its project."""
    if ownership.is_parent(application.ref):
        return StackGroup(application.ref)
    parent = ownership.parents.get(application.ref)
    if parent is None:
        return StackGroup(application.project)
    return StackGroup(parent, ranks[parent].get(application.ref))


def _node_names(inventory: ArgoInventory) -> Mapping[ArgoRef, str]:
    """Applications in the default namespace keep their name; others get a different one if it is taken."""
    names: dict[ArgoRef, str] = {}
    taken: set[str] = set()
    for ref in sorted((each.ref for each in inventory.applications), key=lambda it: _namespace_priority(it, inventory)):
        names[ref] = unique_name((ref.name, f"{ref.namespace}-{ref.name}"), taken)
        taken.add(names[ref])
    return names


def _namespace_priority(ref: ArgoRef, inventory: ArgoInventory) -> tuple[bool, bool, ArgoRef]:
    return (ref.namespace != inventory.default_namespace, ref.namespace != inventory.argocd_namespace, ref)


def _stack_names(groups: Iterable[StackGroup]) -> Mapping[StackGroup, str]:
    names: dict[StackGroup, str] = {}
    for group in sorted(set(groups), key=_group_sort_key):
        names[group] = unique_name(_stack_name_candidates(group), set(names.values()))
    return names


def _group_sort_key(group: StackGroup) -> tuple[bool, tuple[str, ...], bool, int]:
    is_project = isinstance(group.origin, str)
    origin = (group.origin,) if isinstance(group.origin, str) else group.origin
    return (is_project, origin, group.rank is not None, group.rank or 0)


def _stack_name_candidates(group: StackGroup) -> tuple[str, ...]:
    if isinstance(group.origin, str):
        return (group.origin, f"{group.origin}-project")
    word = "wave" if group.origin.kind is ArgoKind.APPLICATION else "step"
    sign = "minus-" if group.rank is not None and group.rank < 0 else ""
    suffix = "" if group.rank is None else f"-{word}-{sign}{abs(group.rank)}"
    kind, _, name = group.origin
    return (f"{name}{suffix}", f"{name}-{kind}{suffix}", f"{'-'.join(group.origin)}{suffix}")


def _stack_edges(context: _DraftContext) -> EdgeReasons:
    """Dependencies between stacks: each wave or step depends on the previous one, the first wave on the parent."""
    edges: EdgeReasons = {}
    for parent, ranks in context.ranks.items():
        levels = _levels(context, ranks)
        is_application = parent.kind is ArgoKind.APPLICATION
        if is_application and levels and not context.inventory.parent_health_includes_children:
            first_level = levels[min(levels)]
            edges |= {(stack, context.stack_name(parent)): f"{parent.name} makes these" for stack in first_level}
        for before, after in pairwise(levels):
            reason = f"{'sync wave' if is_application else 'step'} {before} before {after} in {parent}"
            edges |= {(late, early): reason for late in levels[after] for early in levels[before]}
    return edges


def _levels(context: _DraftContext, ranks: Mapping[ArgoRef, int]) -> Mapping[int, set[str]]:
    """The stacks at each wave or step, including those of all descendants; a level without Applications is left out."""
    levels: dict[int, set[str]] = {}
    for child in sorted(ranks, key=ranks.__getitem__):
        for ref in context.ownership.applications_below(child):
            levels.setdefault(ranks[child], set()).add(context.stack_name(ref))
    return levels


def _parent_edges(context: _DraftContext) -> EdgeReasons:
    if context.inventory.parent_health_includes_children:
        return {}
    parents = ((ref, context.ownership.parent_application(ref)) for ref in context.names)
    return {(context.names[thing], context.names[parent]): f"made by {parent}" for thing, parent in parents if parent}


def _node_dependencies(
    members: Mapping[str, list[str]], stack_edges: Iterable[Edge], edges: Iterable[Edge]
) -> dict[str, set[str]]:
    dependencies: dict[str, set[str]] = {name: set() for names in members.values() for name in names}
    for stack, other in stack_edges:
        for name in members[stack]:
            dependencies[name].update(members[other])
    for name, dependency in edges:
        dependencies[name].add(dependency)
    return dependencies


def _add_annotations(
    context: _DraftContext, edges: EdgeReasons, dependencies: dict[str, set[str]]
) -> dict[str, list[str]]:
    """Add dependencies from annotations, except unknown names and those that close a cycle; return what is omitted."""
    omitted: dict[str, list[str]] = {}
    added: dict[str, set[str]] = {}
    for application in context.inventory.applications:
        name = context.names[application.ref]
        resolved = {each: _resolve_reference(each, application.ref, context) for each in application.depends_on or ()}
        added[name] = {node for node in resolved.values() if node}
        unknown = [each[:MAX_NAME_LENGTH] for each, node in resolved.items() if not node]
        if unknown:
            lines = [f"names {each!r}, which is no Application here" for each in unknown[:MAX_NAMES_SHOWN]]
            omitted[name] = _annotation_lines(lines, len(unknown))
    closing = closing_additions(dependencies, added)
    for name, needed in added.items():
        kept = needed.difference(closing.get(name, ()))
        dependencies[name] |= kept
        for dependency in kept:
            edges.setdefault((name, dependency), f"annotation {DEPENDS_ON}")
    for name, lines in _cycle_lines(closing, dependencies):
        omitted[name] = [*omitted.get(name, ()), *lines]
    return omitted


def _cycle_lines(
    closing: Mapping[str, tuple[str, ...]], dependencies: Mapping[str, set[str]]
) -> Iterator[tuple[str, list[str]]]:
    """What is omitted because of a cycle; the first cycles are shown, because finding each costs a search."""
    ordered = {name: sorted(needed) for name, needed in dependencies.items()}
    for number, (name, needed) in enumerate(closing.items()):
        lines = []
        for dependency in needed[:MAX_NAMES_SHOWN]:
            cycle = cycle_through(name, dependency, ordered) if number < MAX_NOTICES else (name, "...", name)
            lines.append(f"names {dependency}, but dependencies go round in a circle: {cycle_text(cycle)}")
        yield name, _annotation_lines(lines, len(needed))


def _annotation_lines(lines: list[str], count: int) -> list[str]:
    """Lines about names in an annotation, and how many more there are."""
    rest = [f"{DEPENDS_ON}: {count - len(lines)} more names are left out"] if count > len(lines) else []
    return [*(f"{DEPENDS_ON} {line}" for line in lines), *rest]


def _resolve_reference(reference: str, declared_by: ArgoRef, context: _DraftContext) -> str | None:
    """The node of a reference: NAMESPACE/NAME, or NAME in the same namespace, then in that of Argo CD."""
    namespace, _, name = reference.rpartition("/")
    for candidate in (namespace,) if namespace else (declared_by.namespace, context.inventory.argocd_namespace):
        if node := context.names.get(ArgoRef(ArgoKind.APPLICATION, candidate, name)):
            return node
    return None


def _remove_implied_edges(
    members: Mapping[str, list[str]], graph: Graph, stack_edges: EdgeReasons, edges: EdgeReasons
) -> None:
    """Remove edges that the remaining ones imply; the order stays the same."""
    implied = set(graph.implied_edges())

    def node_edges(edge: Edge) -> Iterator[Edge]:
        return ((name, other) for name in members[edge[0]] for other in members[edge[1]])

    for edge in [each for each in stack_edges if implied.issuperset(node_edges(each))]:
        del stack_edges[edge]
    covered = {pair for edge in stack_edges for pair in node_edges(edge)}
    for edge in [each for each in edges if each in implied or each in covered]:
        del edges[edge]


def _draft_stacks(
    context: _DraftContext,
    graph: Graph,
    edge_reasons: tuple[EdgeReasons, EdgeReasons],
    omitted: Mapping[str, list[str]],
) -> tuple[DraftStack, ...]:
    """The stacks of the draft, in starting order."""
    level = {name: number for number, wave in enumerate(graph.waves) for name in wave}
    stack_edges, edges = (_edges_by_name(reasons) for reasons in edge_reasons)
    groups = {stack: group for group, stack in context.stacks.items()}
    records = {name: context.inventory.by_ref[ref] for ref, name in context.names.items()}
    drafts = []
    for stack in sorted(
        context.members, key=lambda stack: (min(level[each] for each in context.members[stack]), stack)
    ):
        names = sorted(context.members[stack], key=lambda name: (level[name], name))
        nodes = tuple(
            _draft_node(name, records[name], edges, omitted, context.inventory.default_namespace) for name in names
        )
        drafts.append(
            DraftStack(stack, _describe_group(groups[stack], context.ownership), stack_edges.get(stack, ()), nodes)
        )
    return tuple(drafts)


def _edges_by_name(reasons: EdgeReasons) -> Mapping[str, tuple[Edge, ...]]:
    edges: dict[str, list[Edge]] = {}
    for (name, dependency), reason in sorted(reasons.items()):
        edges.setdefault(name, []).append((dependency, reason))
    return {name: tuple(dependencies) for name, dependencies in edges.items()}


def _draft_node(
    name: str,
    record: ObservedApplication | ObservedApplicationSet,
    edges: Mapping[str, tuple[Edge, ...]],
    omitted: Mapping[str, list[str]],
    default_namespace: str,
) -> DraftNode:
    """A node with the annotation always gets a `dependsOn`, so that the file takes precedence from now on."""
    ref = record.ref
    target = ref.name if ref.namespace == default_namespace else f"{ref.namespace}/{ref.name}"
    is_annotated = isinstance(record, ObservedApplication) and record.depends_on is not None
    dependencies = edges.get(name, () if is_annotated else None)
    return DraftNode(name, "" if target == name else target, dependencies, tuple(omitted.get(name, ())))


def _describe_group(group: StackGroup, ownership: OwnershipTree) -> str:
    if isinstance(group.origin, str):
        return f"project {group.origin}"
    if group.rank is not None:
        word = "sync wave" if group.origin.kind is ArgoKind.APPLICATION else "step"
        return f"made by {group.origin}, {word} {group.rank}"
    return f"{group.origin}, which makes others" if ownership.is_parent(group.origin) else f"made by {group.origin}"
