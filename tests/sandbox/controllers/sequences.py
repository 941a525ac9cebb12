"""What a recording says, timings aside: the values that fields go through, and what holds when all is quiet. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.recordings.sequence_files import Done, Seen

if TYPE_CHECKING:
    from tests.recordings.sequence_files import Recording

Object = tuple[str, str]
"""Kind and name."""
TIME = re.compile(r'"t\d+"')
TEMPLATE_HASH = re.compile(r'((?:replica set|ReplicaSet) \\"web-)\w+')  # no mark where ReplicaSets are not seen
EXACT = {
    "Application": (
        "operation", "operationState.phase", "operationState.message", "operationState.operation",
        "operationState.syncResult", "operationState.retryCount", "history", "sync.revision", "sync.comparedTo",
        "sourceType", "conditions",
    ),
    "StatefulSet": ("replicas", "currentRevision", "updateRevision"),
    "Job": ("active", "succeeded", "failed", "conditions"),
    "PersistentVolumeClaim": ("phase",),
    "PersistentVolume": ("phase",),
}  # fmt: skip
"""Fields whose values come in the same order every time; others have states that one run shows and another skips."""
SETTLED = {
    **EXACT,
    "Application": (*EXACT["Application"], "sync.status", "health.status", "resources"),
    "Deployment": ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "conditions"),
    "ReplicaSet": ("readyReplicas", "availableReplicas"),
    "StatefulSet": (*EXACT["StatefulSet"], "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    "DaemonSet": (
        "currentNumberScheduled", "desiredNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled",
    ),
    "Pod": ("phase",),
}  # fmt: skip
ASIDE = ("lastUpdateTime", "observedGeneration")


def sequences(found: Recording) -> dict[Object, dict[str, list[Any]]]:
    """Each object's exact fields with their values, without repetition."""
    told: dict[Object, dict[str, list[Any]]] = {}
    for step in found.steps:
        if isinstance(step, Seen) and step.type != "DELETED":
            for name in EXACT.get(step.kind, ()):
                values = told.setdefault((step.kind, step.name), {}).setdefault(name, [])
                value = _value(step, name)
                if values[-1:] != [value]:
                    values.append(value)
    return told


def settled(found: Recording) -> list[tuple[str, dict[Object, dict[str, Any]]]]:
    """What every object shows when something is asked of the cluster, and what is asked."""
    now: dict[Object, dict[str, Any]] = {}
    told: list[tuple[str, dict[Object, dict[str, Any]]]] = []
    for step in found.steps:
        if isinstance(step, Done):
            told.append((step.what, dict(now)))
        elif step.type == "DELETED":
            del now[step.kind, step.name]
        else:
            now[step.kind, step.name] = {name: _value(step, name) for name in SETTLED[step.kind]}
    return told


def states(found: Recording) -> set[tuple[Any, ...]]:
    """The combinations that Applications show: is an operation wanted, its phase, sync, health."""
    told = [step for step in found.of("Application") if step.type != "DELETED"]
    paths = (("operationState", "phase"), ("sync", "status"), ("health", "status"))
    return {("operation" in step.item, *(step.at("status", *path) for path in paths)) for step in told}


def _value(step: Seen, name: str) -> Any:
    value = step.at("operation") if name == "operation" else step.at("status", *name.split("."))
    if name == "conditions" and value:
        rows = [{key: part for key, part in row.items() if key not in ASIDE} for row in value]
        value = sorted(rows, key=lambda row: str(row["type"]))
    return json.loads(TEMPLATE_HASH.sub(r"\1hash", TIME.sub('"t"', json.dumps(value, sort_keys=True))))
