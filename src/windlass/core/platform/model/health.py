"""Health words, and what many of them say together."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Health(StrEnum):
    """From best to worst. Failed is ours: an operation that did not succeed; the others are Argo CD's words."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"
    FAILED = "Failed"


_BADNESS = {health: place for place, health in enumerate(Health)}
_TOGETHER = {Health.MISSING: Health.DEGRADED}  # of a group: one that is missing is a group that is degraded


def parse_health(word: str | None) -> Health:
    """A word that nobody knows is Unknown, never Healthy."""
    return Health(word) if word in set(Health) else Health.UNKNOWN


def worst_of(healths: Iterable[Health]) -> Health:
    """Nothing at all is Healthy: an empty stack has nothing to be ill of."""
    return max(healths, key=_BADNESS.__getitem__, default=Health.HEALTHY)


def health_of_group(healths: Iterable[Health]) -> Health:
    """Of a stack or the platform."""
    worst = worst_of(healths)
    return _TOGETHER.get(worst, worst)
