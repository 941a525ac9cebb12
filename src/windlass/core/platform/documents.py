"""Values of the core as JSON types, for every document the product writes."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

API_VERSION = "windlass.dev/v1alpha1"


def plain(value: object) -> Any:  # noqa: PLR0911 - one for each type
    """Any value of the core as JSON types."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case tuple() | list() | frozenset():
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case _ if is_dataclass(value):
            return {key_of(each.name): plain(getattr(value, each.name)) for each in fields(value)}
    return value


def key_of(name: str) -> str:
    """`is_dry_run` is `dryRun` there."""
    first, *rest = name.removeprefix("is_").split("_")
    return first + "".join(word.capitalize() for word in rest)
