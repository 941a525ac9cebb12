"""Messages of 16 kB, 400 kB and 10 MB in every status, log and error: they cost a deploy next to nothing."""

from __future__ import annotations

from functools import cache

import pytest

from tests.simulation.large_messages import FIELDS, SIZES, Cost, cost
from windlass.printable_text import MAX_MESSAGE_LENGTH

LINE_SECONDS, CHARACTER_SECONDS = 2e-6, 4e-7  # of a slow machine, for a line of Python and a character redacted
LONGEST_TURN = 25_000  # lines, a twentieth of a second: so long a signal may wait, and the lock is renewed in time

SHOWN = {"condition", "word", "health", "pod status", "pod log", "pod log line"}
"""Fields of which a report shows a part, when an application has failed."""


@cache
def plain() -> Cost:
    return cost()


def seconds(each: Cost) -> float:
    """The makespan with the time that its own work takes."""
    return each.makespan + each.lines * LINE_SECONDS + each.redacted * CHARACTER_SECONDS


@pytest.mark.parametrize(
    "size", [SIZES[0], SIZES[1], pytest.param(SIZES[2], marks=pytest.mark.slow)], ids=["16 kB", "400 kB", "10 MB"]
)
@pytest.mark.parametrize("field", FIELDS)
def test_large_messages_do_not_delay_a_deploy(field: str, size: int) -> None:
    found = cost(field, size)
    assert found.results == plain().results
    assert found.makespan <= plain().makespan * 1.01
    assert seconds(found) <= 1.05 * seconds(plain())
    assert found.answer_time <= plain().answer_time + 0.1
    assert found.longest_turn <= LONGEST_TURN
    assert found.longest_text <= MAX_MESSAGE_LENGTH + 100
    assert found.redacted > plain().redacted or field not in SHOWN


def test_the_figures_are_the_same_each_time() -> None:
    assert cost("health", 16_000) == cost("health", 16_000)
