"""Log lines as values: what callers write and `windlass.telemetry` formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogLine:
    """`component` and `phase` are empty if the message is about none."""

    level: Level
    message: str
    component: str = ""
    phase: str = ""


WriteLine = Callable[[LogLine], None]
