"""python -m tests.simulation.large_messages: what messages of up to 10 MB in every status cost a deploy.

Time is virtual, and cost is counted: lines of Windlass, the most of them between two turns of the event loop (so long a
signal waits), and the characters that were redacted. The figures are the same on every machine.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.simulation.play import Play, acted
from tests.simulation.scenarios import Act, newer, told
from tests.trace_steps import count_turns
from windlass.kube.redactions import Redactor
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.altered_transport import Alteration
    from windlass.core.platform.reporting.reports import Report

    Status = dict[str, Any]

KB, MB = 1_000, 1_000_000
SIZES = (16 * KB, 400 * KB, 10 * MB)
FIELDS = (
    *("condition", "health", "operation", "result row", "resource row", "word", "unread field"),
    *("pod status", "pod log", "pod log line", "error body"),
)
PLATFORM = "d: b c; c: a; b: a"
SECRET = "correct-horse-battery"
HOSTILE = f"Error: \x1b[31m{SECRET}\u202e password='x ::error::\n"
STOP_AT = 5.0  # virtual seconds


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a deploy, and of another one that is stopped."""

    makespan: float
    """Virtual seconds."""
    answer_time: float
    """Virtual seconds from the request to stop to the report."""
    lines: int
    longest_turn: int
    redacted: int
    """Characters, of all texts together."""
    results: tuple[tuple[str, str], ...]
    longest_text: int
    """Characters of the longest text in the report."""


class CountingRedactor(Redactor):
    count = 0

    def __call__(self, text: str) -> str:
        self.count += len(text)
        return super().__call__(text)


def message(size: int) -> str:
    return (HOSTILE * (size // len(HOSTILE) + 1))[:size]


def operation_rows(status: Status) -> list[Status]:
    return ((status.get("operationState") or {}).get("syncResult") or {}).get("resources") or []


def container_states(status: Status) -> list[Status]:
    containers = status.get("containerStatuses") or ()
    return [each for name in ("state", "lastState") for one in containers for each in one.get(name, {}).values()]


PLACES: dict[str, Callable[[Status], list[Status]]] = {
    "health": lambda status: [status.setdefault("health", {})] if "sync" in status else [],
    "operation": lambda status: [status["operationState"]] if status.get("operationState") else [],
    "result row": lambda status: operation_rows(status)[:1],
    "resource row": lambda status: [row.setdefault("health", {}) for row in (status.get("resources") or ())[:1]],
    "pod status": container_states,
}
"""Where a status has a message."""
ADDED: dict[str, Callable[[str], Status]] = {
    "condition": lambda text: {"conditions": [{"type": "Warning", "message": text}]},
    "word": lambda text: {"conditions": [{"type": text, "message": "m"}]},
    "unread field": lambda text: {"summary": [text]},
}
"""What is added to a status: also where Argo CD writes a word, and where nobody reads."""


def alteration(field: str, size: int) -> Alteration:
    """Puts a message of this size into the field of each Application, or of each pod."""
    text = message(size)

    def alter(item: dict[str, Any]) -> None:
        status = item["status"]
        for place in PLACES[field](status) if field in PLACES else ():
            place["message"] = text
        for name, rows in ADDED[field](text).items() if field in ADDED and "sync" in status else ():
            status[name] = [*(status.get(name) or ()), *rows]

    return alter


def cost(field: str = "", size: int = 0) -> Cost:
    """Deploy a platform of which one application fails, then deploy the next commit and stop that."""
    redactor = CountingRedactor([SECRET])

    async def work(play: Play) -> tuple[Report, float]:
        play.redactor = redactor
        if field in {"pod log", "error body"}:
            play.replace_body = (field, message(size).encode())
        elif field == "pod log line":
            play.replace_body = ("pod log", message(size).replace("\n", " ").encode())
        elif field:
            play.alter = alteration(field, size)
        faults = (Fault(verb="patch", kind="applications*", user="windlass", code=500, times=2),)
        ended = await play.run(Act(faults=faults))
        assert ended.report is not None, ended.error
        stopped = await play.run(Act(stop_at=STOP_AT, pushes_first=True))
        assert stopped.report is not None, stopped.error
        assert stopped.report.summary.was_interrupted
        assert play.witness.holder == ""
        return ended.report, stopped.report.summary.duration.total_seconds() - STOP_AT

    parts: dict[str, Any] = {name: {"kind": "Deployment", "ready_after": 20.0} for name in "abc"}
    scenario = told(PLATFORM, parts={**parts, "d": {"kind": "Deployment", "trouble": "crashing"}})
    scenario = replace(scenario, commits=(scenario.commits[0], newer(scenario.commits[0])))
    (report, answer_time), lines, longest = count_turns(lambda: acted(scenario, work))
    return Cost(
        report.summary.duration.total_seconds(),
        answer_time,
        lines,
        longest,
        redactor.count,
        tuple((each.name, str(each.result)) for each in report.components),
        max(map(len, texts_of(report))),
    )


def texts_of(report: Report) -> list[str]:
    details = [text for each in report.failures for text in (each.detail, *each.diagnostics)]
    return [*details, *report.notices, ""]


def main() -> int:
    print("field           size  makespan  answer       lines  longest turn    redacted  longest text")
    rows = [("", 0), *((field, size) for field in FIELDS for size in SIZES)]
    for field, size in rows:
        each = cost(field, size)
        figures = f"{each.makespan:8.1f}s {each.answer_time:6.1f}s {each.lines:11,} {each.longest_turn:13,}"
        print(
            f"{field or 'none':12} {size // KB:6,}k {figures} {each.redacted:11,} {each.longest_text:13,}", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
