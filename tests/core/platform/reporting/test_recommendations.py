"""The catalogue of advice, and the page that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windlass.core.platform.gate_values import Reason
from windlass.core.platform.reporting.recommendations import CATALOGUE, ContainerProblem, RunProblem, detected_problem

PAGE = Path(__file__).parents[4] / "docs" / "recommendations.md"
PLACES = {"{name}": "NAME", "{again}": "the same command again", "{namespace}": "NAMESPACE", "{object}": "KIND NAME"}


def table() -> str:
    rows = ["| detected | sentence | next command |", "|---|---|---|"]
    for detected, (sentence, command) in CATALOGUE.items():
        row = f"| {detected} | {sentence} | `{command}` |"
        for place, word in PLACES.items():
            row = row.replace(place, word)
        rows.append(
            re.sub(r"\{(names|running|duration|estimate|stopped|finished)\}", lambda word: word[1].upper(), row)
        )
    return "\n".join(rows) + "\n"


def test_all_that_is_detected_has_advice() -> None:
    assert CATALOGUE.keys() == {*RunProblem, *Reason, *ContainerProblem}


def test_the_page_shows_the_catalogue() -> None:
    """After a change: python -m tests.core.platform.reporting.test_recommendations writes it anew."""
    assert PAGE.read_text().endswith("\n" + table())


CRASHES, IMAGE = ContainerProblem.CRASHES, ContainerProblem.IMAGE_MISSING


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  container web waits, CrashLoopBackOff: back-off 20s restarting", CRASHES),
        ("  container web waits, CrashLoopBackOff; it last ended with Error, exit code 1", CRASHES),
        ("  container web runs and is not ready; it last ended with Completed, exit code 0", CRASHES),
        ("  container web ended, Error, exit code 137", CRASHES),
        ("  container web waits, ImagePullBackOff: Back-off pulling image", IMAGE),
        ("  container web waits, ErrImagePull", IMAGE),
        ("  container init ended, Completed, exit code 0", Reason.OUT_OF_TIME),
        ("  container web waits, ContainerCreating", Reason.OUT_OF_TIME),
        ("  container web runs and is not ready", Reason.OUT_OF_TIME),
        ("  log web: container web waits, CrashLoopBackOff", Reason.OUT_OF_TIME),
    ],
)
def test_what_is_wrong_with_a_container_is_named_in_place_of_the_time(line: str, expected: str) -> None:
    found = detected_problem(Reason.OUT_OF_TIME, ["Deployment default/web: pod web-1 is Running", line])
    assert found is expected
    assert detected_problem(Reason.OPERATION_FAILED, [line]) is Reason.OPERATION_FAILED
    if found is not Reason.OUT_OF_TIME:
        assert "timeout" not in CATALOGUE[found][0]


if __name__ == "__main__":
    head = PAGE.read_text().partition("| detected")[0]
    PAGE.write_text(head + table())
