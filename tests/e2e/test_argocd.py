"""Real Argo CD does, driven through the API server alone, what the product will ask of it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.testbed.bed import Cluster

CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {from: git}}\n"


def test_an_application_syncs_from_the_git_server_of_the_node(argocd_cluster: Cluster) -> None:
    argocd_cluster.namespace("single")
    revision = argocd_cluster.git.publish("single", {"app/config.yaml": CONFIG.replace("NAME", "synced")})
    argocd_cluster.apply(_application(argocd_cluster, "single", repository="single", path="app", namespace="single"))
    _sync(argocd_cluster, "single", {"revision": revision})
    state = _operation(argocd_cluster, "single")
    assert (state["phase"], state["syncResult"]["revision"]) == ("Succeeded", revision)
    assert argocd_cluster.get("configmap", "synced", "-n", "single")["data"] == {"from": "git"}


def test_one_child_of_an_app_of_apps_comes_by_selective_sync_and_goes_by_cascade(argocd_cluster: Cluster) -> None:
    cluster = argocd_cluster
    cluster.namespace("children")
    files = {f"{name}/config.yaml": CONFIG.replace("NAME", name) for name in ("one", "two")}
    for name in ("one", "two"):
        files[f"root/{name}.yaml"] = _application(cluster, name, repository="tree", path=name, namespace="children")
    cluster.git.publish("tree", files)
    cluster.apply(_application(cluster, "root", repository="tree", path="root", namespace="argocd"))

    chosen = {"group": "argoproj.io", "kind": "Application", "name": "one", "namespace": "argocd"}
    _sync(cluster, "root", {"revision": "main", "resources": [chosen]})
    assert _operation(cluster, "root")["phase"] == "Succeeded"
    assert _names(cluster, "applications", "argocd") >= {"root", "one"}
    assert "two" not in _names(cluster, "applications", "argocd")

    _sync(cluster, "one", {"revision": "main"})
    assert _operation(cluster, "one")["phase"] == "Succeeded"
    assert "one" in _names(cluster, "configmaps", "children")

    cluster.kubectl("delete", "application", "one", "-n", "argocd", "--timeout=60s")
    assert "one" not in _names(cluster, "applications", "argocd")
    assert "one" not in _names(cluster, "configmaps", "children")
    cluster.kubectl("delete", "application", "root", "-n", "argocd", "--timeout=60s")


def _application(cluster: Cluster, name: str, *, repository: str, path: str, namespace: str) -> str:
    finalizers = ["resources-finalizer.argocd.argoproj.io"]
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "finalizers": finalizers},
        "spec": {
            "project": "default",
            "source": {"repoURL": cluster.git.url(repository), "targetRevision": "main", "path": path},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
        },
    }
    return json.dumps(manifest)


def _sync(cluster: Cluster, name: str, sync: dict[str, Any]) -> None:
    operation = {"operation": {"initiatedBy": {"username": "test"}, "sync": sync}}
    cluster.kubectl("patch", "application", name, "-n", "argocd", "--type=merge", f"--patch={json.dumps(operation)}")


def _operation(cluster: Cluster, name: str, timeout: float = 90) -> dict[str, Any]:
    """The state of the requested operation once it has ended."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        found = cluster.get("application", name, "-n", "argocd")
        if "operation" not in found and "operationState" in found.get("status", {}):
            state: dict[str, Any] = found["status"]["operationState"]
            return state
        time.sleep(0.3)
    pytest.fail(f"the operation of {name} did not end within {timeout:.0f} s: {json.dumps(found.get('status'))}")


def _names(cluster: Cluster, kind: str, namespace: str) -> set[str]:
    return {item["metadata"]["name"] for item in cluster.get(kind, "-n", namespace)["items"]}
