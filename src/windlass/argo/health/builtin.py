"""Built-in health rules for objects that are read directly, with Argo CD's health statuses.

Kubernetes workloads are assessed by their replica counts, claims by their phase, everything else by its conditions.
An object without usable status is Unknown, never Healthy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceKind, ResourceState
from windlass.kube.client.resources import PODS, Resource

if TYPE_CHECKING:
    from windlass.kube.client.objects import Plain

GOOD = ("Ready", "Available", "Healthy", "Succeeded", "Complete")
"""Conditions that mean healthy when True; the first one that the object has decides."""
BAD = ("Failed", "Stalled", "Degraded", "ReplicaFailure")
"""Conditions that mean degraded when True."""
_COUNTS = {
    "Deployment": "availableReplicas",
    "StatefulSet": "readyReplicas",
    "ReplicaSet": "readyReplicas",
    "DaemonSet": "numberAvailable",
}
_BROKEN = ("BackOff", "Error")  # of waiting reasons that mean failure
WORKLOADS = {
    ResourceKind(resource.group, resource.kind): resource
    for resource in (
        Resource("apps", "v1", "deployments", "Deployment"),
        Resource("apps", "v1", "statefulsets", "StatefulSet"),
        Resource("apps", "v1", "daemonsets", "DaemonSet"),
        Resource("apps", "v1", "replicasets", "ReplicaSet"),
        Resource("batch", "v1", "jobs", "Job"),
        PODS,
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    )
}
"""Workloads and claims: kinds that are assessed by more than their conditions."""


def judged_object(item: Plain) -> ResourceState:
    status = item.get("status") or {}
    health, message = _judged(item, status)
    return ResourceState(health, message, is_deleting=bool(item["metadata"].get("deletionTimestamp")))


def is_unseen(item: Plain) -> bool:
    """Whether `observedGeneration` shows that the controller has not processed the latest change yet."""
    seen, wanted = (item.get("status") or {}).get("observedGeneration"), item["metadata"].get("generation")
    return isinstance(seen, int) and isinstance(wanted, int) and seen < wanted


def _judged(item: Plain, status: Plain) -> tuple[Health, str]:  # noqa: PLR0911 - the first matching rule decides
    conditions = {row.get("type"): row for row in status.get("conditions") or ()}
    if wrong := _wrong(conditions):
        return Health.DEGRADED, wrong
    if is_unseen(item):
        return Health.PROGRESSING, "its controller has not seen the latest change yet"
    spec = item.get("spec") or {}
    match item.get("kind"):
        case "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet" as kind:
            return _workload(kind, spec, status)
        case "PersistentVolumeClaim":
            return _by_phase(status)
        case "Job" if not conditions.keys() & set(GOOD):
            return _unfinished(spec)
        case "Pod":
            return _pod(status, conditions)
    return _by_conditions(conditions)


def _workload(kind: str, spec: Plain, status: Plain) -> tuple[Health, str]:
    if kind == "Deployment" and spec.get("paused"):
        return Health.SUSPENDED, "it is paused"
    in_spec = _number(spec, "replicas", 1)
    wanted = _number(status, "desiredNumberScheduled", 0) if kind == "DaemonSet" else in_spec
    there = _number(status, _COUNTS[kind], 0)
    if there < wanted:
        return Health.PROGRESSING, f"{there} of {wanted} are there"
    if _is_rolling(kind, spec, status, wanted):
        return Health.PROGRESSING, f"{wanted} are there, but not all are of the latest version yet"
    return Health.HEALTHY, ""


def _is_rolling(kind: str, spec: Plain, status: Plain, wanted: int) -> bool:
    """Whether replicas that should be updated still run an older template. The API omits counts that are zero."""
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return False
    updated = _number(status, "updatedReplicas", 0)
    match kind:
        case "Deployment":
            return updated < max(wanted, _number(status, "replicas", 0))
        case "DaemonSet":
            return _number(status, "updatedNumberScheduled", 0) < wanted
        case "StatefulSet":
            return updated < wanted - _number(strategy.get("rollingUpdate") or {}, "partition", 0)
    return False


def _unfinished(spec: Plain) -> tuple[Health, str]:
    return (Health.SUSPENDED, "it is suspended") if spec.get("suspend") else (Health.PROGRESSING, "it runs")


def _pod(status: Plain, conditions: Plain) -> tuple[Health, str]:
    for row in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (row.get("state") or {}).get("waiting") or {}
        if str(waiting.get("reason") or "").endswith(_BROKEN):
            return Health.DEGRADED, f"container {row.get('name')}: {waiting.get('message') or waiting['reason']}"
    match status.get("phase"):
        case "Succeeded":
            return Health.HEALTHY, ""
        case "Failed":
            return Health.DEGRADED, str(status.get("message") or status.get("reason") or "it failed")
    return _by_conditions(conditions) if "Ready" in conditions else (Health.PROGRESSING, "it is not ready")


def _wrong(conditions: Plain) -> str:
    """Message of the condition that makes the object Degraded; empty if there is none."""
    for name in BAD:
        if conditions.get(name, {}).get("status") == "True":
            return _said(conditions[name])
    progress = conditions.get("Progressing", {})
    return _said(progress) if progress.get("reason") == "ProgressDeadlineExceeded" else ""


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
