"""Durations in configuration files and options: `90s`, `10m`, `1h30m`."""

from __future__ import annotations

import re
from datetime import timedelta

DURATION_PATTERN = r"^(?=\d)(\d{1,6}h)?(\d{1,6}m)?(\d{1,6}s)?$"
_PARTS = re.compile(r"(?=\d)(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)


def parse_duration(text: object) -> timedelta:
    """Raises ValueError with a message that states the expected format."""
    match = _PARTS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("must be a duration like 90s, 10m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def parse_time_limit(text: object) -> timedelta:
    """A duration that is not zero."""
    if not (duration := parse_duration(text)):
        raise ValueError("must be longer than 0s")
    return duration


def render_duration(duration: timedelta) -> str:
    seconds = int(duration.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
