"""Objects that are read directly: good only if they say so."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.argo.healths import judged_object
from windlass.core.platform.health import Health


def condition(name: str, status: str = "True", **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status, **more}]}


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
        ("Deployment", {"replicas": 2}, {"availableReplicas": 2, "updatedReplicas": 2}, Health.HEALTHY),
        ("Deployment", {"replicas": 2}, {"availableReplicas": 2, "updatedReplicas": 1}, Health.PROGRESSING),
        ("Deployment", {}, {}, Health.PROGRESSING),
        ("Deployment", {"replicas": 0}, {}, Health.HEALTHY),
        ("Deployment", {}, condition("Progressing", reason="ProgressDeadlineExceeded"), Health.DEGRADED),
        ("StatefulSet", {"replicas": 1}, {"readyReplicas": 1, "updatedReplicas": 1}, Health.HEALTHY),
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
    found = judged_object({"kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status})
    assert found.health is health, found
    assert not found.is_deleting


def test_it_says_why() -> None:
    item = {"kind": "Thing", "metadata": {"deletionTimestamp": "now"}, "status": condition("Failed", message="no disk")}
    assert judged_object(item).health_message == "Failed is True: no disk"
    assert judged_object(item).is_deleting
