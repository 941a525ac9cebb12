"""Objects that are read directly: good only if they say so."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.argo.health.builtin import assess_object
from windlass.core.platform.model.health import Health


def condition(name: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status, **more}]}


def revisions(current: str, update: str) -> dict[str, str]:
    return {"currentRevision": current, "updateRevision": update}


def partition(number: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


def waiting(reason: str) -> dict[str, Any]:
    return {"name": "main", "state": {"waiting": {"reason": reason}}}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "health"),
    [
        ("Thing", {}, {}, Health.UNKNOWN),
        ("Thing", {}, None, Health.UNKNOWN),
        ("Thing", {}, {"conditions": None}, Health.UNKNOWN),
        ("Thing", {}, condition("Ready"), Health.HEALTHY),
        ("Thing", {}, condition("Ready", "False", message="soon"), Health.PROGRESSING),
        ("Thing", {}, condition("Ready", "Unknown"), Health.PROGRESSING),
        ("Thing", {}, condition("Odd"), Health.UNKNOWN),
        ("Thing", {}, condition("Stalled", reason="Tired"), Health.DEGRADED),
        ("Thing", {}, {**condition("Ready"), "observedGeneration": 1}, Health.PROGRESSING),
        ("Thing", {}, {**condition("Ready"), "observedGeneration": 2}, Health.HEALTHY),
        ("Job", {}, condition("Complete"), Health.HEALTHY),
        ("Job", {}, condition("Failed"), Health.DEGRADED),
        ("Job", {}, {"active": 1}, Health.PROGRESSING),
        ("Job", {"suspend": True}, condition("Suspended"), Health.SUSPENDED),
        ("Deployment", {"paused": True}, {"availableReplicas": 1, "updatedReplicas": 1}, Health.SUSPENDED),
        ("Deployment", {}, {"availableReplicas": 1, "updatedReplicas": 1, "replicas": 2}, Health.PROGRESSING),
        ("Deployment", {}, {"availableReplicas": 1, "replicas": 1}, Health.PROGRESSING),
        ("Deployment", {"replicas": 2}, {"availableReplicas": 2, "updatedReplicas": 2}, Health.HEALTHY),
        ("Deployment", {"replicas": 2}, {"availableReplicas": 2, "updatedReplicas": 1}, Health.PROGRESSING),
        ("Deployment", {}, {}, Health.PROGRESSING),
        ("Deployment", {"replicas": 0}, {}, Health.HEALTHY),
        ("Deployment", {}, condition("Progressing", reason="ProgressDeadlineExceeded"), Health.DEGRADED),
        ("StatefulSet", {"replicas": 1}, {"readyReplicas": 1, "updatedReplicas": 1}, Health.HEALTHY),
        ("StatefulSet", {"replicas": 1}, {"readyReplicas": 1}, Health.PROGRESSING),
        ("StatefulSet", {"replicas": 1}, {"readyReplicas": 1, **revisions("a", "a")}, Health.PROGRESSING),
        ("StatefulSet", {}, {"readyReplicas": 1, "updatedReplicas": 1, **revisions("a", "a")}, Health.HEALTHY),
        ("StatefulSet", {"replicas": 1}, {"readyReplicas": 1, **revisions("a", "b")}, Health.PROGRESSING),
        ("StatefulSet", {"replicas": 3, **partition(2)}, {"readyReplicas": 3, "updatedReplicas": 1}, Health.HEALTHY),
        (
            "StatefulSet",
            {"replicas": 3, **partition(1)},
            {"readyReplicas": 3, "updatedReplicas": 1},
            Health.PROGRESSING,
        ),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, {"readyReplicas": 1}, Health.HEALTHY),
        ("ReplicaSet", {"replicas": 2}, {"readyReplicas": 2}, Health.HEALTHY),
        ("ReplicaSet", {"replicas": 2}, {"readyReplicas": 1}, Health.PROGRESSING),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 3, "numberAvailable": 3, "updatedNumberScheduled": 2},
            Health.PROGRESSING,
        ),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 3, "numberAvailable": 3, "updatedNumberScheduled": 3},
            Health.HEALTHY,
        ),
        ("Pod", {}, {}, Health.PROGRESSING),
        ("Pod", {}, {"phase": "Running", **condition("Ready")}, Health.HEALTHY),
        ("Pod", {}, {"phase": "Running", **condition("Ready", "False")}, Health.PROGRESSING),
        ("Pod", {}, {"phase": "Succeeded", **condition("Ready", "False")}, Health.HEALTHY),
        ("Pod", {}, {"phase": "Failed", "reason": "Evicted"}, Health.DEGRADED),
        ("Pod", {}, {"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff")]}, Health.DEGRADED),
        ("Pod", {}, {"phase": "Pending", "initContainerStatuses": [waiting("CrashLoopBackOff")]}, Health.DEGRADED),
        ("Pod", {}, {"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}, Health.PROGRESSING),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 3, "numberAvailable": 2, "updatedNumberScheduled": 3},
            Health.PROGRESSING,
        ),
        ("PersistentVolumeClaim", {}, {"phase": "Bound"}, Health.HEALTHY),
        ("PersistentVolumeClaim", {}, {"phase": "Pending"}, Health.PROGRESSING),
        ("PersistentVolumeClaim", {}, {"phase": "Lost"}, Health.DEGRADED),
        ("PersistentVolumeClaim", {}, {}, Health.UNKNOWN),
    ],
)
def test_health(kind: str, spec: Any, status: Any, health: Health) -> None:
    found = assess_object({"kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status})
    assert found.health is health, found
    assert not found.is_deleting


def test_it_says_why() -> None:
    item = {"kind": "Thing", "metadata": {"deletionTimestamp": "now"}, "status": condition("Failed", message="no disk")}
    assert assess_object(item).health_message == "Failed is True: no disk"
    assert assess_object(item).is_deleting


@pytest.mark.parametrize(
    ("kind", "spec", "status", "message"),
    [
        ("StatefulSet", {"replicas": 3}, {"readyReplicas": 1}, "1 of 3 are there"),
        ("Deployment", {}, {"availableReplicas": 1}, "1 are there, but not all are of the latest version yet"),
        ("Pod", {}, {"containerStatuses": [waiting("CrashLoopBackOff")]}, "container main: CrashLoopBackOff"),
    ],
)
def test_its_words(kind: str, spec: Any, status: Any, message: str) -> None:
    item = {"kind": kind, "metadata": {}, "spec": spec, "status": status}
    assert assess_object(item).health_message == message
