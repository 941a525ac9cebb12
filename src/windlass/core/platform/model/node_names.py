"""Valid and unique names for the nodes and stacks of a platform file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

LONGEST = 253
_ALIEN = re.compile(r"[^a-z0-9.-]+")


def legal(name: str) -> str:
    """The name with invalid characters replaced, in lower case and not too long."""
    return _ALIEN.sub("-", name.lower())[:LONGEST].strip("-.") or "unnamed"


def unique(wishes: Iterable[str], taken: Collection[str]) -> str:
    """The first candidate that is not taken; otherwise the last candidate with a number."""
    last = ""
    for wish in wishes:
        last = legal(wish)
        if last not in taken:
            return last
    number = 2
    while (name := f"{last[: LONGEST - 8]}-{number}") in taken:
        number += 1
    return name
