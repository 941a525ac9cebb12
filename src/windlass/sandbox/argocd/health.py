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
SEVERITY_ORDER = ("Healthy", "Suspended", "Progressing", "Missing", "Degraded", "Unknown")


def worst(statuses: Iterable[str]) -> str:
    return max(statuses, key=SEVERITY_ORDER.index, default="Healthy")


def _deployment(body: Body) -> Health:
    spec, status, name = body["spec"], body.get("status", {}), body["metadata"]["name"]
    if spec.get("paused"):
        return "Suspended", "Deployment is paused"
    if body["metadata"]["generation"] > status.get("observedGeneration", 0):
        return "Progressing", "Waiting for rollout to finish: observed deployment generation less than desired"
    if object_builders.find_condition(status, "Progressing").get("reason") == "ProgressDeadlineExceeded":
        return "Degraded", f'Deployment "{name}" exceeded its progress deadline'
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if updated < spec.get("replicas", 1):
        pending = f"{updated} out of {spec.get('replicas', 1)} new replicas have been updated"
    elif status.get("replicas", 0) > updated:
        pending = f"{status['replicas'] - updated} old replicas are pending termination"
    elif available < updated:
        pending = f"{available} of {updated} updated replicas are available"
    else:
        return HEALTHY
    return "Progressing", f"Waiting for rollout to finish: {pending}..."


def _stateful_set(body: Body) -> Health:
    spec, status = body["spec"], body.get("status", {})
    if body["metadata"]["generation"] > status.get("observedGeneration", 0):
        return "Progressing", "Waiting for statefulset spec update to be observed..."
    ready, desired = status.get("readyReplicas", 0), spec.get("replicas", 1)
    if ready < desired:
        return "Progressing", f"Waiting for {desired - ready} pods to be ready..."
    updated, rolling = status.get("updatedReplicas", 0), spec.get("updateStrategy", {}).get("rollingUpdate", {})
    if (partition := rolling.get("partition")) is not None and updated < desired - partition:
        return "Progressing", f"Waiting for the roll out: {updated} of {desired - partition} pods are updated"
    return HEALTHY


def _daemon_set(body: Body) -> Health:
    status = body.get("status", {})
    if body["metadata"]["generation"] > status.get("observedGeneration", 0):
        return "Progressing", "Waiting for rollout to finish: observed daemon set generation less than desired"
    desired = status.get("desiredNumberScheduled", 0)
    for name, word in (("updatedNumberScheduled", "updated"), ("numberAvailable", "available")):
        if status.get(name, 0) < desired:
            return "Progressing", f"Waiting for daemon set rollout: {status.get(name, 0)} of {desired} pods are {word}"
    return HEALTHY


def _job(body: Body) -> Health:
    for condition in body.get("status", {}).get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in {"Complete", "Failed", "Suspended"}:
            word = {"Complete": "Healthy", "Failed": "Degraded", "Suspended": "Suspended"}[condition["type"]]
            return word, condition.get("message", "")
    return "Progressing", ""


def _pod(body: Body) -> Health:
    status = body.get("status", {})
    for row in status.get("containerStatuses") or ():
        reason = row["state"].get("waiting", {}).get("reason", "")
        if reason.startswith("Err") or reason.endswith(("Error", "BackOff")):
            return "Degraded", row["state"]["waiting"].get("message", "")
    phase = status.get("phase")
    if phase == "Running" and body["spec"].get("restartPolicy") == "Always":
        return HEALTHY if object_builders.is_ready(body) else ("Progressing", "")
    return {"Succeeded": "Healthy", "Failed": "Degraded", "Unknown": "Unknown"}.get(phase, "Progressing"), ""


def _claim(body: Body) -> Health:
    phase = body.get("status", {}).get("phase")
    return {"Bound": "Healthy", "Lost": "Degraded"}.get(phase, "Progressing"), ""


def _service(body: Body) -> Health:
    is_pending = body["spec"].get("type") == "LoadBalancer" and not body.get("status", {}).get("loadBalancer", {}).get(
        "ingress"
    )
    return "Progressing" if is_pending else "Healthy", ""


def application_health(body: Body) -> Health:
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
