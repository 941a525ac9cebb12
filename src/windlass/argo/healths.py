"""The health of an object that is read directly, by what it says of itself; in Argo CD's words. Pure.

Kinds of Kubernetes that run something are judged by their counts, claims by their phase, everything else by its
conditions. An object that says nothing has unknown health, never a good one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.health import Health
from windlass.core.platform.snapshots import ResourceState

if TYPE_CHECKING:
    from windlass.kube.objects import Plain

GOOD = ("Ready", "Available", "Healthy", "Succeeded", "Complete")
"""Conditions that say all is well when they are True; the first that an object has counts."""
BAD = ("Failed", "Stalled", "Degraded", "ReplicaFailure")
"""Conditions that say something is wrong when they are True."""
_COUNTS = {"Deployment": "availableReplicas", "StatefulSet": "readyReplicas", "ReplicaSet": "readyReplicas"}


def judged_object(item: Plain) -> ResourceState:
    status = item.get("status") or {}
    health, message = _judged(item, status)
    return ResourceState(health, message, is_deleting=bool(item["metadata"].get("deletionTimestamp")))


def _judged(item: Plain, status: Plain) -> tuple[Health, str]:
    conditions = {row.get("type"): row for row in status.get("conditions") or ()}
    if wrong := _wrong(conditions):
        return Health.DEGRADED, wrong
    seen, wanted = status.get("observedGeneration"), item["metadata"].get("generation")
    if isinstance(seen, int) and isinstance(wanted, int) and seen < wanted:
        return Health.PROGRESSING, "its controller has not seen the latest change yet"
    match item.get("kind"):
        case "Deployment" | "StatefulSet" | "ReplicaSet" as kind:
            return _by_counts(status, _number(item.get("spec") or {}, "replicas", 1), _COUNTS[kind])
        case "DaemonSet":
            return _by_counts(status, _number(status, "desiredNumberScheduled", 0), "numberAvailable")
        case "PersistentVolumeClaim":
            return _by_phase(status)
    return _by_conditions(conditions)


def _wrong(conditions: Plain) -> str:
    """What a condition complains of; empty if none does."""
    for name in BAD:
        if conditions.get(name, {}).get("status") == "True":
            return _said(conditions[name])
    progress = conditions.get("Progressing", {})
    return _said(progress) if progress.get("reason") == "ProgressDeadlineExceeded" else ""


def _by_counts(status: Plain, wanted: int, name: str) -> tuple[Health, str]:
    there = _number(status, name, 0)
    updated = _number(status, "updatedReplicas", _number(status, "updatedNumberScheduled", there))
    if there >= wanted and updated >= wanted:
        return Health.HEALTHY, ""
    return Health.PROGRESSING, f"{min(there, updated)} of {wanted} are there"


def _by_phase(status: Plain) -> tuple[Health, str]:
    found = {"Bound": Health.HEALTHY, "Pending": Health.PROGRESSING, "Lost": Health.DEGRADED}
    phase = str(status.get("phase") or "")
    return found.get(phase, Health.UNKNOWN), f"it is {phase}" if phase else ""


def _by_conditions(conditions: Plain) -> tuple[Health, str]:
    for name in GOOD:
        if name in conditions:
            is_good = conditions[name].get("status") == "True"
            return (Health.HEALTHY, "") if is_good else (Health.PROGRESSING, _said(conditions[name]))
    return Health.UNKNOWN, "it has no condition that tells its health"


def _said(condition: Plain) -> str:
    words = f"{condition.get('type')} is {condition.get('status')}"
    said = condition.get("message") or condition.get("reason")
    return f"{words}: {said}" if said else words


def _number(holder: Plain, name: str, default: int) -> int:
    value = holder.get(name)
    return value if isinstance(value, int) else default
