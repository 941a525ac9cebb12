"""The catalogue of advice, and the page that shows it."""

from __future__ import annotations

from pathlib import Path

from windlass.core.platform.gate_values import Reason
from windlass.core.platform.reporting.recommendations import CATALOGUE, RunProblem

PAGE = Path(__file__).parents[4] / "docs" / "recommendations.md"
PLACES = {"{name}": "NAME", "{again}": "the same command again", "{namespace}": "NAMESPACE", "{object}": "KIND NAME"}


def table() -> str:
    rows = ["| detected | sentence | next command |", "|---|---|---|"]
    for detected, (sentence, command) in CATALOGUE.items():
        row = f"| {detected} | {sentence} | `{command}` |"
        for place, word in PLACES.items():
            row = row.replace(place, word)
        rows.append(row)
    return "\n".join(rows) + "\n"


def test_all_that_is_detected_has_advice() -> None:
    assert CATALOGUE.keys() == {*RunProblem, *Reason}


def test_the_page_shows_the_catalogue() -> None:
    """After a change: python -m tests.core.platform.reporting.test_recommendations writes it anew."""
    assert PAGE.read_text().endswith("\n" + table())


if __name__ == "__main__":
    head = PAGE.read_text().partition("| detected")[0]
    PAGE.write_text(head + table())
