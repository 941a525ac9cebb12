"""Workloads: how they become what they become, by the behaviour of their containers."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.controllers.clusters import after, run, world
from tests.sandbox.controllers.objects import claim, job, pod_template, workload
from windlass.sandbox.controllers import behaviours
from windlass.sandbox.controllers.behaviours import Behaviour

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World

DEPLOYMENTS, JOBS = "deployments.apps", "jobs.batch"


def reasons(item: dict[str, Any]) -> dict[str, str]:
    return {row["type"]: row.get("reason", row["status"]) for row in item["status"].get("conditions", ())}


@pytest.mark.parametrize(
    ("text", "seconds"), [("3s", 3), ("500ms", 0.5), ("1m30s", 90), ("2h", 7200), ("never", inf), ("0s", 0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert behaviours.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("behaviour", "policy", "age", "expected"),
    [
        (Behaviour(), "Always", 0.1, ("waiting", "ContainerCreating", False, 0)),
        (Behaviour(), "Always", 0.4, ("running", "", False, 0)),
        (Behaviour(), "Always", 0.9, ("running", "", True, 0)),
        (Behaviour(flaps_every=10), "Always", 12.0, ("running", "", False, 0)),
        (Behaviour(flaps_every=10), "Always", 22.0, ("running", "", True, 0)),
        (Behaviour(), "Never", 2.0, ("terminated", "Completed", False, 0)),
        (Behaviour(exit_code=3), "Never", 2.0, ("terminated", "Error", False, 0)),
        (Behaviour(fails_with="OOMKilled"), "Never", 2.0, ("terminated", "OOMKilled", False, 0)),
        (Behaviour(fails_with="ErrImagePull"), "Always", 2.0, ("waiting", "ErrImagePull", False, 0)),
        (Behaviour(fails_with="ImagePullBackOff"), "Always", 99.0, ("waiting", "ImagePullBackOff", False, 0)),
        (Behaviour(fails_with="InvalidImageName"), "Always", 9.0, ("waiting", "InvalidImageName", False, 0)),
        (Behaviour(fails_with="CrashLoopBackOff"), "Always", 2.0, ("terminated", "Error", False, 0)),
        (Behaviour(fails_with="CrashLoopBackOff"), "Always", 5.0, ("waiting", "CrashLoopBackOff", False, 1)),
        (Behaviour(fails_with="CrashLoopBackOff"), "Always", 14.5, ("running", "", False, 2)),
    ],
)  # fmt: skip
def test_what_a_container_does_at_an_age(behaviour: Behaviour, policy: str, age: float, expected: Any) -> None:
    state = behaviours.container_state(behaviour, policy, age)
    assert (state.phase, state.reason, state.ready, state.restarts) == expected
    assert state.since <= age < state.until


def test_a_deployment_is_available_when_its_pods_are_ready() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            note = {f"{behaviours.ANNOTATION_PREFIX}ready-after": "3s"}
            await calls.create(DEPLOYMENTS, workload(replicas=2, annotations=note), "default")
            await after(3.2)
            assert reasons(await calls.get(DEPLOYMENTS, "web", "default"))["Available"] == "MinimumReplicasUnavailable"
            await after(0.3)
            found = await calls.get(DEPLOYMENTS, "web", "default")
            assert reasons(found) == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
            assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
            assert found["status"]["availableReplicas"] == 2

    run(main())


@pytest.mark.parametrize(("strategy", "most", "fewest"), [("RollingUpdate", 5, 3), ("Recreate", 4, 0)])
def test_a_rollout_keeps_within_its_limits(strategy: str, most: int, fewest: int) -> None:
    async def main() -> None:
        async with world() as w:
            calls, counts = w.sandbox.client(), []
            await calls.create(DEPLOYMENTS, workload(replicas=4, strategy={"type": strategy}), "default")
            await after(5)

            def count(_: object) -> None:
                pods = [pod.load() for pod in w.sandbox.server.store.list("pods", "default")]
                counts.append((len(pods), sum("deletionTimestamp" not in p["metadata"] for p in pods)))

            w.sandbox.server.store.listen("pods", "default", count)
            change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}}
            await calls.patch(DEPLOYMENTS, "web", change, "default")
            await after(60)
            assert max(living for _, living in counts) <= most
            assert min(living for _, living in counts) <= fewest + (strategy == "RollingUpdate")
            images = {pod["spec"]["containers"][0]["image"] for pod in await calls.list("pods", "default")}
            assert images == {"web:2"}
            found = await calls.get(DEPLOYMENTS, "web", "default")
            assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"

    run(main())


def test_a_paused_deployment_waits() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create(DEPLOYMENTS, workload(paused=True), "default")
            await after(5)
            assert reasons(await calls.get(DEPLOYMENTS, "web", "default"))["Progressing"] == "DeploymentPaused"
            await calls.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}}, "default")
            await after(5)
            assert reasons(await calls.get(DEPLOYMENTS, "web", "default"))["Progressing"] == "NewReplicaSetAvailable"

    run(main())


@pytest.mark.parametrize(
    ("annotations", "spec", "condition", "counts"),
    [
        ({}, {}, ("Complete", "CompletionsReached"), (1, 0)),
        ({"exit-code": "3"}, {"backoffLimit": 2}, ("Failed", "BackoffLimitExceeded"), (0, 3)),
        ({"fails-with": "OOMKilled"}, {"backoffLimit": 0}, ("Failed", "BackoffLimitExceeded"), (0, 1)),
        ({"ends-after": "never"}, {"activeDeadlineSeconds": 4}, ("Failed", "DeadlineExceeded"), (0, 1)),
        ({}, {"completions": 3, "parallelism": 2}, ("Complete", "CompletionsReached"), (3, 0)),
        ({"exit-code": "1"}, {"backoffLimit": 1, "restart": "OnFailure"}, ("Failed", "BackoffLimitExceeded"), (0, 1)),
    ],
)
def test_jobs_end_as_their_pods_do(annotations: Any, spec: Any, condition: Any, counts: Any) -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            notes = {f"{behaviours.ANNOTATION_PREFIX}{name}": value for name, value in annotations.items()}
            await calls.create(JOBS, job(annotations=notes, **spec), "default")
            await after(200)
            status = (await calls.get(JOBS, "run", "default"))["status"]
            assert reasons({"status": status})[condition[0]] == condition[1]
            assert (status.get("succeeded", 0), status.get("failed", 0)) == counts
            assert status["ready"] == status["terminating"] == 0

    run(main())


def test_a_job_goes_some_time_after_its_end_and_its_logs_can_be_read_before() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            w.workloads.behaviours.by_image["run:*"] = Behaviour(log="done\n", exit_code=7)
            await calls.create(JOBS, job(backoffLimit=0, ttlSecondsAfterFinished=30), "default")
            await after(10)
            (pod,) = await calls.list("pods", "default")
            assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
            assert list(w.sandbox.server.subresources.logs.values()) == ["done\n"]
            await after(40)
            assert await calls.list(JOBS) == await calls.list("pods", "default") == []

    run(main())


def test_a_daemonset_follows_the_nodes() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create("daemonsets.apps", workload("DaemonSet", "agent"), "default")
            await calls.create("nodes", {"metadata": {"name": "second"}})
            await after(5)
            status = (await calls.get("daemonsets.apps", "agent", "default"))["status"]
            assert status["numberReady"] == status["desiredNumberScheduled"] == 2

    run(main())


def test_pods_of_a_statefulset_get_claims_that_outlive_them() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            body = workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[claim()])
            await calls.create("statefulsets.apps", body, "default")
            await after(10)
            claims = await calls.list("persistentvolumeclaims", "default")
            assert [(c["metadata"]["name"], c["status"]["phase"]) for c in claims] == [
                ("data-db-0", "Bound"),
                ("data-db-1", "Bound"),
            ]
            await calls.delete("statefulsets.apps", "db", "default")
            await after(10)
            assert await calls.list("pods", "default") == []
            assert len(await calls.list("persistentvolumeclaims", "default")) == 2

    run(main())


def test_a_pod_waits_for_its_claim() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
            template = pod_template(volumes=[volume])
            await calls.create("pods", {"metadata": {"name": "one"}, "spec": template["spec"]}, "default")
            await after(5)
            assert reasons(await calls.get("pods", "one", "default"))["PodScheduled"] == "Unschedulable"
            await calls.create("persistentvolumeclaims", claim(), "default")
            await after(5)
            assert (await calls.get("pods", "one", "default"))["status"]["phase"] == "Running"

    run(main())


async def bound(w: World, **spec: Any) -> dict[str, Any]:
    calls = w.sandbox.client()
    await calls.create("persistentvolumeclaims", claim(**spec), "default")
    await after(1)
    return await calls.get("persistentvolumeclaims", "data", "default")


def test_a_retained_volume_is_released_and_can_be_bound_again_by_name() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            kept = {"metadata": {"name": "kept"}, "provisioner": "p", "reclaimPolicy": "Retain"}
            await calls.create("storageclasses.storage.k8s.io", kept)
            name = (await bound(w, storageClassName="kept"))["spec"]["volumeName"]
            await calls.delete("persistentvolumeclaims", "data", "default")
            await after(1)
            assert (await calls.get("persistentvolumes", name))["status"]["phase"] == "Released"
            await calls.patch("persistentvolumes", name, {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}})
            await after(1)
            assert (await calls.get("persistentvolumes", name))["status"]["phase"] == "Available"
            again = await bound(w, storageClassName="kept", volumeName=name)
            assert again["status"]["phase"] == "Bound"
            assert (await calls.get("persistentvolumes", name))["spec"]["claimRef"]["uid"] == again["metadata"]["uid"]

    run(main())


def test_a_volume_made_for_a_claim_goes_with_it_and_a_claim_without_its_volume_is_lost() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            assert (await bound(w))["spec"]["storageClassName"] == "standard"
            await calls.delete("persistentvolumeclaims", "data", "default")
            await after(1)
            assert await calls.list("persistentvolumes") == []
            waiting = await bound(w, storageClassName="none")
            assert waiting["status"]["phase"] == "Pending"

    run(main())


def test_an_actor_that_lags_acts_late_and_not_twice() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            w.workloads.controllers["ReplicaSets"].lag = 5.0
            await calls.create(DEPLOYMENTS, workload(replicas=3), "default")
            await after(4)
            assert await calls.list("pods", "default") == []
            await after(26)
            assert len(await calls.list("pods", "default")) == 3

    run(main())


def test_an_actor_that_crashed_comes_back_and_does_what_is_missing() -> None:
    async def main() -> None:
        async with world() as w:
            calls, actor = w.sandbox.client(), w.workloads.controllers["Deployments"]
            actor.pause()
            await calls.create(DEPLOYMENTS, workload(), "default")
            await after(100)
            assert await calls.list("replicasets.apps", "default") == []
            actor.restart()
            await after(5)
            found = await calls.get(DEPLOYMENTS, "web", "default")
            assert found["status"]["availableReplicas"] == 1

    run(main())
