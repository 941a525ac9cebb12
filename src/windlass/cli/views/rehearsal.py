"""`windlass rehearse`: the result of a rehearsal as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.core.platform.documents import API_VERSION, to_json
from windlass.core.platform.model.graphs import ZERO
from windlass.core.platform.reporting.text_layout import format_duration, pluralize
from windlass.operations.rehearse import blast_radius

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from windlass.operations.rehearse import Rehearsal

BAR_WIDTH = 30  # characters of a bar
MAX_NAMES = 4  # names of blocked applications per line


def text(rehearsal: Rehearsal) -> str:
    blocks = (
        _head(rehearsal),
        _faults(rehearsal),
        _failures(rehearsal),
        _timeline(rehearsal),
        _blast_radius(rehearsal),
    )
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block)))


def _head(rehearsal: Rehearsal) -> Iterator[str]:
    premise, summary = rehearsal.request, rehearsal.report.summary
    counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items()) or "nothing in scope"
    yield f"rehearsal of {premise.scope} of {premise.platform.name}, seed {premise.seed}: {summary.verdict}"
    yield f"  {counts}; deploy would end with exit code {summary.exit_code}"
    if not summary.counts:
        return
    estimated = format_duration(rehearsal.report.metrics.estimated or ZERO)
    if premise.failing_nodes:
        yield f"  known after {format_duration(summary.duration)}; without a failure the plan says {estimated}"
        return
    yield f"  takes {format_duration(summary.duration)}; the plan says {estimated}"
    path, expected = (
        rehearsal.report.timeline.critical_path,
        premise.graph.critical_path(premise.platform.expected_durations),
    )
    yield f"  critical path {format_duration(path.duration)}: {' -> '.join(path.names)}"
    if path.names != expected.names:
        yield f"  by the plan   {format_duration(expected.duration)}: {' -> '.join(expected.names)}"


def _faults(rehearsal: Rehearsal) -> Iterator[str]:
    if rehearsal.fault_counts:
        yield "injected faults"
        yield from (f"  {number:>5}  {word}" for word, number in rehearsal.fault_counts.items())


def _failures(rehearsal: Rehearsal) -> Iterator[str]:
    started, finish_times = rehearsal.report.summary.started, _finish_times(rehearsal)
    for failure in rehearsal.report.failures:
        unexpected = "" if failure.name in rehearsal.request.failing_nodes else ", which was not requested"
        delay = (
            f", known after {format_duration(finish_times[failure.name] - started)}"
            if failure.name in finish_times
            else ""
        )
        yield f"{failure.name} fails{unexpected}: {failure.reason}, {failure.detail}{delay}"
        yield f"  blocks {len(failure.blocks)}{': ' if failure.blocks else ''}{', '.join(failure.blocks)}"
    for component in rehearsal.report.components:
        if component.name in rehearsal.request.failing_nodes and component.causes:
            yield f"{component.name} is not started: {', '.join(component.causes)} blocks it"


def _timeline(rehearsal: Rehearsal) -> Iterator[str]:
    """When each application starts and how long it takes, with a bar on the time axis of the whole run."""
    graph, started = rehearsal.request.graph, rehearsal.report.summary.started
    spans = [(span.name, span.started - started, span.finished - started) for span in rehearsal.report.timeline.spans]
    if not spans:
        return
    waves = {name: number for number, wave in enumerate(graph.waves, 1) for name in wave}
    width, last = max(len(name) for name, _, _ in spans), max(end for _, _, end in spans)
    yield f"  {'starts after':>12}  {'takes':>12}  wave  application"
    for name, start, end in spans:
        columns = (
            f"  {format_duration(start):>12}  {format_duration(end - start):>12}  {waves[name]:>4}  {name:<{width}}"
        )
        yield f"{columns}  {_bar(start, end, last)}".rstrip()


def _bar(start: timedelta, end: timedelta, last: timedelta) -> str:
    start_column = min(BAR_WIDTH - 1, round(start / last * BAR_WIDTH)) if last else 0
    end_column = round(end / last * BAR_WIDTH) if last else 0
    return " " * start_column + "━" * max(1, end_column - start_column)


def _blast_radius(rehearsal: Rehearsal) -> Iterator[str]:
    """Empty if failures were requested: in that case the run itself shows their effect."""
    rows = blast_radius(rehearsal.request.graph)
    if rehearsal.request.failing_nodes or not rows:
        return
    width = max((len(name) for name, _ in rows), default=0)
    yield "applications that each failure would block"
    for name, blocked in rows:
        if blocked:
            more = f" and {len(blocked) - MAX_NAMES} more" if len(blocked) > MAX_NAMES else ""
            yield f"  {len(blocked):>5}  {name:<{width}}  {', '.join(blocked[:MAX_NAMES])}{more}"
    without_dependents = sum(not behind for _, behind in rows)
    yield f"  {0:>5}  {pluralize(without_dependents, 'application')} without dependents"


def document(rehearsal: Rehearsal) -> str:
    content = {"apiVersion": API_VERSION, "kind": "Rehearsal", **_content(rehearsal)}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def _content(rehearsal: Rehearsal) -> dict[str, Any]:
    premise, report = rehearsal.request, rehearsal.report
    started = report.summary.started
    results = {component.name: component.result for component in report.components}
    return {
        "platform": premise.platform.name,
        "scope": str(premise.scope),
        "premise": {
            "fails": list(premise.failing_nodes),
            "seed": premise.seed,
            "spread": premise.spread,
            "faults": dict(rehearsal.fault_counts),
        },
        "asAsked": not rehearsal.exit_code,
        "verdict": to_json(report.summary.verdict),
        "exitCode": report.summary.exit_code,
        "counts": to_json(report.summary.counts),
        "seconds": to_json(report.summary.duration),
        "estimatedSeconds": to_json(report.metrics.estimated),
        "criticalPath": to_json(report.timeline.critical_path),
        "estimatedCriticalPath": to_json(premise.graph.critical_path(premise.platform.expected_durations)),
        "waves": to_json(premise.graph.waves),
        "timeline": [
            {
                "name": span.name,
                "start": to_json(span.started - started),
                "end": to_json(span.finished - started),
                "result": to_json(results[span.name]),
            }
            for span in report.timeline.spans
        ],
        "failures": to_json(report.failures),
        "ifItFails": [{"name": name, "holdsBack": list(blocked)} for name, blocked in blast_radius(premise.graph)],
    }


def _finish_times(rehearsal: Rehearsal) -> Mapping[str, datetime]:
    return {span.name: span.finished for span in rehearsal.report.timeline.spans}
