"""Dependencies from annotations of Applications, merged into those of the platform file. The file takes precedence.

Every user who may edit an Application can write these, so errors in them are only a notice and never stop a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.cycles import closing_additions, cycle_through
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.node_names import MAX_NAME_LENGTH
from windlass.core.platform.model.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windlass.core.platform.model.applications import Platform

DEPENDS_ON = "windlass.dev/depends-on"
"""Comma-separated names of nodes, or of Applications as `[namespace/]name`."""
MAX_NOTICES = 20  # Applications whose annotation gets a notice of its own
MAX_NAMES_SHOWN = 3  # ignored names in one notice
MAX_SHOWN_LENGTH = 80  # characters of an ignored name
MAX_CYCLE_LENGTH = 8  # names of a cycle that are shown


@dataclass(frozen=True, slots=True)
class AnnotatedPlatform:
    """A platform with the dependencies that annotations add, and what was ignored in them."""

    platform: Platform
    notices: tuple[str, ...] = ()


def parse_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def merge_annotations(
    platform: Platform,
    annotations: Mapping[str, tuple[str, ...]],
    explicit_dependencies: Collection[str],
    argocd_namespace: str = "",
) -> AnnotatedPlatform:
    """Add the dependencies that annotations name, except unknown nodes and dependencies that would close a cycle.

    `annotations` holds the references in the annotation of each node. Annotations are ignored for the nodes in
    `explicit_dependencies`, whose `dependsOn` the platform file gives, even if it is empty; dependencies of a whole
    stack always apply. `argocd_namespace`: where the Applications are whose namespace the platform file does not give.
    A run calls this after it has observed the cluster and before it plans.
    """
    references = {name: names for name, names in annotations.items() if name not in explicit_dependencies}
    merge = _AnnotationMerge(platform, references, _nodes_by_reference(platform, argocd_namespace))
    return AnnotatedPlatform(merge.platform, tuple(merge.notices()))


def cycle_text(path: tuple[str, ...]) -> str:
    """The cycle on one line, without its middle if it is long."""
    if len(path) > MAX_CYCLE_LENGTH:
        path = (*path[: MAX_CYCLE_LENGTH // 2], "...", *path[-MAX_CYCLE_LENGTH // 2 :])
    return " -> ".join(path)


class _AnnotationMerge:
    """Thousands of names in thousands of annotations cost one pass; only those that are shown cost more."""

    def __init__(self, platform: Platform, references: Mapping[str, tuple[str, ...]], nodes: Mapping[str, str]) -> None:
        self._file = platform
        self._references = dict(sorted(references.items()))
        self._nodes = nodes
        added = {
            name: frozenset(nodes[each] for each in references if each in nodes)
            for name, references in self._references.items()
        }
        self._closing = closing_additions(platform.graph.dependencies, added)
        kept = {name: needed.difference(self._closing.get(name, ())) for name, needed in added.items()}
        self.platform = platform
        if any(kept.values()):
            dependencies = platform.graph.dependencies.items()
            graph = Graph.build({name: (*needed, *kept.get(name, ())) for name, needed in dependencies})
            self.platform = replace(platform, graph=graph)

    def notices(self) -> list[str]:
        ignored = {name: rejected for name in self._references if (rejected := self._rejected(name))}
        notices = [self._notice(name, ignored[name]) for name in islice(ignored, MAX_NOTICES)]
        if more := len(ignored) - len(notices):
            notices.append(f"names in the annotation {DEPENDS_ON} of {more} more Applications are ignored")
        return notices

    def _rejected(self, name: str) -> list[str]:
        closing = frozenset(self._closing.get(name, ()))
        return [each for each in self._references[name] if each not in self._nodes or self._nodes[each] in closing]

    def _notice(self, name: str, rejected: list[str]) -> str:
        problems = [self._problem(name, reference) for reference in rejected[:MAX_NAMES_SHOWN]]
        if more := len(rejected) - len(problems):
            problems.append(f"{more} more names are ignored")
        target = self._file.applications[name].target
        return f"annotation {DEPENDS_ON} of Application {target}: {'; '.join(problems)}"

    def _problem(self, name: str, reference: str) -> str:
        shown = repr(reference[:MAX_SHOWN_LENGTH])
        if reference in self._nodes:
            cycle = cycle_through(name, self._nodes[reference], self.platform.graph.dependencies)
            return f"{shown} is ignored, because it would close the cycle {cycle_text(cycle)}"
        hint = did_you_mean(reference[:MAX_NAME_LENGTH], self._file.applications.keys() - {name})
        return f"{shown} is ignored, because there is no such node" + (f" ({hint})" if hint else "")


def _nodes_by_reference(platform: Platform, argocd_namespace: str) -> Mapping[str, str]:
    """The node that each reference means: a node name takes precedence over the name of an Application."""
    nodes: dict[str, str] = {}
    for name, node in platform.applications.items():
        if isinstance(node.target, ApplicationRef):
            nodes[str(node.target)] = name
            if argocd_namespace:
                nodes[f"{node.target.namespace or argocd_namespace}/{node.target.name}"] = name
    return nodes | {name: name for name in platform.applications}
