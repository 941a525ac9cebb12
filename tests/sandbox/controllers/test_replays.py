"""The recorded scripts, played on the sandbox: the same order and fields as real controllers, timings aside."""

from __future__ import annotations

from functools import cache

import pytest

from tests.recordings import sequence_files
from tests.recordings.scripts import SCRIPTS
from tests.recordings.sequence_files import Recording
from tests.sandbox.controllers import sequences
from tests.sandbox.controllers.clusters import played, run

OTHER_WORDS = {"application-failed-sync": "Go's own words for a number that is a text"}
NAMES = [script.name for script in SCRIPTS]


@cache
def here(name: str) -> Recording:
    script = next(script for script in SCRIPTS if script.name == name)
    found = run(played(script))
    assert isinstance(found, Recording)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_fields_go_through_the_same_values_in_the_same_order(name: str) -> None:
    real, mine = (sequences.sequences(found) for found in (sequence_files.load(name), here(name)))
    assert mine.keys() == real.keys()
    for key, fields in real.items():
        for field, values in fields.items():
            if name not in OTHER_WORDS or field not in {"operationState.message", "operationState.syncResult"}:
                assert mine[key][field] == values, (key, field)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHER_WORDS])
def test_when_all_is_quiet_everything_looks_the_same(name: str) -> None:
    for real, mine in zip(sequences.settled(sequence_files.load(name)), sequences.settled(here(name)), strict=True):
        assert mine == real


def test_no_application_shows_what_no_real_one_has_shown() -> None:
    names = [name for name in NAMES if name.startswith("application")]
    seen = {state for name in sequence_files.names() for state in sequences.states(sequence_files.load(name))}
    assert {state for name in names for state in sequences.states(here(name))} <= seen
