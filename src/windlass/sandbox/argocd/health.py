"""Argo CD's built-in health checks for the kinds that the sandbox's Applications contain. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.sandbox.controllers import object_builders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windlass.sandbox.apiserver.wire.api_status import Body

Health = tuple[str, str]
"""Status and message."""
HEALTHY: Health = ("Healthy", "")
ORDER = ("Healthy", "Suspended", "Progressing", "Missing", "Degraded", "Unknown")


def worst_of(found: Iterable[str]) -> str:
    return max(found, key=ORDER.index, default="Healthy")


def _deployment(body: Body) -> Health:
    spec, status, name = body["spec"], body.get("status", {}), body["metadata"]["name"]
    if spec.get("paused"):
        return "Suspended", "Deployment is paused"
    if body["metadata"]["generation"] > status.get("observedGeneration", 0):
        return "Progressing", "Waiting for rollout to finish: observed deployment generation less than desired"
    if object_builders.condition_in(status, "Progressing").get("reason") == "ProgressDeadlineExceeded":
        return "Degraded", f'Deployment "{name}" exceeded its progress deadline'
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < spec.get("replicas", 1):
        left = f"{updated} out of {spec.get('replicas', 1)} new replicas have been updated"
    elif status.get("replicas", 0) > updated:
        left = f"{status['replicas'] - updated} old replicas are pending termination"
    elif available < updated:
        left = f"{available} of {updated} updated replicas are available"
    else:
        return HEALTHY
    return "Progressing", f"Waiting for rollout to finish: {left}..."


def _stateful_set(body: Body) -> Health:
    spec, status = body["spec"], body.get("status", {})
    if body["metadata"]["generation"] > status.get("observedGeneration", 0):
        return "Progressing", "Waiting for statefulset spec update to be observed..."
    ready, wanted = status.get("readyReplicas", 0), spec.get("replicas", 1)
    if ready < wanted:
        return "Progressing", f"Waiting for {wanted - ready} pods to be ready..."
    updated, rolling = status.get("updatedReplicas", 0), spec.get("updateStrategy", {}).get("rollingUpdate", {})
    if (partition := rolling.get("partition")) is not None and updated < wanted - partition:
        return "Progressing", f"Waiting for the roll out: {updated} of {wanted - partition} pods are updated"
    return HEALTHY


def _daemon_set(body: Body) -> Health:
    status = body.get("status", {})
    if body["metadata"]["generation"] > status.get("observedGeneration", 0):
        return "Progressing", "Waiting for rollout to finish: observed daemon set generation less than desired"
    wanted = status.get("desiredNumberScheduled", 0)
    for name, word in (("updatedNumberScheduled", "updated"), ("numberAvailable", "available")):
        if status.get(name, 0) < wanted:
            return "Progressing", f"Waiting for daemon set rollout: {status.get(name, 0)} of {wanted} pods are {word}"
    return HEALTHY


def _job(body: Body) -> Health:
    for row in body.get("status", {}).get("conditions") or ():
        if row["status"] == "True" and row["type"] in {"Complete", "Failed", "Suspended"}:
            word = {"Complete": "Healthy", "Failed": "Degraded", "Suspended": "Suspended"}[row["type"]]
            return word, row.get("message", "")
    return "Progressing", ""


def _pod(body: Body) -> Health:
    status = body.get("status", {})
    for row in status.get("containerStatuses") or ():
        why = row["state"].get("waiting", {}).get("reason", "")
        if why.startswith("Err") or why.endswith(("Error", "BackOff")):
            return "Degraded", row["state"]["waiting"].get("message", "")
    phase = status.get("phase")
    if phase == "Running" and body["spec"].get("restartPolicy") == "Always":
        return HEALTHY if object_builders.is_ready(body) else ("Progressing", "")
    return {"Succeeded": "Healthy", "Failed": "Degraded", "Unknown": "Unknown"}.get(phase, "Progressing"), ""


def _claim(body: Body) -> Health:
    phase = body.get("status", {}).get("phase")
    return {"Bound": "Healthy", "Lost": "Degraded"}.get(phase, "Progressing"), ""


def _service(body: Body) -> Health:
    waits = body["spec"].get("type") == "LoadBalancer" and not body.get("status", {}).get("loadBalancer", {}).get(
        "ingress"
    )
    return "Progressing" if waits else "Healthy", ""


def of_application(body: Body) -> Health:
    """Used only if `applications_have_health` is set: by default Argo CD does not assess Applications."""
    health = body.get("status", {}).get("health", {})
    return health.get("status", "Progressing"), health.get("message", "")


RULES: dict[str, Callable[[Body], Health]] = {
    "deployments.apps": _deployment,
    "statefulsets.apps": _stateful_set,
    "daemonsets.apps": _daemon_set,
    "jobs.batch": _job,
    "pods": _pod,
    "persistentvolumeclaims": _claim,
    "services": _service,
}
