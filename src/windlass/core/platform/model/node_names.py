"""Valid and unique names for the nodes and stacks of a platform file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MAX_NAME_LENGTH = 253
_INVALID_CHARACTERS = re.compile(r"[^a-z0-9.-]+")


def sanitize_name(name: str) -> str:
    """The name with invalid characters replaced, in lower case and not too long."""
    return _INVALID_CHARACTERS.sub("-", name.lower())[:MAX_NAME_LENGTH].strip("-.") or "unnamed"


def unique_name(candidates: Iterable[str], taken: Collection[str]) -> str:
    """The first candidate that is not taken; otherwise the last candidate with a number."""
    last = ""
    for candidate in candidates:
        last = sanitize_name(candidate)
        if last not in taken:
            return last
    number = 2
    while (name := f"{last[: MAX_NAME_LENGTH - 8]}-{number}") in taken:
        number += 1
    return name
