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
    from windlass.kube.client.objects import RawObject

HEALTHY_CONDITIONS = ("Ready", "Available", "Healthy", "Succeeded", "Complete")
"""Conditions that mean healthy when True; the first one that the object has decides."""
DEGRADED_CONDITIONS = ("Failed", "Stalled", "Degraded", "ReplicaFailure")
"""Conditions that mean degraded when True."""
_READY_COUNT_FIELDS = {
    "Deployment": "availableReplicas",
    "StatefulSet": "readyReplicas",
    "ReplicaSet": "readyReplicas",
    "DaemonSet": "numberAvailable",
}
_FAILURE_SUFFIXES = ("BackOff", "Error")  # of waiting reasons that mean failure
BUILTIN_RESOURCES = {
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


def assess_object(item: RawObject) -> ResourceState:
    status = item.get("status") or {}
    health, message = _assess(item, status)
    return ResourceState(health, message, is_deleting=bool(item["metadata"].get("deletionTimestamp")))


def is_status_outdated(item: RawObject) -> bool:
    """Whether `observedGeneration` shows that the controller has not processed the latest change yet."""
    observed, generation = (item.get("status") or {}).get("observedGeneration"), item["metadata"].get("generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def _assess(item: RawObject, status: RawObject) -> tuple[Health, str]:  # noqa: PLR0911 - the first matching rule decides
    conditions = {row.get("type"): row for row in status.get("conditions") or ()}
    if problem := _degraded_message(conditions):
        return Health.DEGRADED, problem
    if is_status_outdated(item):
        return Health.PROGRESSING, "its controller has not seen the latest change yet"
    spec = item.get("spec") or {}
    match item.get("kind"):
        case "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet" as kind:
            return _workload_health(kind, spec, status)
        case "PersistentVolumeClaim":
            return _claim_health(status)
        case "Job" if not conditions.keys() & set(HEALTHY_CONDITIONS):
            return _unfinished_job_health(spec)
        case "Pod":
            return _pod_health(status, conditions)
    return _condition_health(conditions)


def _workload_health(kind: str, spec: RawObject, status: RawObject) -> tuple[Health, str]:
    if kind == "Deployment" and spec.get("paused"):
        return Health.SUSPENDED, "it is paused"
    spec_replicas = _int_field(spec, "replicas", 1)
    desired = _int_field(status, "desiredNumberScheduled", 0) if kind == "DaemonSet" else spec_replicas
    available = _int_field(status, _READY_COUNT_FIELDS[kind], 0)
    if available < desired:
        return Health.PROGRESSING, f"{available} of {desired} are there"
    if _is_rolling_out(kind, spec, status, desired):
        return Health.PROGRESSING, f"{desired} are there, but not all are of the latest version yet"
    return Health.HEALTHY, ""


def _is_rolling_out(kind: str, spec: RawObject, status: RawObject, desired: int) -> bool:
    """Whether replicas that should be updated still run an older template. The API omits counts that are zero."""
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return False
    updated = _int_field(status, "updatedReplicas", 0)
    match kind:
        case "Deployment":
            return updated < max(desired, _int_field(status, "replicas", 0))
        case "DaemonSet":
            return _int_field(status, "updatedNumberScheduled", 0) < desired
        case "StatefulSet":
            return updated < desired - _int_field(strategy.get("rollingUpdate") or {}, "partition", 0)
    return False


def _unfinished_job_health(spec: RawObject) -> tuple[Health, str]:
    return (Health.SUSPENDED, "it is suspended") if spec.get("suspend") else (Health.PROGRESSING, "it runs")


def _pod_health(status: RawObject, conditions: RawObject) -> tuple[Health, str]:
    for row in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (row.get("state") or {}).get("waiting") or {}
        if str(waiting.get("reason") or "").endswith(_FAILURE_SUFFIXES):
            return Health.DEGRADED, f"container {row.get('name')}: {waiting.get('message') or waiting['reason']}"
    match status.get("phase"):
        case "Succeeded":
            return Health.HEALTHY, ""
        case "Failed":
            return Health.DEGRADED, str(status.get("message") or status.get("reason") or "it failed")
    return _condition_health(conditions) if "Ready" in conditions else (Health.PROGRESSING, "it is not ready")


def _degraded_message(conditions: RawObject) -> str:
    """Message of the condition that makes the object Degraded; empty if there is none."""
    for name in DEGRADED_CONDITIONS:
        if conditions.get(name, {}).get("status") == "True":
            return _condition_message(conditions[name])
    progress = conditions.get("Progressing", {})
    return _condition_message(progress) if progress.get("reason") == "ProgressDeadlineExceeded" else ""


def _claim_health(status: RawObject) -> tuple[Health, str]:
    health_by_phase = {"Bound": Health.HEALTHY, "Pending": Health.PROGRESSING, "Lost": Health.DEGRADED}
    phase = str(status.get("phase") or "")
    return health_by_phase.get(phase, Health.UNKNOWN), f"it is {phase}" if phase else ""


def _condition_health(conditions: RawObject) -> tuple[Health, str]:
    for name in HEALTHY_CONDITIONS:
        if name in conditions:
            is_good = conditions[name].get("status") == "True"
            return (Health.HEALTHY, "") if is_good else (Health.PROGRESSING, _condition_message(conditions[name]))
    return Health.UNKNOWN, "it has no condition that tells its health"


def _condition_message(condition: RawObject) -> str:
    summary = f"{condition.get('type')} is {condition.get('status')}"
    message = condition.get("message") or condition.get("reason")
    return f"{summary}: {message}" if message else summary


def _int_field(fields: RawObject, name: str, default: int) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else default
