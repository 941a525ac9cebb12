"""Scripts of workloads: what is asked of Deployments, StatefulSets, DaemonSets, Jobs and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.kube.client.resources import PODS, Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.recordings.clusters import Stage
    from windlass.kube.client.objects import RawObject

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)

IMAGE = "busybox:1"
NO_IMAGE = "registry.invalid/none:1"


def container(script: str = "sleep 100000", image: str = IMAGE, **more: Any) -> RawObject:
    return {"name": "main", "image": image, "command": ["sh", "-c", script], **more}


def pod_spec(found: RawObject, **more: Any) -> RawObject:
    return {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "containers": [found], **more}


def workload(resource: Resource, name: str, found: RawObject, **spec: Any) -> RawObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(found)}
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": body}


def image_patch(found: RawObject) -> RawObject:
    return {"spec": {"template": {"spec": {"containers": [found]}}}}


def rolled_out(count: int) -> Callable[[RawObject], bool]:
    """As `kubectl rollout status` sees it."""

    def holds(item: RawObject) -> bool:
        status = item.get("status", {})
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        return status.get("observedGeneration") == item["metadata"]["generation"] and counts == [count] * 3

    return holds


def condition(kind: str, status: str = "True", reason: str = "") -> Callable[[RawObject], bool]:
    def holds(item: RawObject) -> bool:
        found = [c for c in item.get("status", {}).get("conditions", []) if c["type"] == kind]
        return any(c["status"] == status and reason in {"", c.get("reason")} for c in found)

    return holds


def waiting_for(reason: str) -> Callable[[RawObject], bool]:
    def holds(item: RawObject) -> bool:
        statuses = item.get("status", {}).get("containerStatuses", [])
        return any(s["state"].get("waiting", {}).get("reason") == reason for s in statuses)

    return holds


async def deployment(stage: Stage) -> None:
    ref = DEPLOYMENTS.named("web", stage.namespace)
    item = workload(DEPLOYMENTS, "web", container(), replicas=2)
    await stage.create(DEPLOYMENTS.in_namespace(stage.namespace), item, "create Deployment web with 2 replicas")
    await stage.until("Deployment", "web", rolled_out(2))
    await stage.settled()
    await stage.patch(ref, image_patch(container("sleep 200000")), "change the template")
    await stage.until("Deployment", "web", rolled_out(2))
    await stage.settled()
    await stage.patch(ref.with_subresource("scale"), {"spec": {"replicas": 3}}, "scale to 3")
    await stage.until("Deployment", "web", rolled_out(3))
    await stage.settled()
    await stage.patch(ref.with_subresource("scale"), {"spec": {"replicas": 1}}, "scale to 1")
    await stage.until("Deployment", "web", rolled_out(1))
    await stage.settled()
    await stage.patch(ref, {"spec": {"replicas": 0}}, "scale to 0")
    await stage.until("Deployment", "web", rolled_out(0))
    await stage.settled()
    await stage.patch(ref, {"spec": {"replicas": 1}}, "scale to 1 again")
    await stage.until("Deployment", "web", rolled_out(1))
    await stage.settled()
    await stage.delete(ref, "Foreground")
    await stage.until_gone("Deployment")


async def deployment_without_image(stage: Stage) -> None:
    ref = DEPLOYMENTS.named("web", stage.namespace)
    item = workload(DEPLOYMENTS, "web", container(), replicas=1, progressDeadlineSeconds=6)
    await stage.create(DEPLOYMENTS.in_namespace(stage.namespace), item, "create Deployment web, deadline of 6 s")
    await stage.until("Deployment", "web", rolled_out(1))
    await stage.settled()
    await stage.patch(ref, image_patch(container(image=NO_IMAGE)), "change the image to one that cannot be pulled")
    await stage.until_any("Pod", waiting_for("ImagePullBackOff"))
    await stage.until("Deployment", "web", condition("Progressing", "False", "ProgressDeadlineExceeded"))
    await stage.settled()
    await stage.patch(ref, image_patch(container()), "change it back")
    await stage.until("Deployment", "web", rolled_out(1))
    await stage.settled()
    await stage.delete(ref)
    await stage.until_gone("Pod")


async def deployment_that_never_starts(stage: Stage) -> None:
    item = workload(DEPLOYMENTS, "web", container("exit 1"), replicas=1, progressDeadlineSeconds=6)
    await stage.create(
        DEPLOYMENTS.in_namespace(stage.namespace), item, "create Deployment web whose container exits with 1"
    )
    await stage.until_any("Pod", waiting_for("CrashLoopBackOff"))
    await stage.until("Deployment", "web", condition("Progressing", "False", "ProgressDeadlineExceeded"))
    await stage.settled()
    await stage.delete(DEPLOYMENTS.named("web", stage.namespace))
    await stage.until_gone("Pod")


async def stateful_set(stage: Stage) -> None:
    ref = STATEFUL_SETS.named("db", stage.namespace)

    def is_done(count: int) -> Callable[[RawObject], bool]:
        def holds(item: RawObject) -> bool:
            status = item.get("status", {})
            current = status.get("currentRevision") == status.get("updateRevision")
            observed = status.get("observedGeneration") == item["metadata"]["generation"]
            ready = (status.get("replicas", 0), status.get("readyReplicas", 0)) == (count, count)
            return bool(current and observed and ready)

        return holds

    item = workload(STATEFUL_SETS, "db", container(), replicas=2, serviceName="db")
    await stage.create(STATEFUL_SETS.in_namespace(stage.namespace), item, "create StatefulSet db with 2 replicas")
    await stage.until("StatefulSet", "db", is_done(2))
    await stage.settled()
    await stage.patch(ref, image_patch(container("sleep 200000")), "change the template")
    await stage.until("StatefulSet", "db", is_done(2))
    await stage.settled()
    await stage.patch(ref.with_subresource("scale"), {"spec": {"replicas": 1}}, "scale to 1")
    await stage.until("StatefulSet", "db", is_done(1))
    await stage.settled()
    await stage.delete(ref)
    await stage.until_gone("Pod")


async def daemon_set(stage: Stage) -> None:
    ref = DAEMON_SETS.named("agent", stage.namespace)

    def is_done(item: RawObject) -> bool:
        status = item.get("status", {})
        observed = status.get("observedGeneration") == item["metadata"]["generation"]
        return bool(observed and status.get("updatedNumberScheduled") == status.get("numberAvailable") == 1)

    await stage.create(DAEMON_SETS.in_namespace(stage.namespace), workload(DAEMON_SETS, "agent", container()))
    await stage.until("DaemonSet", "agent", is_done)
    await stage.settled()
    await stage.patch(ref, image_patch(container("sleep 200000")), "change the template")
    await stage.until("DaemonSet", "agent", is_done)
    await stage.settled()
    await stage.delete(ref)
    await stage.until_gone("Pod")


def job(name: str, found: RawObject, **spec: Any) -> RawObject:
    template = {"spec": pod_spec(found, restartPolicy="Never")}
    head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    return {**head, "spec": {"template": template, **spec}}


def job_script(
    item: RawObject, about: str, done: Callable[[Stage], Awaitable[object]]
) -> Callable[[Stage], Awaitable[None]]:
    async def script(stage: Stage) -> None:
        name = item["metadata"]["name"]
        await stage.create(JOBS.in_namespace(stage.namespace), item, f"create Job {name}: {about}")
        await done(stage)
        await stage.settled()
        await stage.delete(JOBS.named(name, stage.namespace))
        await stage.until_gone("Job")
        await stage.until_gone("Pod")

    return script


def ends(kind: str, reason: str = "") -> Callable[[Stage], Awaitable[object]]:
    return lambda stage: stage.until("Job", "run", condition(kind, "True", reason))


job_complete = job_script(job("run", container("echo done")), "succeeds at once", ends("Complete"))
job_failed = job_script(
    job("run", container("exit 3"), backoffLimit=1), "exits with 3, one retry", ends("Failed", "BackoffLimitExceeded")
)
job_without_retry = job_script(
    job("run", container("exit 3"), backoffLimit=0), "exits with 3, no retry", ends("Failed", "BackoffLimitExceeded")
)
job_deadline = job_script(
    job("run", container(), activeDeadlineSeconds=3), "runs longer than its 3 s", ends("Failed", "DeadlineExceeded")
)
job_out_of_memory = job_script(
    job("run", container("tail /dev/zero", resources={"limits": {"memory": "16Mi"}}), backoffLimit=0),
    "needs more memory than it may have", ends("Failed", "BackoffLimitExceeded"),
)  # fmt: skip
job_without_image = job_script(
    job("run", container(image=NO_IMAGE)), "an image that cannot be pulled",
    lambda stage: stage.until_any("Pod", waiting_for("ImagePullBackOff")),
)  # fmt: skip
job_parallel = job_script(
    job("run", container("sleep 1"), completions=3, parallelism=2), "3 pods, 2 at once", ends("Complete")
)


async def job_suspended(stage: Stage) -> None:
    ref = JOBS.named("run", stage.namespace)
    await stage.create(
        JOBS.in_namespace(stage.namespace), job("run", container(), suspend=True), "create Job run, suspended"
    )
    await stage.until("Job", "run", condition("Suspended"))
    await stage.settled()
    await stage.patch(ref, {"spec": {"suspend": False}}, "resume")
    await stage.until("Job", "run", lambda item: item["status"].get("ready") == 1)
    await stage.settled()
    await stage.patch(ref, {"spec": {"suspend": True}}, "suspend")
    await stage.until_gone("Pod")
    await stage.settled()
    await stage.delete(ref)
    await stage.until_gone("Job")


async def claim(stage: Stage) -> None:
    ref = CLAIMS.named("data", stage.namespace)
    size = {"resources": {"requests": {"storage": "1Mi"}}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand", **size}
    item = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    await stage.create(CLAIMS.in_namespace(stage.namespace), item)
    await stage.until("PersistentVolumeClaim", "data", lambda item: item["status"].get("phase") == "Pending")
    await stage.settled()
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "recording-volume"},
        "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/tmp/recording-volume"},
        },
    }  # fmt: skip
    await stage.create(VOLUMES.everywhere, volume)
    await stage.until("PersistentVolumeClaim", "data", lambda item: item["status"].get("phase") == "Bound")
    await stage.settled()
    await stage.delete(ref)
    await stage.until("PersistentVolume", "recording-volume", lambda item: item["status"]["phase"] == "Released")
    await stage.settled()
    await stage.delete(VOLUMES.named("recording-volume"))
    await stage.until_gone("PersistentVolume")


OF_PODS = (DEPLOYMENTS, REPLICA_SETS, PODS)
OF_JOBS = (JOBS, PODS)
