"""The bare cluster does what a cluster does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.testbed.bed import Cluster

POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: NAME}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: docker.io/library/busybox:1, imagePullPolicy: Always, command: [sh, -c, "COMMAND"]}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: [echo, done]}]
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""


@pytest.fixture(scope="module")
def namespace(real_cluster: Cluster) -> str:
    """A namespace whose service account is there."""
    return real_cluster.namespace("node-tests")


def test_the_versions_are_stamped_in(real_cluster: Cluster) -> None:
    answer = real_cluster.kubectl("version", "--output=yaml")
    assert answer.count("gitVersion: v1.34.2") == 2
    assert real_cluster.get("node", "node1")["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.2"


def test_a_pod_runs_and_has_logs_and_exec(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(_pod("talker", "echo hello; sleep 1000"), "-n", namespace)
    real_cluster.wait("pod/talker", "condition=Ready", "-n", namespace)
    assert real_cluster.kubectl("logs", "talker", "-n", namespace) == "hello\n"
    said = real_cluster.kubectl("exec", "talker", "-n", namespace, "--", "hostname")
    assert said.strip() == "talker"


def test_a_service_resolves_by_name_and_answers(real_cluster: Cluster, namespace: str) -> None:
    serve = "mkdir /www; echo pong > /www/index.html; exec httpd -f -p 8080 -h /www"
    real_cluster.apply(_pod("web", serve), "-n", namespace)
    real_cluster.apply(SERVICE, "-n", namespace)
    real_cluster.apply(_pod("asker", "sleep 1000"), "-n", namespace)
    for name in ("web", "asker"):
        real_cluster.wait(f"pod/{name}", "condition=Ready", "-n", namespace)
    ask = "for i in 1 2 3 4 5 6 7 8 9 10; do wget -q -O - http://URL && exit; sleep 1; done; exit 1"
    for url in ("web", f"web.{namespace}.svc.cluster.local"):
        answer = real_cluster.kubectl("exec", "asker", "-n", namespace, "--", "sh", "-c", ask.replace("URL", url))
        assert answer == "pong\n"


def test_a_pod_reaches_itself_through_its_service(real_cluster: Cluster, namespace: str) -> None:
    answer = real_cluster.kubectl(
        "exec", "web", "-n", namespace, "--", "wget", "-q", "-O", "-", f"http://web.{namespace}"
    )
    assert answer == "pong\n"


def test_a_job_completes(real_cluster: Cluster, namespace: str) -> None:
    real_cluster.apply(JOB, "-n", namespace)
    real_cluster.wait("job/once", "condition=Complete", "-n", namespace)
    assert real_cluster.kubectl("logs", "job/once", "-n", namespace) == "done\n"


def test_the_audit_log_is_a_journal_of_requests(real_cluster: Cluster, namespace: str) -> None:
    name = f"journal-{time.time_ns()}"
    real_cluster.kubectl("create", "configmap", name, "-n", namespace)
    with pytest.raises(RuntimeError, match="already exists"):
        real_cluster.kubectl("create", "configmap", name, "-n", namespace)
    records = [r for r in real_cluster.audit() if (r.verb, r.resource, r.name) == ("create", "configmaps", name)]
    assert [r.code for r in records] == [201, 409]
    assert {(r.namespace, r.user, r.stage) for r in records} == {(namespace, "admin", "ResponseComplete")}
    assert all(r.user_agent.startswith("kubectl/v1.34.2") for r in records)


def test_nothing_leads_out_of_the_node(real_cluster: Cluster, namespace: str) -> None:
    links = real_cluster.node_exec("ip", "-o", "link", "show")
    names = {line.split(": ")[1].split("@")[0] for line in links.splitlines()}
    assert {name for name in names if not name.startswith("veth")} == {"lo", "node0", "nowhere"}
    assert "unreachable default" in real_cluster.node_exec("ip", "route", "show")
    # 192.0.2.1 is an address for documentation: nobody has it, inside or outside.
    with pytest.raises(RuntimeError, match="No route to host"):
        real_cluster.node_exec("ip", "route", "get", "192.0.2.1")
    outside = real_cluster.kubectl(
        *("exec", "talker", "-n", namespace, "--", "sh", "-c", "wget -q -O - http://192.0.2.1 2>&1 || true")
    )
    assert "can't connect" in outside


def _pod(name: str, command: str) -> str:
    return POD.replace("NAME", name).replace("COMMAND", command)
