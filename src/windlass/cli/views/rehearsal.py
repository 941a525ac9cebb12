"""`windlass rehearse`: the result of a rehearsal as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.core.platform.documents import API_VERSION, plain
from windlass.core.platform.model.graphs import ZERO
from windlass.core.platform.reporting.report_text import duration_words
from windlass.operations.rehearse import blast_radius

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from windlass.operations.rehearse import Rehearsal

WIDTH = 30  # characters of a bar
SHOWN = 4  # names of blocked applications per line


def text(rehearsal: Rehearsal) -> str:
    blocks = (_head(rehearsal), _faults(rehearsal), _failures(rehearsal), _order(rehearsal), _radius(rehearsal))
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block)))


def _head(rehearsal: Rehearsal) -> Iterator[str]:
    premise, summary = rehearsal.premise, rehearsal.report.summary
    counts = ", ".join(f"{number} {word}" for word, number in summary.counts.items())
    yield f"rehearsal of {premise.scope} of {premise.platform.name}, seed {premise.seed}: {summary.verdict}"
    yield f"  {counts}; deploy would end with exit code {summary.exit_code}"
    estimated = duration_words(rehearsal.report.metrics.estimated or ZERO)
    if premise.fails:
        yield f"  all is known after {duration_words(summary.duration)}; without a failure the plan says {estimated}"
        return
    yield f"  takes {duration_words(summary.duration)}; the plan says {estimated}"
    path, expected = rehearsal.report.timeline.critical_path, premise.graph.critical_path(premise.platform.expected)
    yield f"  critical path {duration_words(path.duration)}: {' -> '.join(path.names)}"
    if path.names != expected.names:
        yield f"  by the plan   {duration_words(expected.duration)}: {' -> '.join(expected.names)}"


def _faults(rehearsal: Rehearsal) -> Iterator[str]:
    if rehearsal.hits:
        yield "what went wrong on the way, on purpose"
        yield from (f"  {number:>5}  {word}" for word, number in rehearsal.hits.items())


def _failures(rehearsal: Rehearsal) -> Iterator[str]:
    began, ends = rehearsal.report.summary.started, _ends(rehearsal)
    for failure in rehearsal.report.failures:
        asked = "" if failure.name in rehearsal.premise.fails else ", which was not asked for"
        after = f", known after {duration_words(ends[failure.name] - began)}" if failure.name in ends else ""
        yield f"{failure.name} fails{asked}: {failure.reason}, {failure.detail}{after}"
        yield f"  holds back {len(failure.blocks)}{': ' if failure.blocks else ''}{', '.join(failure.blocks)}"
    for component in rehearsal.report.components:
        if component.name in rehearsal.premise.fails and component.causes:
            yield f"{component.name} does not get its turn: {', '.join(component.causes)} holds it back"


def _order(rehearsal: Rehearsal) -> Iterator[str]:
    """When each application starts and how long it takes, with a bar on the time axis of the whole run."""
    graph, began = rehearsal.premise.graph, rehearsal.report.summary.started
    spans = [(span.name, span.started - began, span.finished - began) for span in rehearsal.report.timeline.spans]
    if not spans:
        return
    waves = {name: number for number, wave in enumerate(graph.waves, 1) for name in wave}
    width, last = max(len(name) for name, _, _ in spans), max(end for _, _, end in spans)
    yield f"  {'starts after':>12}  {'takes':>12}  wave  application"
    for name, start, end in spans:
        words = f"  {duration_words(start):>12}  {duration_words(end - start):>12}  {waves[name]:>4}  {name:<{width}}"
        yield f"{words}  {_bar(start, end, last)}".rstrip()


def _bar(start: timedelta, end: timedelta, last: timedelta) -> str:
    first = min(WIDTH - 1, round(start / last * WIDTH)) if last else 0
    after = round(end / last * WIDTH) if last else 0
    return " " * first + "━" * max(1, after - first)


def _radius(rehearsal: Rehearsal) -> Iterator[str]:
    """Empty if failures were requested: in that case the run itself shows their effect."""
    if rehearsal.premise.fails:
        return
    rows = blast_radius(rehearsal.premise.graph)
    width = max((len(name) for name, _ in rows), default=0)
    yield "if it fails, this many are held back"
    for name, behind in rows:
        if behind:
            more = f" and {len(behind) - SHOWN} more" if len(behind) > SHOWN else ""
            yield f"  {len(behind):>5}  {name:<{width}}  {', '.join(behind[:SHOWN])}{more}"
    alone = sum(not behind for _, behind in rows)
    yield (
        f"  {0:>5}  {alone} others, each of which fails alone" if alone > 1 else f"  {0:>5}  1 other, which fails alone"
    )


def document(rehearsal: Rehearsal) -> str:
    content = {"apiVersion": API_VERSION, "kind": "Rehearsal", **_content(rehearsal)}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def _content(rehearsal: Rehearsal) -> dict[str, Any]:
    premise, report = rehearsal.premise, rehearsal.report
    began = report.summary.started
    results = {component.name: component.result for component in report.components}
    return {
        "platform": premise.platform.name,
        "scope": str(premise.scope),
        "premise": {
            "fails": list(premise.fails),
            "seed": premise.seed,
            "spread": premise.spread,
            "faults": dict(rehearsal.hits),
        },
        "asAsked": not rehearsal.exit_code,
        "verdict": plain(report.summary.verdict),
        "exitCode": report.summary.exit_code,
        "counts": plain(report.summary.counts),
        "seconds": plain(report.summary.duration),
        "estimatedSeconds": plain(report.metrics.estimated),
        "criticalPath": plain(report.timeline.critical_path),
        "estimatedCriticalPath": plain(premise.graph.critical_path(premise.platform.expected)),
        "waves": plain(premise.graph.waves),
        "timeline": [
            {
                "name": span.name,
                "start": plain(span.started - began),
                "end": plain(span.finished - began),
                "result": plain(results[span.name]),
            }
            for span in report.timeline.spans
        ],
        "failures": plain(report.failures),
        "ifItFails": [{"name": name, "holdsBack": list(behind)} for name, behind in blast_radius(premise.graph)],
    }


def _ends(rehearsal: Rehearsal) -> Mapping[str, datetime]:
    return {span.name: span.finished for span in rehearsal.report.timeline.spans}
