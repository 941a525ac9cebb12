"""What libraries log, as our log lines: inside the block only, one per cause and minute."""

from __future__ import annotations

import logging

from windlass.core.log_lines import Level, LogLine
from windlass.telemetry.library_logs import QUIET_SECONDS, forward_library_logs

LIBRARY = logging.getLogger("some.library")


def complain(about: object) -> None:
    LIBRARY.warning("slow: %s", about)


def test_library_warnings_are_written_only_inside_the_block() -> None:
    lines: list[LogLine] = []
    before = list(logging.getLogger().handlers)
    with forward_library_logs(lines.append, lambda: 0.0):
        LIBRARY.info("not this")
        LIBRARY.warning("slow: %s", "x")
        try:
            raise KeyError("gone")
        except KeyError:
            LIBRARY.exception("broken")
    assert lines == [
        LogLine(Level.WARN, "some.library: slow: x"),
        LogLine(Level.ERROR, "some.library: broken (KeyError: 'gone')"),
    ]
    assert logging.getLogger().handlers == before


def test_a_cause_is_written_once_a_minute() -> None:
    lines: list[LogLine] = []
    seconds = [0.0]
    with forward_library_logs(lines.append, lambda: seconds[0]):
        for number in range(1000):
            complain(number)
        LIBRARY.warning("another place")
        seconds[0] = QUIET_SECONDS
        complain("still")
    assert [line.message for line in lines] == [
        "some.library: slow: 0",
        "some.library: another place",
        "some.library: slow: still (and 999 more like it)",
    ]


def test_of_nested_blocks_the_inner_one_writes() -> None:
    outer: list[LogLine] = []
    inner: list[LogLine] = []
    with forward_library_logs(outer.append, lambda: 0.0):
        with forward_library_logs(inner.append, lambda: 0.0):
            complain("inside")
        complain("outside")
    assert [line.message for line in inner] == ["some.library: slow: inside"]
    assert [line.message for line in outer] == ["some.library: slow: outside"]
