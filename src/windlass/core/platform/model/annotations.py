"""Dependencies from annotations of Applications, merged into those of the platform file. The file takes precedence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.graphs import Cycle, Graph, problems_of
from windlass.core.platform.model.node_names import LONGEST
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from windlass.core.platform.model.applications import Platform

DEPENDS_ON = "windlass.dev/depends-on"
"""Comma-separated names of nodes, or of Applications as `[namespace/]name`."""


def names_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def merged(platform: Platform, annotated: Mapping[str, tuple[str, ...]], stated: Collection[str]) -> Platform:
    """The platform with the dependencies that annotations add.

    `annotations` holds the references in the annotation of each node. Annotations are ignored for the nodes in
    `explicit_dependencies`, whose `dependsOn` the platform file gives, even if it is empty; dependencies of a whole
    stack always apply. Raises one `InvalidInput` that lists all problems. A run calls this once, after it has observed
    the cluster and before it plans.
    """
    known = _known(platform)
    needs = {name: list(needed) for name, needed in platform.graph.needs.items()}
    added: dict[str, list[str]] = {}
    mistakes = []
    for name in sorted(annotated.keys() - set(stated)):
        for said in annotated[name]:
            if said in known:
                added.setdefault(name, []).append(known[said])
            else:
                what = f"{_place(platform, name)}: there is no node {said[:LONGEST]!r}"
                mistakes.append((what, did_you_mean(said, platform.applications.keys() - {name})))
    for name, dependencies in added.items():
        needs[name] += dependencies
    mistakes += _circles(platform, needs, added)
    if mistakes:
        raise _refusal(mistakes)
    return replace(platform, graph=Graph.build(needs)) if added else platform


def _known(platform: Platform) -> Mapping[str, str]:
    """The node that each reference means: a node name takes precedence over the name of an Application."""
    applications = platform.applications.items()
    targets = {str(node.target): name for name, node in applications if isinstance(node.target, ApplicationRef)}
    return targets | {name: name for name in platform.applications}


def _circles(
    platform: Platform, needs: Mapping[str, list[str]], added: Mapping[str, list[str]]
) -> Iterator[tuple[str, str]]:
    """The platform file alone has no cycles, so every cycle contains a dependency that an annotation added."""
    for problem in problems_of(needs):
        assert isinstance(problem, Cycle)
        pairs = zip(problem.path, problem.path[1:], strict=False)
        name = next(name for name, dependency in pairs if dependency in added.get(name, ()))
        yield f"{_place(platform, name)}: {problem}", "remove a name there, or give dependsOn in the platform file"


def _place(platform: Platform, name: str) -> str:
    return f"annotation {DEPENDS_ON} of Application {platform.applications[name].target}"


def _refusal(mistakes: list[tuple[str, str]]) -> InvalidInput:
    if len(mistakes) == 1:
        return InvalidInput(mistakes[0][0], hint=mistakes[0][1])
    lines = "".join(f"\n  {what} ({hint})" if hint else f"\n  {what}" for what, hint in mistakes)
    return InvalidInput(f"{len(mistakes)} mistakes in annotations of Applications{lines}")
