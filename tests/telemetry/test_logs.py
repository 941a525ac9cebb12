"""Keys and formats are a contract; a log line is one line of output; no line contains a secret."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import NOW
from windlass.core.log_lines import Level, LogLine
from windlass.kube.redactions import Redactor
from windlass.printable_text import MAX_MESSAGE_LENGTH
from windlass.telemetry.logs import (
    LogFormat,
    LogOptions,
    create_logger,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS = ["timestamp", "level", "action", "phase", "component", "message"]
TRACE = {"trace_id": "a" * 32, "span_id": "b" * 16}
SAMPLE_LINES = [LogLine(level, f"it is {level}", "ceph", "run") for level in Level]


def log_output(lines: Iterable[LogLine], *, secrets: Iterable[str] = (), now: Any = NOW, **options: Any) -> list[str]:
    """The lines of the log, at level debug and as text unless `options` say otherwise."""
    stream = io.StringIO()
    log_options = LogOptions(**{"action": "deploy", "level": Level.DEBUG, "format": LogFormat.TEXT, **options})
    write_line = create_logger(stream, log_options, lambda: now, Redactor(secrets))
    for line in lines:
        write_line(line)
    text = stream.getvalue()
    assert text.endswith("\n") or not text
    return text.split("\n")[:-1]


def parse_line(line: str) -> dict[str, Any]:
    document = json.loads(line)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(("trace", "keys"), [({}, KEYS), (TRACE, [*KEYS, *TRACE])])
def test_json_has_exactly_the_keys_of_the_contract(trace: dict[str, str], keys: list[str]) -> None:
    output = log_output([*SAMPLE_LINES, LogLine(Level.INFO, "")], format=LogFormat.JSON, **trace)
    assert len(output) == len(SAMPLE_LINES) + 1
    for document in map(parse_line, output):
        assert list(document) == keys
        assert all(isinstance(value, str) for value in document.values())
        assert trace.items() <= document.items()


def test_one_line_of_json() -> None:
    [line] = log_output([LogLine(Level.WARN, 'a "b"\n…', "ceph", "run")], format=LogFormat.JSON)
    assert line == (
        '{"timestamp": "2026-11-15T21:00:00.000Z", "level": "warn", "action": "deploy", "phase": "run", '
        '"component": "ceph", "message": "a \\"b\\" \\u2026"}'
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (LogLine(Level.INFO, "message"), "INFO [deploy/-/-] message"),
        (LogLine(Level.ERROR, "message", "ceph"), "ERROR [deploy/-/ceph] message"),
        (LogLine(Level.WARN, "100 %s", "ceph", "run"), "WARN [deploy/run/ceph] 100 %s"),
    ],
)
def test_one_line_of_text(line: LogLine, text: str) -> None:
    assert log_output([line]) == [f"2026-11-15T21:00:00.000Z {text}"]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (Level.DEBUG, {"DEBUG", "INFO", "WARN", "ERROR"}),
        (Level.INFO, {"INFO", "WARN", "ERROR"}),
        (Level.WARN, {"WARN", "ERROR"}),
        (Level.ERROR, {"ERROR"}),
    ],
)
def test_a_level_includes_itself_and_the_levels_above(level: Level, shown: set[str]) -> None:
    assert {line.split()[1] for line in log_output(SAMPLE_LINES, level=level)} == shown


def test_times_are_utc_with_milliseconds() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
    [line] = log_output([LogLine(Level.INFO, "now")], now=moment)
    assert line.startswith("2026-01-02T01:04:05.678Z INFO ")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "ok\n2026-11-15T21:00:00Z INFO [deploy/run/-] all is well",
            "ok 2026-11-15T21:00:00Z INFO [deploy/run/-] all",
        ),
        ("\x1b[2Jgone\r\x00", "gone  "),
        ("a\u2028b\x85c\u202ed\udcff", "a b c d "),
        ("täglich 100 % …", "täglich 100 % …"),
    ],
)
def test_control_characters_cannot_forge_a_line(message: str, shown: str) -> None:
    [line] = log_output([LogLine(Level.INFO, message)])
    assert f"[deploy/-/-] {shown}" in line
    assert line.isprintable()


@settings(deadline=None)
@given(st.text(st.characters(), max_size=50))
def test_any_message_is_one_line_in_both_formats(message: str) -> None:
    assert len(log_output([LogLine(Level.INFO, message)])) == 1
    [line] = log_output([LogLine(Level.INFO, message)], format=LogFormat.JSON)
    assert line.isascii()
    parse_line(line)["message"].encode("utf-8")


@pytest.mark.parametrize("log_format", LogFormat)
def test_message_and_component_are_redacted(log_format: LogFormat) -> None:
    [line] = log_output([LogLine(Level.INFO, "a hunter2", "b-hunter2")], secrets=["hunter2"], format=log_format)
    assert "hunter2" not in line
    assert "a [redacted]" in line
    assert "b-[redacted]" in line


def test_a_long_message_is_truncated_after_redaction() -> None:
    text = "x " * (MAX_MESSAGE_LENGTH // 2 - 3) + "correct-horse " * 5
    [line] = log_output([LogLine(Level.INFO, text)], secrets=["correct-horse"], format=LogFormat.JSON)
    message = parse_line(line)["message"]
    assert len(message) == MAX_MESSAGE_LENGTH
    assert "corr" not in message
    assert message.endswith("…")
