"""Health of resources, as Argo CD's built-in rules have it."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.sandbox.argocd import health

SEEN = {"observedGeneration": 1}
DEADLINE = {"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}


def running(reason: str = "", ready: str = "True") -> dict[str, Any]:
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    rows = [{"type": "Ready", "status": ready}]
    return {"phase": "Running", "conditions": rows, "containerStatuses": [{"state": state}]}


ROLLING = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}


def ended(kind: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"}]}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        ("deployments.apps", {}, {}, "Progressing"),
        ("deployments.apps", {"paused": True}, {}, "Suspended"),
        ("deployments.apps", {}, {**SEEN, **DEADLINE}, "Degraded"),
        ("deployments.apps", {}, SEEN, "Progressing"),
        ("deployments.apps", {}, {**SEEN, "updatedReplicas": 1, "replicas": 2}, "Progressing"),
        ("deployments.apps", {}, {**SEEN, "updatedReplicas": 1, "replicas": 1}, "Progressing"),
        ("deployments.apps", {}, {**SEEN, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1}, "Healthy"),
        ("statefulsets.apps", {}, {}, "Progressing"),
        ("statefulsets.apps", {"replicas": 2}, {**SEEN, "readyReplicas": 1}, "Progressing"),
        ("statefulsets.apps", ROLLING, {**SEEN, "readyReplicas": 1}, "Progressing"),
        ("statefulsets.apps", ROLLING, {**SEEN, "readyReplicas": 1, "updatedReplicas": 1}, "Healthy"),
        ("statefulsets.apps", {"updateStrategy": {"type": "OnDelete"}}, {**SEEN, "readyReplicas": 1}, "Healthy"),
        ("daemonsets.apps", {}, {}, "Progressing"),
        ("daemonsets.apps", {}, {**SEEN, "desiredNumberScheduled": 1}, "Progressing"),
        ("daemonsets.apps", {}, SEEN, "Healthy"),
        ("jobs.batch", {}, {}, "Progressing"),
        ("jobs.batch", {}, ended("Complete"), "Healthy"),
        ("jobs.batch", {}, ended("Failed"), "Degraded"),
        ("jobs.batch", {}, ended("Suspended"), "Suspended"),
        ("pods", {"restartPolicy": "Always"}, running(), "Healthy"),
        ("pods", {"restartPolicy": "Always"}, running(ready="False"), "Progressing"),
        ("pods", {"restartPolicy": "Always"}, running("CrashLoopBackOff"), "Degraded"),
        ("pods", {"restartPolicy": "Always"}, running("ErrImagePull"), "Degraded"),
        ("pods", {"restartPolicy": "Never"}, running(), "Progressing"),
        ("pods", {}, {"phase": "Succeeded"}, "Healthy"),
        ("pods", {}, {"phase": "Failed"}, "Degraded"),
        ("persistentvolumeclaims", {}, {"phase": "Bound"}, "Healthy"),
        ("persistentvolumeclaims", {}, {"phase": "Lost"}, "Degraded"),
        ("persistentvolumeclaims", {}, {}, "Progressing"),
        ("services", {"type": "ClusterIP"}, {}, "Healthy"),
        ("services", {"type": "LoadBalancer"}, {}, "Progressing"),
        ("services", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}, "Healthy"),
    ],
)
def test_health_of_a_resource(kind: str, spec: Any, status: Any, expected: str) -> None:
    body = {"metadata": {"name": "x", "generation": 1}, "spec": spec, "status": status}
    assert health.RULES[kind](body)[0] == expected


def test_the_worst_health_counts() -> None:
    assert health.worst([]) == "Healthy"
    assert health.worst(["Healthy", "Progressing", "Suspended"]) == "Progressing"
    assert health.worst(["Missing", "Degraded", "Progressing"]) == "Degraded"
