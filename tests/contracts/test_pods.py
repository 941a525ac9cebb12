"""Pods as a node runs them: logs, exit codes, states. Only where there is a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.servers import until
from windlass.kube.client.resources import PODS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from tests.contracts.servers import Raw
    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.objects import RawObject

pytestmark = [pytest.mark.kubelet, pytest.mark.controllers, pytest.mark.timeout(120)]

IMAGE = "busybox:1"


def running(name: str, script: str, **spec: object) -> RawObject:
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", script]}
    body = {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "serviceAccountName": "pods",
        "automountServiceAccountToken": False, "containers": [container], **spec,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


@pytest.fixture
async def path(raw: Raw, namespace: str) -> str:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pods"}}
    await raw.ok("POST", SERVICE_ACCOUNTS.in_namespace(namespace).path, account)
    return PODS.in_namespace(namespace).path


async def finished(raw: Raw, path: str) -> RawObject:
    async def ended() -> RawObject:
        found: RawObject = await raw.ok("GET", path)
        return found if found["status"]["phase"] in {"Succeeded", "Failed"} else {}

    return await until(ended, "the end of the pod")


async def test_logs_of_a_pod_that_ended(raw: Raw, kube: KubeClient, path: str, namespace: str) -> None:
    await raw.ok("POST", path, running("a", "echo one; echo two; echo three"))
    found = await finished(raw, f"{path}/a")
    assert found["status"]["phase"] == "Succeeded"
    ref = PODS.named("a", namespace)
    assert await kube.logs(ref) == "one\ntwo\nthree\n"
    assert await kube.logs(ref, tail=1) == "three\n"
    assert await kube.logs(ref, container="main") == "one\ntwo\nthree\n"
    answer = await raw("GET", f"{path}/a/log")
    assert answer.headers["Content-Type"] == "text/plain"


async def test_logs_of_a_container_that_is_not_there(raw: Raw, path: str) -> None:
    await raw.ok("POST", path, running("a", "true"))
    await finished(raw, f"{path}/a")
    answer = await raw("GET", f"{path}/a/log?container=other")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "container other is not valid for pod a"


async def test_logs_of_a_pod_that_has_not_started(raw: Raw, path: str) -> None:
    item = running("a", "true", schedulerName="contracts-nobody")
    await raw.ok("POST", path, item)
    answer = await raw("GET", f"{path}/a/log")
    assert (answer.status, answer.body) == (204, b"")


async def test_an_exit_code_and_its_reason(raw: Raw, path: str) -> None:
    await raw.ok("POST", path, running("a", "exit 3"))
    found = await finished(raw, f"{path}/a")
    assert found["status"]["phase"] == "Failed"
    [container] = found["status"]["containerStatuses"]
    terminated = container["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (3, "Error")
    assert (container["ready"], container["restartCount"]) == (False, 0)


async def test_a_message_is_taken_from_the_termination_log(raw: Raw, path: str) -> None:
    await raw.ok("POST", path, running("a", "echo because > /dev/termination-log; exit 1"))
    found = await finished(raw, f"{path}/a")
    assert found["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == "because\n"
