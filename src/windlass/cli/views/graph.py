"""`windlass graph`: the dependency graph of a platform as text, mermaid, dot or svg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.cli.views.graph_svg import svg
from windlass.core.platform.model import scopes
from windlass.core.platform.planning import schedules
from windlass.core.platform.reporting.text_layout import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.graphs import Graph
    from windlass.core.platform.model.scopes import Scope

INDENT = "  "


@dataclass(frozen=True, slots=True)
class GraphView:
    """The selected part of a platform, and its dependencies on the rest, each with the nodes that have it."""

    platform: Platform
    graph: Graph
    external_dependencies: Mapping[str, tuple[str, ...]]


def graph_view(platform: Platform, scope: Scope) -> GraphView:
    names = scopes.selected_nodes(platform, scope)
    return GraphView(platform, platform.graph.subgraph(names), platform.graph.external_dependencies(names))


def text(view: GraphView) -> str:
    return "\n".join(_text(view))


def _text(view: GraphView) -> Iterator[str]:
    platform, graph = view.platform, view.graph
    edges = sum(map(len, graph.dependencies.values()))
    counts = ((len(graph.names), "application"), (edges, "dependency"), (len(graph.waves), "wave"))
    yield f"platform {platform.name}: {', '.join(_count_text(*count) for count in counts)}"
    width = max(map(len, graph.names), default=0)
    stacks = max((len(platform.applications[name].stack) for name in graph.names), default=0)
    for number, wave in enumerate(graph.waves, 1):
        yield f"\nwave {number}"
        for name in wave:
            application = platform.applications[name]
            mark = "*" if application.critical else " "
            after = f"after {', '.join(graph.dependencies[name])}" if graph.dependencies[name] else ""
            yield f"{INDENT}{mark} {name:<{width}}  {application.stack:<{stacks}}  {after}".rstrip()
    yield from _footer(view)


def _footer(view: GraphView) -> Iterator[str]:
    platform, graph = view.platform, view.graph
    if view.external_dependencies:
        yield "\noutside the scope, checked only"
        yield from (
            f"{INDENT}  {name}  by {', '.join(dependents)}" for name, dependents in view.external_dependencies.items()
        )
    path = graph.critical_path(platform.expected_durations)
    limits = schedules.ScheduleLimits(platform.max_parallel, platform.barrier)
    duration = schedules.makespan(schedules.estimate_timeline(graph, platform.expected_durations, limits))
    if path.names:
        yield f"\n* critical; expected {format_duration(duration)}, {platform.max_parallel} at a time"
        yield f"longest path {format_duration(path.duration)}: {' -> '.join(path.names)}"


def _count_text(number: int, word: str) -> str:
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"


def mermaid(view: GraphView) -> str:
    ids = {name: f"n{number}" for number, name in enumerate(view.graph.names)}
    lines = ["graph LR"]
    for number, (stack, names) in enumerate(_nodes_by_stack(view).items()):
        lines.append(f'{INDENT}subgraph s{number}["{stack}"]')
        lines += [f"{INDENT * 2}{ids[name]}{_mermaid_shape(view, name)}" for name in names]
        lines.append(f"{INDENT}end")
    lines += [f"{INDENT}{ids[dependency]} --> {ids[name]}" for name, dependency in _edges(view)]
    if critical := [ids[name] for name in view.graph.names if view.platform.applications[name].critical]:
        lines += [f"{INDENT}classDef critical stroke-width:3px", f"{INDENT}class {','.join(critical)} critical"]
    return "\n".join(lines)


def _mermaid_shape(view: GraphView, name: str) -> str:
    """A rectangle; rounded for an object that is a node."""
    return f'("{name}")' if name in view.platform.resource_nodes else f'["{name}"]'


def _dot_attributes(view: GraphView, name: str) -> str:
    marks = ["penwidth=3"] if view.platform.applications[name].critical else []
    marks += ["style=rounded"] if name in view.platform.resource_nodes else []
    return f" [{', '.join(marks)}]" if marks else ""


def dot(view: GraphView) -> str:
    lines = ["digraph platform {", f"{INDENT}rankdir=LR; node [shape=box];"]
    for number, (stack, names) in enumerate(_nodes_by_stack(view).items()):
        lines.append(f'{INDENT}subgraph cluster_{number} {{ label="{stack}";')
        lines += [f'{INDENT * 2}"{name}"{_dot_attributes(view, name)};' for name in names]
        lines.append(f"{INDENT}}}")
    lines += [f'{INDENT}"{dependency}" -> "{name}";' for name, dependency in _edges(view)]
    return "\n".join([*lines, "}"])


def drawing(view: GraphView) -> str:
    return svg(view.platform, view.graph)


def _nodes_by_stack(view: GraphView) -> Mapping[str, list[str]]:
    nodes: dict[str, list[str]] = {}
    for stack in view.platform.stacks:
        if names := [name for name in stack.applications if name in view.graph.dependencies]:
            nodes[stack.name] = names
    return nodes


def _edges(view: GraphView) -> list[tuple[str, str]]:
    """(name, dependency), without dependencies that others imply: the drawing shows the same order with fewer lines."""
    implied = set(view.graph.implied_edges())
    edges = [(name, each) for name, dependencies in view.graph.dependencies.items() for each in dependencies]
    return [edge for edge in edges if edge not in implied]


FORMATS: Mapping[str, Callable[[GraphView], str]] = {"text": text, "mermaid": mermaid, "dot": dot, "svg": drawing}
