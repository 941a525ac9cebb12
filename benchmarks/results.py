"""Figures as values, and their two files: docs/benchmarks.json for programs, docs/benchmarks.md for people."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
INTRODUCTION = """\
# Benchmarks

Written by `make bench`: every contestant in one run, on one machine, over loopback, each in fresh processes that take
turns; of each the quickest run counts: whatever else the machine does can only make a run slower. Seconds differ
from machine to machine, so what matters are the ratios: above 1 they say how many times quicker Windlass is.

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


def write(figures: list[Figure], directory: Path = DOCS) -> None:
    rows = [{**asdict(figure), "holds": figure.holds} for figure in figures]
    (directory / "benchmarks.json").write_text(json.dumps(rows, indent=1) + "\n")
    table = ["| figure | value | target | holds | against |", "|---|---|---|---|---|"]
    words = {True: "yes", False: "**no**", None: ""}
    for figure in figures:
        value = f"{figure.value:,.3g} {figure.unit}" if figure.value < 1000 else f"{figure.value:,.0f} {figure.unit}"
        table.append(f"| {figure.name} | {value} | {figure.target} | {words[figure.holds]} | {figure.against} |")
    ends = f"\nMeasured {figures[0].when} with {figures[0].versions}.\n"
    (directory / "benchmarks.md").write_text(INTRODUCTION + "\n".join(table) + "\n" + ends)
