"""Suggestions for names that do not exist."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LISTED_NAMES = 12  # a longer list would not help


def did_you_mean(word: str, possible: Iterable[str]) -> str:
    """A hint with the closest name; otherwise all names if there are few; otherwise an empty string."""
    words = sorted(set(possible))
    if near := difflib.get_close_matches(word.lower(), [name.lower() for name in words], n=1, cutoff=0.6):
        return f"did you mean {next(name for name in words if name.lower() == near[0])}?"
    return f"possible: {', '.join(words)}" if 0 < len(words) <= MAX_LISTED_NAMES else ""
