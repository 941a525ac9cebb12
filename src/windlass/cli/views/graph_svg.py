"""A dependency graph as one self-contained SVG: boxes in columns by wave, coloured by stack."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from windlass.cli.views.graph_layout import BOX_HEIGHT, compute_layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.cli.views.graph_layout import Layout, Slot
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.graphs import Graph

CHARACTER_WIDTH, BOX_PADDING, COLUMN_GAP, MARGIN, HEADER_HEIGHT = 7.3, 10.0, 90.0, 24.0, 76.0
LEGEND_ENTRY_WIDTH = 32.0
STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1f24}"
    ".wave{fill:#57606a;font-size:11px}.title{font-size:14px;font-weight:bold}"
    "path{fill:none;stroke-width:1.3;opacity:.75}rect{stroke-width:1}.critical{stroke-width:2.6}"
)


def svg(platform: Platform, graph: Graph) -> str:
    placement = compute_layout(graph)
    left, width = _columns(graph)
    total_width = max(left[-1] + width[-1] if left else 0.0, _legend_width(platform, graph)) + MARGIN
    total_height = HEADER_HEIGHT + placement.total_height + MARGIN
    size = f'viewBox="0 0 {total_width:.0f} {total_height:.0f}" width="{total_width:.0f}" height="{total_height:.0f}"'
    title = f"platform {escape(platform.name)}: {len(graph.names)} applications"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{title}</title><style>{STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff" stroke="none"/>',
        f'<text class="title" x="{MARGIN}" y="24">{title}</text>',
        *_legend(platform, graph),
        *(
            f'<text class="wave" x="{x:.0f}" y="{HEADER_HEIGHT - 10}">wave {number}</text>'
            for number, x in enumerate(left, 1)
        ),
        *_paths(platform, graph, placement, (left, width)),
        *_boxes(platform, graph, placement, (left, width)),
        "</svg>",
    ]
    return "\n".join(parts)


def _columns(graph: Graph) -> tuple[list[float], list[float]]:
    """Left edge and width of each column."""
    widths = [max(map(len, wave)) * CHARACTER_WIDTH + 2 * BOX_PADDING for wave in graph.waves]
    left: list[float] = []
    for number in range(len(widths)):
        left.append(MARGIN if not number else left[-1] + widths[number - 1] + COLUMN_GAP)
    return left, widths


def _colours(platform: Platform) -> Mapping[str, tuple[str, str]]:
    """By stack: fill and line colour. Hue and lightness alternate, so that neighbouring stacks differ."""
    count = max(len(platform.stacks), 1)
    colours = {}
    for number, stack in enumerate(platform.stacks):
        hue, light = number * 360 * 5 // count % 360, (93, 84)[number % 2]
        colours[stack.name] = (f"hsl({hue},70%,{light}%)", f"hsl({hue},60%,{light // 2 - 6}%)")
    return colours


def _shown_stacks(platform: Platform, graph: Graph) -> list[str]:
    shown = {platform.applications[name].stack for name in graph.names}
    return [stack.name for stack in platform.stacks if stack.name in shown]


CRITICAL_LEGEND = "thick border: critical"


def _legend(platform: Platform, graph: Graph) -> Iterator[str]:
    colours, x = _colours(platform), MARGIN
    for stack in _shown_stacks(platform, graph):
        fill, line = colours[stack]
        yield f'<rect x="{x:.0f}" y="36" width="12" height="12" rx="2" fill="{fill}" stroke="{line}"/>'
        yield f'<text x="{x + 17:.0f}" y="46">{escape(stack)}</text>'
        x += LEGEND_ENTRY_WIDTH + len(stack) * CHARACTER_WIDTH
    if any(platform.applications[name].critical for name in graph.names):
        yield f'<text x="{x:.0f}" y="46">{CRITICAL_LEGEND}</text>'


def _legend_width(platform: Platform, graph: Graph) -> float:
    entries = [*_shown_stacks(platform, graph), CRITICAL_LEGEND]
    return MARGIN + sum(LEGEND_ENTRY_WIDTH + len(entry) * CHARACTER_WIDTH for entry in entries)


Columns = tuple[list[float], list[float]]


def _boxes(platform: Platform, graph: Graph, placement: Layout, columns: Columns) -> Iterator[str]:
    colours = _colours(platform)
    for column, wave in enumerate(graph.waves):
        for name in wave:
            application = platform.applications[name]
            fill, line = colours[application.stack]
            x, middle = columns[0][column], HEADER_HEIGHT + placement.centers[name, column]
            critical = ' class="critical"' if application.critical else ""
            needs = f", after {', '.join(graph.dependencies[name])}" if graph.dependencies[name] else ""
            yield (
                f"<g><title>{escape(name)} ({escape(application.stack)}){escape(needs)}</title>"
                f'<rect{critical} x="{x:.1f}" y="{middle - BOX_HEIGHT / 2:.1f}" width="{columns[1][column]:.1f}" '
                f'height="{BOX_HEIGHT:.0f}" rx="5" fill="{fill}" stroke="{line}"/>'
                f'<text x="{x + BOX_PADDING:.1f}" y="{middle + 4:.1f}">{escape(name)}</text></g>'
            )


def _paths(platform: Platform, graph: Graph, placement: Layout, columns: Columns) -> Iterator[str]:
    """Curves from the right edge of each slot to the left edge of its targets; a lane also crosses its own column."""
    colours = _colours(platform)
    boxes = {(name, column) for column, wave in enumerate(graph.waves) for name in wave}
    for slot, targets in sorted(placement.links.items()):
        line = colours[platform.applications[slot[0]].stack][1]
        start = _right_edge(slot, columns)
        lane = f"M{columns[0][slot[1]]:.1f} {_center_y(slot, placement):.1f}H{start:.1f}" if slot not in boxes else ""
        curves = "".join(
            _curve(start, _center_y(slot, placement), columns[0][target[1]], _center_y(target, placement))
            for target in targets
        )
        yield f'<path d="{lane}{curves}" stroke="{line}"/>'


def _right_edge(slot: Slot, columns: Columns) -> float:
    return columns[0][slot[1]] + columns[1][slot[1]]


def _center_y(slot: Slot, placement: Layout) -> float:
    return HEADER_HEIGHT + placement.centers[slot]


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    middle = (x + to_x) / 2
    return f"M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
