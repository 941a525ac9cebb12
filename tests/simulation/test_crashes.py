"""The process is gone after each of its writes in turn; another run gets to the end, and nothing stays locked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.play import SeedResult, played
from tests.simulation.scenarios import Act, Part, Scenario, newer, told

LEVELS = "d: a; e: a b; f: c; g: d e; h: e f; i: f; j: g h; k: h; l: g i"
"""Twelve applications in four levels."""
PARTS = 5


def story(crash_at: int, *, has_root: bool) -> Scenario:
    """What is there already is brought to a new commit; some have pods, which take their time."""
    slow = {name: {"kind": "Deployment", "ready_after": 3.0} for name in "aeh"}
    scenario = told(LEVELS, parts=slow, has_root=has_root)
    crash = Act(crash_at=crash_at)
    commits: tuple[dict[str, Part], ...] = scenario.commits
    if not has_root:  # the second commit comes after the first run
        commits = (*commits, newer(commits[0]))
    return replace(scenario, acts=(crash,), commits=commits)


def writes_of(first: SeedResult) -> int:
    return int(first.story[0].rpartition(", ")[2].split()[0])


@pytest.mark.parametrize("has_root", [True, False], ids=["root", "brownfield"])
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_after_a_crash_at_any_write_the_next_run_gets_to_the_end(part: int, has_root: bool) -> None:
    whole = played(story(0, has_root=has_root))
    assert not whole.problems
    last = writes_of(whole)
    assert last > 24
    for number in range(1 + part, last + 1, PARTS):
        found = played(story(number, has_root=has_root))
        assert found.story[0].startswith("run-1 crashed after "), "what was on its way then may still arrive"
        assert not found.problems, (number, found.problems, found.story)
