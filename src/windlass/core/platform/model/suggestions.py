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
    if near := similar_name(word, words):
        return f"did you mean {near}?"
    return f"possible: {', '.join(words)}" if 0 < len(words) <= MAX_LISTED_NAMES else ""


def similar_name(word: str, possible: Iterable[str], cutoff: float = 0.6) -> str:
    """The most similar name; empty if none is similar."""
    names = {name.lower(): name for name in sorted(set(possible), reverse=True)}
    near = difflib.get_close_matches(word.lower(), sorted(names), n=1, cutoff=cutoff)
    return names[near[0]] if near else ""
