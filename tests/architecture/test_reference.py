"""docs/reference.md lists every invariant, proof and reason; docs/comparison.md shows the measured ratios."""

from __future__ import annotations

import json
import re
from pathlib import Path

from windlass.core.platform.gate_values import Proof, Reason

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference.md").read_text()


def table_rows(heading: str) -> list[tuple[str, ...]]:
    """The rows of the table below this heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [tuple(row.split(" | ")) for row in rows[1:]]


def test_each_proof_is_explained() -> None:
    shown = [(name, value) for name, value, _ in table_rows("Proofs")]
    assert shown == [(proof.name.lower().replace("_", " "), proof.value) for proof in Proof]


def test_each_reason_is_explained() -> None:
    assert [name for name, _, _ in table_rows("Reasons")] == [f"`{reason}`" for reason in Reason]


def test_each_invariant_is_explained_and_tested() -> None:
    explained = re.findall(r"^\*\*INV-(\d):", PAGE, re.MULTILINE)
    tested = sorted(path.name.split("_")[2] for path in (ROOT / "tests/invariants").glob("test_inv_*.py"))
    assert explained == tested


def test_the_comparison_shows_the_measured_ratios() -> None:
    files = [ROOT / "docs/benchmarks.json", ROOT / "docs/benchmarks-real.json"]
    rows = [row for file in files for row in json.loads(file.read_text())]
    ratio = {row["name"]: f"{row['value']:.3g}" for row in rows}
    page = (ROOT / "docs/comparison.md").read_text()
    for graph in ("levels", "graph"):
        names = ("ratio", "floor.ratio", "waves.floor.ratio")
        assert f"| {' | '.join(ratio[f'executor.real.{graph}.{name}'] for name in names)} |" in page
    assert f"takes {ratio['executor.makespan.barrier.ratio']} times as long" in page
