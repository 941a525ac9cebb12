"""kubectl on the sandbox: the everyday commands, one story."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.processes import serving
from tests.sandbox.controllers.objects import application
from tests.sandbox.served_sandbox import running_sandbox
from tests.testbed import gobuild
from tests.testbed.components import KUBERNETES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUILT = gobuild.binary(KUBERNETES, "kubectl")
IS_REQUIRED = "WINDLASS_KUBECTL_REQUIRED" in os.environ  # noqa: TID251 - set by make e2e, which builds kubectl
KUBECTL = str(BUILT) if BUILT.exists() or IS_REQUIRED else shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl: neither built for the test bed nor on PATH")

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "nginx:1"}]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec: {containers: [{name: main, image: "nginx:1"}]}
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What the widget shall be.
            properties: {size: {type: integer, description: How large it is.}}
"""
OBSERVED = {
    "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
    "conditions": [{"type": "Available", "status": "True"}],
}  # fmt: skip


class Kubectl:
    def __init__(self, home: Path, kubeconfig: str) -> None:
        (home / "kubeconfig").write_text(kubeconfig)
        self._environ = {"KUBECONFIG": str(home / "kubeconfig"), "HOME": str(home)}

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(KUBECTL), *arguments]
        return subprocess.run(
            command, input=given, env=self._environ, capture_output=True, text=True, timeout=30, check=False
        )

    def __call__(self, *arguments: str, given: str = "") -> str:
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    with running_sandbox() as kubeconfig:
        yield Kubectl(tmp_path, kubeconfig)


def test_create_apply_scale_roll_out_and_delete(kubectl: Kubectl) -> None:
    assert "created" in kubectl("apply", "-f", "-", given=DEPLOYMENT)
    assert "unchanged" in kubectl("apply", "-f", "-", given=DEPLOYMENT)
    changed = DEPLOYMENT.replace("nginx:1", "nginx:2")
    assert "configured" in kubectl("apply", "-f", "-", given=changed)
    patch = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}'
    kubectl("patch", "deployment", "web", "-p", patch)
    names = kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[*].name}")
    assert sorted(names.split()) == ["main", "side"]
    assert "scaled" in kubectl("scale", "deployment", "web", "--replicas=3")
    kubectl("wait", "--for=jsonpath={.spec.replicas}=3", "deployment/web", "--timeout=5s")
    generation = int(kubectl("get", "deployment", "web", "-o", "jsonpath={.metadata.generation}"))
    status = json.dumps({"status": {**OBSERVED, "observedGeneration": generation}})
    kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=5s")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=5s")
    kubectl("rollout", "restart", "deployment/web")
    assert "deleted" in kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=10s")


def test_what_kubectl_create_sends_as_protobuf_is_read(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2", "--port=80")
    kubectl("create", "job", "once", "--image=busybox", "--", "echo", "hi")
    kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=* * * * *")
    kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=bob", "--serviceaccount=default:robot")
    command = "jsonpath={.spec.template.spec.containers[0].command}"
    assert kubectl("get", "job", "once", "-o", command) == '["echo","hi"]'
    assert kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].targetPort}") == "8080"
    assert kubectl("get", "role", "reader", "-o", "jsonpath={.rules[0].verbs}") == '["get","list"]'


def test_another_kind_in_protobuf_is_refused_with_a_way_out(kubectl: Kubectl) -> None:
    command = ("create", "poddisruptionbudget", "few", "--selector=app=x", "--min-available=1")
    refused = kubectl.run(*command)
    assert refused.returncode != 0
    assert "--dry-run=client -o yaml | kubectl create -f -" in " ".join(refused.stderr.split())
    assert "created" in kubectl("create", "-f", "-", given=kubectl(*command, "--dry-run=client", "-o", "yaml"))


def columns(text: str) -> list[list[str]]:
    return [re.split("  +", line.strip()) for line in text.splitlines()]


def test_get_shows_the_columns_of_each_kind(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("create", "-f", "-", given=POD)
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=20s")
    kubectl("wait", "--for=condition=Ready", "pod/alone", "--timeout=20s")
    head, row = columns(kubectl("get", "deployment", "web"))
    assert head == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:-1] == ["web", "2/2", "2", "2"]
    head, row = columns(kubectl("get", "pod", "alone", "-o", "wide"))
    assert head[:5] + head[-2:] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "NOMINATED NODE", "READINESS GATES"]
    assert row[:4] == ["alone", "1/1", "Running", "0"]
    assert columns(kubectl("get", "secret", "s", "--no-headers"))[0][:3] == ["s", "Opaque", "1"]
    assert columns(kubectl("get", "pods", "--all-namespaces"))[0][:3] == ["NAMESPACE", "NAME", "READY"]


def test_applications_show_sync_and_health_and_a_fast_cluster_shows_ages(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with serving(path, "--speed", "50"):
        kubectl = Kubectl(tmp_path, path.read_text())
        kubectl("apply", "-f", "-", given=json.dumps(application("web")))
        kubectl("wait", "--for=jsonpath={.status.health.status}", "application/web", "-n", "argocd", "--timeout=20s")
        head, row = columns(kubectl("get", "applications", "-n", "argocd"))
        ages = [line[-1] for line in columns(kubectl("get", "namespaces", "--no-headers"))]
    assert head == ["NAME", "SYNC STATUS", "HEALTH STATUS"]
    assert row[0] == "web"
    assert len(row) == 3
    assert ages
    assert all(re.fullmatch("([0-9]+[smhd])+", age) for age in ages), ages


def test_server_side_apply_tells_of_a_conflict(kubectl: Kubectl) -> None:
    item = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", given=item)
    other = item.replace("'1'", "'2'")
    refused = kubectl.run("apply", "--server-side", "--field-manager=two", "-f", "-", given=other)
    assert refused.returncode != 0
    assert 'conflict with "one": .data.x' in refused.stderr
    kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", given=other)
    assert kubectl("get", "configmap", "a", "-o", "jsonpath={.data.x}") == "2"


def test_custom_kinds_are_explained_and_used(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=DEFINITION)
    # kubectl cannot wait for a condition of what has none at all yet.
    kubectl("wait", "--for=jsonpath={.status.acceptedNames.kind}=Widget", "crd/widgets.example.com", "--timeout=5s")
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=5s")
    assert "What the widget shall be." in kubectl("explain", "widgets.spec")
    assert "widgets" in kubectl("api-resources", "--api-group=example.com")
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: %s}\n"
    kubectl("apply", "-f", "-", given=widget % 1)
    assert "configured" in kubectl("apply", "-f", "-", given=widget % 2)
    odd = kubectl.run("apply", "-f", "-", given=widget.replace("size", "sise") % 1)
    assert 'unknown field "spec.sise"' in odd.stderr
    kubectl("delete", "crd", "widgets.example.com", "--timeout=10s")


def test_logs_rights_and_the_end_of_a_namespace(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "some")
    kubectl("create", "-n", "some", "-f", "-", given=POD)
    assert kubectl("logs", "-n", "some", "alone") == ""
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    kubectl("label", "-n", "some", "pod", "alone", "x=y")
    assert kubectl("get", "-n", "some", "pods", "-l", "x=y", "-o", "name").strip() == "pod/alone"
    kubectl("delete", "namespace", "some", "--timeout=10s")
    assert "not found" in kubectl.run("get", "namespace", "some").stderr
