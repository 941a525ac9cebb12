"""The first hundred seeds, with every change; `make sim` plays ten thousand."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from tests.simulation.draws import SMALL_SEEDS
from tests.simulation.play import simulate

TENTH = SMALL_SEEDS // 10


@pytest.mark.parametrize("first", range(0, SMALL_SEEDS, TENTH))
def test_no_invariant_breaks(first: int) -> None:
    results = [simulate(seed) for seed in range(first, first + TENTH)]
    wrong = [f"make sim SEED={each.seed}: {problem}" for each in results for problem in each.problems[:1]]
    assert not wrong, "\n".join(wrong)
    assert sum(each.operations for each in results) > TENTH, "the oracle has seen operations"
    assert any(each.removals for each in results), "and removals"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(655, id="a refresh that another run had asked for is not taken for our own"),
        pytest.param(2789, id="the answer to a reminder is ahead of what the watch has shown of others"),
        pytest.param(2972, id="an operation that was withdrawn is taken up all the same, and fails in place of ours"),
        pytest.param(3436, id="what was missing of another revision is no longer wanted"),
        pytest.param(4135, id="an operation that was thought to be abandoned ends in place of ours"),
        pytest.param(4809, id="an operation that was thought to be abandoned takes along what the root was asked for"),
        pytest.param(5237, id="a StatefulSet that was changed before it was first seen"),
        pytest.param(5599, id="what needed no sync when it was looked at has moved since"),
        pytest.param(7505, id="an error of the revision before is shown for a while after the sync of the next"),
    ],
)
def test_what_broke_once_does_not_break_again(seed: int) -> None:
    assert not simulate(seed).problems


def test_a_seed_is_the_same_story_in_any_process() -> None:
    code = "import sys; from tests.simulation import test_seeds; print(test_seeds.fingerprint(7))"
    found = {fingerprint(7)}
    for number in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": number}  # noqa: TID251 - for a process
        ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environ, text=True)
        found.add(ran.stdout.strip())
    assert len(found) == 1


def fingerprint(seed: int) -> str:
    return hashlib.sha256(simulate(seed).journal).hexdigest()
