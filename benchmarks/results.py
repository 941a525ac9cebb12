"""Figures as values, and their two files: docs/benchmarks.json for programs, docs/benchmarks.md for people."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
INTRODUCTION = """\
# Benchmarks

`make bench` writes this page. It runs all clients in one run, on one machine, over loopback, each in new processes
that take turns. The fastest run of each counts, because other load can only make a run slower. Absolute times depend
on the machine; compare the ratios. The last column names what a figure is compared with. If the target is a minimum
(`>=`), the ratio says how many times faster Windlass is; if it is a maximum (`<=`), how many times as long it takes.

"""


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    target: str
    """`>= 3`, `< 120`, or empty for a figure without one."""
    against: str
    versions: str
    when: str

    @property
    def holds(self) -> bool | None:
        if not self.target:
            return None
        relation, limit = self.target.split()
        return {">=": self.value >= float(limit), "<=": self.value <= float(limit), "<": self.value < float(limit)}[
            relation
        ]


PEERS = ("aiohttp", "msgspec", "kubernetes", "lightkube")
VERSIONS = ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PEERS)])
WHEN = f"{datetime.now(UTC):%Y-%m-%d}"


def figure(name: str, value: float, unit: str, target: str = "", against: str = "") -> Figure:
    return Figure(name, round(value, 3), unit, target, against, VERSIONS, WHEN)


def write(figures: list[Figure], name: str = "benchmarks", introduction: str = INTRODUCTION) -> None:
    rows = [{**asdict(figure), "holds": figure.holds} for figure in figures]
    (DOCS / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
    table = ["| figure | value | target | holds | against |", "|---|---|---|---|---|"]
    words = {True: "yes", False: "**no**", None: ""}
    for figure in figures:
        value = f"{figure.value:,.3g} {figure.unit}" if figure.value < 1000 else f"{figure.value:,.0f} {figure.unit}"
        table.append(f"| {figure.name} | {value} | {figure.target} | {words[figure.holds]} | {figure.against} |")
    ends = f"\nMeasured {figures[0].when} with {figures[0].versions}.\n"
    (DOCS / f"{name}.md").write_text(introduction + "\n".join(table) + "\n" + ends)
