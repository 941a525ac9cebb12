"""Conversion of core values to JSON types, for every document that Windlass writes."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

API_VERSION = "windlass.dev/v1alpha1"


def to_json(value: object) -> Any:  # noqa: PLR0911 - one return for each type
    """Convert a value of the core, with everything in it, to JSON types."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case tuple() | list() | frozenset():
            return [to_json(item) for item in value]
        case dict():
            return {str(key): to_json(item) for key, item in value.items()}
        case _ if is_dataclass(value):
            return {json_key(each.name): to_json(getattr(value, each.name)) for each in fields(value)}
    return value


def json_key(name: str) -> str:
    """The JSON key of a field: `is_dry_run` becomes `dryRun`."""
    first, *rest = name.removeprefix("is_").split("_")
    return first + "".join(word.capitalize() for word in rest)
