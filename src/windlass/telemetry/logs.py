"""The log, whose keys and line formats are a contract. Redaction is the last step before a line is formatted."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

import structlog

from windlass.core.platform.events import Event, Level, Noticed, PhaseBegan, Tell
from windlass.telemetry import log_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

    from windlass.core.platform.reporting.reports import Report
    from windlass.telemetry.log_lines import Line

LONGEST_MESSAGE = 4_000  # characters; container runtimes split a line at 16 KiB
FOREIGN = ("message", "component")  # the other keys never contain external text
NONE = "-"

_NUMBERS = {
    Level.DEBUG: logging.DEBUG,
    Level.INFO: logging.INFO,
    Level.WARN: logging.WARNING,
    Level.ERROR: logging.ERROR,
}
_WORDS = {"warning": "warn", "critical": "error", "exception": "error"}


class LogForm(StrEnum):
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class LogOptions:
    action: str
    level: Level = Level.INFO
    form: LogForm = LogForm.JSON
    trace_id: str = ""
    span_id: str = ""


def logger(
    stream: TextIO, options: LogOptions, now: Callable[[], datetime], redact: Callable[[str], str]
) -> FilteringBoundLogger:
    """A logger that accepts the optional keywords `phase` and `component` with each message."""
    render = _json if options.form is LogForm.JSON else _text
    processors: list[Processor] = [_keys(options, now), _redacting(redact), render]
    made: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_NUMBERS[options.level]),
    ).bind()
    return made


class EventLog:
    """Receiver that logs the events and the report of a run, each line with the current phase."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._phase = ""

    def tell(self, event: Event) -> None:
        if isinstance(event, PhaseBegan):
            self._phase = str(event.phase)
        self._write(log_lines.of_event(event))

    def ended(self, report: Report) -> None:
        self._write(log_lines.of_report(report))

    def _write(self, found: Iterable[Line]) -> None:
        for line in found:
            self._log.log(_NUMBERS[line.level], line.message, phase=self._phase, component=line.component)


@contextmanager
def library_logs(tell: Tell) -> Iterator[None]:
    """Emit library log records from WARNING up as events; otherwise they reach stderr unformatted and unredacted."""
    handler = _LibraryHandler(tell)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


class _LibraryHandler(logging.Handler):
    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        cause = f" ({type(error).__name__}: {error})" if error else ""
        level = Level.ERROR if record.levelno >= logging.ERROR else Level.WARN
        self._tell(Noticed(level, f"{record.name}: {record.getMessage()}{cause}"))


def _keys(options: LogOptions, now: Callable[[], datetime]) -> Processor:
    """Build an event with exactly the keys of the contract, in their order."""
    trace = {name: value for name in ("trace_id", "span_id") if (value := getattr(options, name))}

    def keep(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
        moment = now().astimezone(UTC).isoformat(timespec="milliseconds")
        return {
            "timestamp": moment.replace("+00:00", "Z"),
            "level": _WORDS.get(method, method),
            "action": options.action,
            "phase": event.get("phase", ""),
            "component": event.get("component", ""),
            "message": event["event"],
            **trace,
        }

    return keep


def _redacting(redact: Callable[[str], str]) -> Processor:
    """Redact, then truncate: a secret that was cut in half would not be recognized."""

    def hide(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        for key in FOREIGN:
            text = redact(event[key])
            event[key] = text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"
        return event

    return hide


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    return json.dumps({key: _encodable(value) for key, value in event.items()})


def _text(_: WrappedLogger, __: str, event: EventDict) -> str:
    place = "/".join(event[key] or NONE for key in ("action", "phase", "component"))
    return _printable(f"{event['timestamp']} {event['level'].upper()} [{place}] {event['message']}")


def _encodable(text: str) -> str:
    """Lone surrogates escaped: JSON parsers would reject the line."""
    return text.encode("utf-8", "backslashreplace").decode()


def _printable(text: str) -> str:
    """Non-printable characters escaped, so that a message cannot add lines or control the terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
