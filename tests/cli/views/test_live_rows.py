"""The live view as text: what is seen, and that it always fits."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import platform
from tests.cli.views.live_runs import CHAIN, ended, started, state_after, states
from windlass.cli.views.live_rows import Style, render_rows, row_shares
from windlass.cli.views.live_state import LiveState
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import NodeWaiting, PhaseStarted, RunPhase
from windlass.core.platform.outcomes import Result


def screen(state: LiveState, now: float = 60, height: int = 24, width: int = 80) -> list[str]:
    return ["".join(piece.text for piece in row).rstrip() for row in render_rows(state, now, height, width)]


def cells(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in {"W", "F"} else 1 for each in line)


def test_a_whole_screen() -> None:
    state = state_after(
        ended("disk"),
        started("db"),
        NodeWaiting("db", "Progressing", "1 of 3 replicas are ready"),
        (20, started("vault")),
        (40, started("vault", 2)),
        (50, LogLine(Level.WARN, "the watch was resumed", "db")),
    )
    assert screen(state, width=100) == [
        "deploy platform in staging  run  1:00  about 6 min left",
        "█" * 20 + "▓" * 40 + "░" * 40,
        "1 done  2 running  2 waiting  of 5",
        "running 2  (age/expected, what it waits for)",
        "  db     1:00/5:00  Progressing: 1 of 3 replicas are ready",
        "  vault  0:40/1:00  try 2  started",
        "waiting 2  (next first, and what each waits for)",
        "  api  db, vault",
        "  ui   api",
        "noticed",
        "  0:10 ago  db: the watch was resumed",
    ]


def test_what_failed_stands_first_with_what_it_blocks() -> None:
    state = state_after(ended("disk"), started("db"), ended("vault", Result.FAILED, "0 of 3 ready"))
    shown = screen(state, width=100)
    assert shown[2] == "1 done  1 failed  2 skipped  1 running  of 5"
    assert shown[3:5] == ["failed 1", "  vault  blocks 2  Degraded: 0 of 3 ready"]
    assert "waiting" not in "\n".join(shown)


def test_where_room_is_short_the_sentence_stands_without_its_word() -> None:
    state = state_after(ended("disk", Result.FAILED, "0 of 3 ready"))
    assert screen(state, width=80)[4] == "  disk  blocks 4  0 of 3 ready"


def test_an_interrupted_one_says_so() -> None:
    assert "  ui  interrupted" in screen(state_after(ended("ui", Result.INTERRUPTED)))


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        (0, "0:00  about 9 min left"),
        (59, "0:59  about 9 min left"),
        (60, "1:00  about 8 min left"),
        (7200, "2:00:00  about 7 min left"),
    ],
)
def test_time_gone_and_time_left(now: float, shown: str) -> None:
    assert screen(state_after(started("disk")), now)[0] == f"deploy platform in staging  run  {shown}"


def test_what_is_late_is_seen() -> None:
    state = state_after(*(ended(name) for name in CHAIN.graph.names if name != "ui"), started("ui"))
    first, *rest = render_rows(state, 61, 24, 80)
    assert first[-1] == ("  longer than expected", Style.LATE)
    assert any(piece.style is Style.LATE and "1:01/1:00" in piece.text for row in rest for piece in row)


def test_at_the_end_nothing_is_left() -> None:
    state = state_after(*map(ended, CHAIN.graph.names))
    assert screen(state) == ["deploy platform in staging  run  1:00", "█" * 80, "5 done  of 5"]


def test_a_run_that_was_stopped_does_not_go_on_counting() -> None:
    state = state_after(ended("disk", Result.INTERRUPTED), PhaseStarted(RunPhase.REPORT))
    assert screen(state)[0] == "deploy platform in staging  report  1:00"


def test_before_the_plan_there_is_one_row() -> None:
    assert screen(LiveState("validate", 0.0, {}, 10)) == ["validate  1:00"]


def test_what_could_start_waits_for_its_turn_and_stands_before_what_cannot() -> None:
    shown = screen(state_after(made=platform("late: early; early; other")))
    assert shown[-3:] == ["  early  a free slot", "  other  a free slot", "  late   early"]


def test_l9_no_application_is_listed_before_one_that_it_waits_for() -> None:
    made = platform("shop: dashboards; dashboards: a b c; a; b; c")
    shown = screen(state_after(started("a"), started("b"), started("c"), made=made))
    assert shown[-2:] == ["  dashboards  a, b, c", "  shop        dashboards"]


def test_many_are_cut_to_the_room_there_is_and_counted() -> None:
    wide = platform(";".join(f"n{number:03}" for number in range(200)), max_parallel=300)
    running = [started(f"n{number:03}") for number in range(100)]
    shown = screen(state_after(*running, ended("n199", Result.FAILED, "no"), made=wide), height=100)
    assert len(shown) == 40
    assert "failed 1" in shown
    assert "running 100  (age/expected, what it waits for)" in shown
    hidden = 100 - sum(line.startswith("  n0") for line in shown)
    assert f"  … and {hidden} more" in shown


@pytest.mark.parametrize(
    ("room", "sizes", "given"),
    [
        (10, [2, 3], [2, 3]),
        (4, [5, 5], [2, 2]),
        (5, [5, 5], [3, 2]),
        (9, [2, 9, 9], [2, 4, 3]),
        (3, [5, 5, 5], [3, 0, 0]),
        (1, [5], [1]),
        (0, [5], [0]),
        (5, [], []),
    ],
)
def test_rows_are_shared_in_turn(room: int, sizes: list[int], given: list[int]) -> None:
    assert row_shares(room, sizes) == given


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(states(), st.integers(-1, 60), st.integers(1, 150), st.floats(0, 10_000))
def test_it_fits_whatever_the_run_and_the_terminal(state: LiveState, height: int, width: int, now: float) -> None:
    shown = screen(state, now, height, width)
    assert len(shown) <= max(0, min(height, 40))
    for line in shown:
        assert cells(line) <= width
        assert line.isprintable()


def test_foreign_words_cannot_move_the_cursor() -> None:
    state = state_after(
        started("disk"), NodeWaiting("disk", "Progressing", "\x1b[2Jgone\r\nnext 漢字漢字漢字" + "字" * 99)
    )
    (line,) = [line for line in screen(state) if "gone" in line]
    assert "\x1b" not in line
    assert line.endswith("字…")
    assert 79 <= cells(line) <= 80
