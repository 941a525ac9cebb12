from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.settings.durations import parse_duration, render_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h", 7200), ("0s", 0), ("1h0m5s", 3605)]
)
def test_a_duration(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "90", 90, "1.5h", "5 m", "m", "10m1h", "-5s", "1d", None, "5M"])
def test_anything_else_is_none(text: object) -> None:
    with pytest.raises(ValueError, match="must be a duration like 90s, 10m or 1h30m"):
        parse_duration(text)


@given(st.integers(0, 10**8))
def test_written_and_read_again(seconds: int) -> None:
    assert parse_duration(render_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)
