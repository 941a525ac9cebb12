"""`windlass graph`: the dependency graph of a platform as text, mermaid, dot or svg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.cli.views.graph_svg import svg
from windlass.core.platform.model import scopes
from windlass.core.platform.planning import schedules
from windlass.core.platform.reporting.report_text import duration_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.graphs import Graph
    from windlass.core.platform.model.scopes import Scope

INDENT = "  "


@dataclass(frozen=True, slots=True)
class View:
    """The selected part of a platform, and its dependencies on the rest, each with the nodes that have it."""

    platform: Platform
    graph: Graph
    outside: Mapping[str, tuple[str, ...]]


def view_of(platform: Platform, scope: Scope) -> View:
    names = scopes.selected(platform, scope)
    return View(platform, platform.graph.restricted_to(names), platform.graph.needed_from_outside(names))


def text(view: View) -> str:
    return "\n".join(_text(view))


def _text(view: View) -> Iterator[str]:
    platform, graph = view.platform, view.graph
    edges = sum(map(len, graph.needs.values()))
    counts = ((len(graph.names), "application"), (edges, "dependency"), (len(graph.waves), "wave"))
    yield f"platform {platform.name}: {', '.join(_counted(*count) for count in counts)}"
    width = max(map(len, graph.names), default=0)
    stacks = max((len(platform.applications[name].stack) for name in graph.names), default=0)
    for number, wave in enumerate(graph.waves, 1):
        yield f"\nwave {number}"
        for name in wave:
            application = platform.applications[name]
            mark = "*" if application.critical else " "
            after = f"after {', '.join(graph.needs[name])}" if graph.needs[name] else ""
            yield f"{INDENT}{mark} {name:<{width}}  {application.stack:<{stacks}}  {after}".rstrip()
    yield from _footer(view)


def _footer(view: View) -> Iterator[str]:
    platform, graph = view.platform, view.graph
    if view.outside:
        yield "\nneeded from outside, and only checked"
        yield from (f"{INDENT}  {name}  by {', '.join(by)}" for name, by in view.outside.items())
    path = graph.critical_path(platform.expected)
    limits = schedules.Limits(platform.max_parallel, platform.barrier)
    takes = schedules.makespan(schedules.rehearsed(graph, platform.expected, limits))
    if path.names:
        yield f"\n* critical; expected {duration_words(takes)}, {platform.max_parallel} at a time"
        yield f"longest path {duration_words(path.duration)}: {' -> '.join(path.names)}"


def _counted(number: int, word: str) -> str:
    many = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{number} {word if number == 1 else many}"


def mermaid(view: View) -> str:
    ids = {name: f"n{number}" for number, name in enumerate(view.graph.names)}
    lines = ["graph LR"]
    for number, (stack, names) in enumerate(_by_stack(view).items()):
        lines.append(f'{INDENT}subgraph s{number}["{stack}"]')
        lines += [f'{INDENT * 2}{ids[name]}["{name}"]' for name in names]
        lines.append(f"{INDENT}end")
    lines += [f"{INDENT}{ids[dependency]} --> {ids[name]}" for name, dependency in _edges(view)]
    return "\n".join(lines)


def dot(view: View) -> str:
    lines = ["digraph platform {", f"{INDENT}rankdir=LR; node [shape=box];"]
    for number, (stack, names) in enumerate(_by_stack(view).items()):
        lines.append(f'{INDENT}subgraph cluster_{number} {{ label="{stack}";')
        lines += [f'{INDENT * 2}"{name}";' for name in names]
        lines.append(f"{INDENT}}}")
    lines += [f'{INDENT}"{dependency}" -> "{name}";' for name, dependency in _edges(view)]
    return "\n".join([*lines, "}"])


def drawing(view: View) -> str:
    return svg(view.platform, view.graph)


def _by_stack(view: View) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for stack in view.platform.stacks:
        if names := [name for name in stack.applications if name in view.graph.needs]:
            found[stack.name] = names
    return found


def _edges(view: View) -> list[tuple[str, str]]:
    return [(name, dependency) for name, needed in view.graph.needs.items() for dependency in needed]


FORMATS: Mapping[str, Callable[[View], str]] = {"text": text, "mermaid": mermaid, "dot": dot, "svg": drawing}
