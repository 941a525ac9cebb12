"""Health statuses, and the health of a group."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Health(StrEnum):
    """Argo CD's health statuses from best to worst, and our own `Failed`: an operation that did not succeed."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"
    FAILED = "Failed"


_SEVERITY = {health: place for place, health in enumerate(Health)}
_GROUP_HEALTH = {Health.MISSING: Health.DEGRADED}  # a group with a missing member is degraded


def parse_health(word: str | None) -> Health:
    """An unrecognized status is Unknown, never Healthy."""
    return Health(word) if word in set(Health) else Health.UNKNOWN


def worst_health(healths: Iterable[Health]) -> Health:
    """Healthy if there are none: nothing in an empty stack is unhealthy."""
    return max(healths, key=_SEVERITY.__getitem__, default=Health.HEALTHY)


def group_health(healths: Iterable[Health]) -> Health:
    """The health of a stack or of the platform."""
    worst = worst_health(healths)
    return _GROUP_HEALTH.get(worst, worst)
