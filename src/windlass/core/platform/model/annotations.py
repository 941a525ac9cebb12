"""Dependencies from annotations of Applications, merged into those of the platform file. The file takes precedence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.graphs import Cycle, Graph, graph_problems
from windlass.core.platform.model.node_names import MAX_NAME_LENGTH
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from windlass.core.platform.model.applications import Platform

DEPENDS_ON = "windlass.dev/depends-on"
"""Comma-separated names of nodes, or of Applications as `[namespace/]name`."""


def parse_names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def merge_annotations(
    platform: Platform, annotations: Mapping[str, tuple[str, ...]], explicit_dependencies: Collection[str]
) -> Platform:
    """The platform with the dependencies that annotations add.

    `annotations` holds the references in the annotation of each node. Annotations are ignored for the nodes in
    `explicit_dependencies`, whose `dependsOn` the platform file gives, even if it is empty; dependencies of a whole
    stack always apply. Raises one `InvalidInput` that lists all problems. A run calls this once, after it has observed
    the cluster and before it plans.
    """
    nodes = _nodes_by_reference(platform)
    dependencies = {name: list(needed) for name, needed in platform.graph.dependencies.items()}
    added: dict[str, list[str]] = {}
    problems = []
    for name in sorted(annotations.keys() - set(explicit_dependencies)):
        for reference in annotations[name]:
            if reference in nodes:
                added.setdefault(name, []).append(nodes[reference])
            else:
                what = f"{_annotation_location(platform, name)}: there is no node {reference[:MAX_NAME_LENGTH]!r}"
                problems.append((what, did_you_mean(reference, platform.applications.keys() - {name})))
    for name, extra in added.items():
        dependencies[name] += extra
    problems += _cycle_problems(platform, dependencies, added)
    if problems:
        raise _invalid_annotations(problems)
    return replace(platform, graph=Graph.build(dependencies)) if added else platform


def _nodes_by_reference(platform: Platform) -> Mapping[str, str]:
    """The node that each reference means: a node name takes precedence over the name of an Application."""
    applications = platform.applications.items()
    targets = {str(node.target): name for name, node in applications if isinstance(node.target, ApplicationRef)}
    return targets | {name: name for name in platform.applications}


def _cycle_problems(
    platform: Platform, dependencies: Mapping[str, list[str]], added: Mapping[str, list[str]]
) -> Iterator[tuple[str, str]]:
    """The platform file alone has no cycles, so every cycle contains a dependency that an annotation added."""
    for problem in graph_problems(dependencies):
        assert isinstance(problem, Cycle)
        pairs = zip(problem.path, problem.path[1:], strict=False)
        name = next(name for name, dependency in pairs if dependency in added.get(name, ()))
        yield (
            f"{_annotation_location(platform, name)}: {problem}",
            "remove a name there, or give dependsOn in the platform file",
        )


def _annotation_location(platform: Platform, name: str) -> str:
    return f"annotation {DEPENDS_ON} of Application {platform.applications[name].target}"


def _invalid_annotations(problems: list[tuple[str, str]]) -> InvalidInput:
    if len(problems) == 1:
        return InvalidInput(problems[0][0], hint=problems[0][1])
    lines = "".join(f"\n  {what} ({hint})" if hint else f"\n  {what}" for what, hint in problems)
    return InvalidInput(f"{len(problems)} mistakes in annotations of Applications{lines}")
