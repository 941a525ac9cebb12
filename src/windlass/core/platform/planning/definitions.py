"""Whether it is known what the definition of a node is: what Argo CD cannot render, or git no longer has, is a failure.

A parent that Argo CD cannot compare keeps the resources of its last comparison in its status, so its children look
defined and in sync.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import Failed, Reason
from windlass.core.platform.model.graphs import Graph

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import ParentApplication, Snapshot

MAX_SHOWN_NAMES = 10


def definition_failures(platform: Platform, snapshot: Snapshot, names: Iterable[str]) -> dict[str, Failed]:
    """Why the definition of nodes is not known, by name; objects that are nodes are not defined on their own."""
    applications = [name for name in names if name not in platform.resource_nodes]
    return {name: failed for name in applications if (failed := definition_failure(name, snapshot))}


def definition_failure(name: str, snapshot: Snapshot) -> Failed | None:
    """Why the definition of a node that is an Application is not known; `None` if it is."""
    parent = snapshot.parents.get(name)
    if parent and (failed := parent_failure(parent)):
        return failed
    if name in snapshot.unanswered:
        return Failed(Reason.NOT_ANSWERING, "Argo CD did not answer the request to compare it again", is_final=True)
    if parent and not any(each.is_outdated for each in parent.lineage):
        detail = f"{parent} does not define it any more: it is not in git"
        return None if parent.defines_child else Failed(Reason.NOT_DEFINED, detail, is_final=True)
    return None if parent or name in snapshot.states else _absent_failure(snapshot)


def _absent_failure(snapshot: Snapshot) -> Failed | None:
    """Why a node does not exist that nothing defines; `None` if it may still be defined."""
    if broken := next((failed for each in snapshot.platform_parents if (failed := parent_failure(each))), None):
        return broken
    detail = "it does not exist, and no Application defines it"
    return Failed(Reason.NOT_DEFINED, detail, is_final=True) if snapshot.has_all_definitions else None


def parent_failure(parent: ParentApplication) -> Failed | None:
    """The failure that the topmost broken parent causes for everything below it; `None` if none is broken."""
    for each in parent.lineage:
        if not each.is_answering:
            detail = f"Argo CD did not answer the request to compare {each} again"
            return Failed(Reason.NOT_ANSWERING, detail, is_final=True, cause=str(each))
        if each.read_error:
            reason = Reason.RIGHT_MISSING if each.missing_right else Reason.UNREADABLE
            detail = f"whether {each} can generate its Applications cannot be read: "
            detail += each.missing_right or each.read_error
            return Failed(reason, detail, is_final=True, cause=str(each))
        if each.problem:
            return Failed(Reason.PARENT_BROKEN, f"{each}: {each.problem}", is_final=True, cause=str(each))
    return None


def with_outdated_parents(
    graph: Graph, snapshot: Snapshot, names: Collection[str]
) -> tuple[Graph, dict[str, ParentApplication]]:
    """The graph in which nodes also depend on parents that are updated in this run; and these parents, by node.

    A parent outside `names` is not updated, nor is one that depends on the node itself before the node's turn.
    """
    outdated: dict[str, ParentApplication] = {}
    for name in sorted(names):
        parent = snapshot.parents.get(name)
        movable = [each for each in parent.lineage if not each.node or each.node in names] if parent else []
        if not any(each.is_outdated for each in movable):
            continue  # the usual case: its dependents need not be known
        later = graph.reversed().closure([name])
        first = next((each for each in movable if each.is_outdated and each.node not in later), None)
        if first is None:
            continue
        outdated[name] = first
        above = {each.node for each in movable if each.node} - later
        graph = Graph.build({**graph.dependencies, name: {*graph.dependencies[name], *above}})
    return graph, outdated


def with_rewritten_parent(snapshot: Snapshot, name: str) -> Snapshot:
    """The snapshot in which this parent is about to be written: what it defined until now says nothing any more."""

    def rewrite(parent: ParentApplication) -> ParentApplication:
        parent = replace(parent, parent=rewrite(parent.parent) if parent.parent else None)
        is_written = str(parent) == name
        return replace(parent, problem="", is_answering=True, defines_child=True) if is_written else parent

    parents = {node: rewrite(parent) for node, parent in snapshot.parents.items()}
    platform_parents = tuple(rewrite(parent) for parent in snapshot.platform_parents)
    return replace(snapshot, parents=parents, platform_parents=platform_parents, has_all_definitions=False)


def definition_notices(snapshot: Snapshot) -> Iterator[str]:
    """What a user must know about definitions that concern no single node."""
    if snapshot.unknown_applications:
        names = _join(snapshot.unknown_applications)
        yield f"defined in git, but not in the platform file, so neither deployed nor checked: {names}"


def automated_parent_warnings(snapshot: Snapshot, nodes: Collection[str]) -> Iterator[str]:
    for parent in snapshot.platform_parents:
        children = sorted(name for name in nodes if (own := snapshot.parents.get(name)) and str(own) == str(parent))
        if parent.is_automated and parent.kind == "Application" and children:
            yield f"{parent} syncs itself: it updates the definitions of {_join(children)} at once, in no order"


def _join(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - MAX_SHOWN_NAMES} more" if len(shown) > MAX_SHOWN_NAMES else ""
    return ", ".join(shown[:MAX_SHOWN_NAMES]) + more
