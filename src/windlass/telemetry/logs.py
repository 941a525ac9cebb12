"""The log, whose keys and line formats are a contract. Redaction is the last step before a line is formatted."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

import structlog

from windlass.core.log_lines import Level, LogLine, WriteLine
from windlass.printable_text import MAX_MESSAGE_LENGTH, printable, printed_line, shortened

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

REDACTED_KEYS = ("message", "component")  # the other keys never contain external text
EMPTY_FIELD = "-"

_LEVEL_NUMBERS = {
    Level.DEBUG: logging.DEBUG,
    Level.INFO: logging.INFO,
    Level.WARN: logging.WARNING,
    Level.ERROR: logging.ERROR,
}


class LogFormat(StrEnum):
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class LogOptions:
    action: str
    level: Level = Level.INFO
    format: LogFormat = LogFormat.JSON
    trace_id: str = ""
    span_id: str = ""


def create_logger(
    stream: TextIO, options: LogOptions, now: Callable[[], datetime], redact: Callable[[str], str]
) -> WriteLine:
    """A function that writes log lines to `stream`, except those below the configured level."""
    render = _json if options.format is LogFormat.JSON else _text
    processors: list[Processor] = [_contract_keys(options, now), _redaction(redact), render]
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVEL_NUMBERS[options.level]),
    ).bind()
    return lambda line: logger.log(_LEVEL_NUMBERS[line.level], line.message, line=line)


def _contract_keys(options: LogOptions, now: Callable[[], datetime]) -> Processor:
    """Build an event with exactly the keys of the contract, in their order."""
    trace = {name: value for name in ("trace_id", "span_id") if (value := getattr(options, name))}

    def select_keys(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        line: LogLine = event["line"]
        moment = now().astimezone(UTC).isoformat(timespec="milliseconds")
        return {
            "timestamp": moment.replace("+00:00", "Z"),
            "level": line.level,
            "action": options.action,
            "phase": line.phase,
            "component": line.component,
            "message": line.message,
            **trace,
        }

    return select_keys


def _redaction(redact: Callable[[str], str]) -> Processor:
    """Redact, then truncate: a secret that was cut in half would not be recognized."""

    def redact_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        for key in REDACTED_KEYS:
            event[key] = shortened(printable(redact(event[key])), MAX_MESSAGE_LENGTH - 1)
        return event

    return redact_values


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    return printed_line(json.dumps(event))


def _text(_: WrappedLogger, __: str, event: EventDict) -> str:
    context = "/".join(event[key] or EMPTY_FIELD for key in ("action", "phase", "component"))
    return printed_line(f"{event['timestamp']} {event['level'].upper()} [{context}] {event['message']}")
