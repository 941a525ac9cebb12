"""`windlass teardown` on real Argo CD beside what is not the platform's: nothing foreign is destroyed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.platforms import Platform
from tests.e2e.test_teardown import definition

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster

CARRIED = "carried"
"""A namespace that an application of the platform carries as a manifest."""


def gadget(name: str, namespace: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "hard.test/v1", "kind": "Gadget", "metadata": meta}


def volume(name: str) -> dict[str, Any]:
    spec = {
        "capacity": {"storage": "1Mi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": "by-hand",
        "hostPath": {"path": f"/var/lib/{name}", "type": "DirectoryOrCreate"},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def claim(name: str, namespace: str, owner: dict[str, Any]) -> dict[str, Any]:
    """As an operator creates it for one of its objects."""
    meta = owner["metadata"]
    owned_by = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owned_by]},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "volumeName": name,
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }


def kubeconfig_without_secrets_and_gadgets(cluster: Cluster, folder: Path) -> Path:
    """Of a user who may do everything with what the platform has, and may not list Secrets or Gadgets."""
    core = ["namespaces", "configmaps", "pods", "services", "serviceaccounts", "events", "persistentvolumes"]
    rules = [
        {"apiGroups": [""], "resources": [*core, "persistentvolumeclaims"], "verbs": ["*"]},
        {"apiGroups": ["argoproj.io", "apps", "coordination.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]
    meta = {"metadata": {"name": "narrow-user"}}
    account = {"kind": "ServiceAccount", "name": "narrow-user", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "narrow-user"}
    rbac = "rbac.authorization.k8s.io/v1"
    for item in (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "narrow-user", "namespace": "default"}},
        {"apiVersion": rbac, "kind": "ClusterRole", **meta, "rules": rules},
        {"apiVersion": rbac, "kind": "ClusterRoleBinding", **meta, "roleRef": role, "subjects": [account]},
    ):
        cluster.apply(json.dumps(item))
    token = cluster.kubectl("create", "token", "narrow-user", "-n", "default").strip()
    file = folder / "narrow-kubeconfig"
    shown = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    shown["users"] = [{"name": user["name"], "user": {"token": token}} for user in shown["users"]]
    file.write_text(json.dumps(shown))
    return file


@pytest.fixture
def platform(argocd_cluster: Cluster, tmp_path: Path) -> Platform:
    """`kinds` carries a CRD, a Namespace and an object of that kind; `user` depends on it."""
    made = Platform(argocd_cluster, tmp_path, "foreign", {"kinds": (), "user": ("kinds",)})
    own_namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CARRIED}}
    made.changes = {"kinds": definition()}
    made.files = {
        "kinds/namespace.json": json.dumps(own_namespace),
        "kinds/gadget.json": json.dumps(gadget("own", CARRIED)),
    }
    made.publish()
    return made


def exists(cluster: Cluster, *arguments: str) -> bool:
    return bool(cluster.kubectl("get", *arguments, "--ignore-not-found", "-o", "name").strip())


@pytest.mark.timeout(500)
def test_foreign_objects_survive_a_teardown_and_are_named(platform: Platform, tmp_path: Path) -> None:
    cluster = platform.cluster
    code, report = platform.report("deploy")
    assert code == 0, report["failures"]
    cluster.namespace("elsewhere")
    cluster.apply(json.dumps(gadget("theirs", "elsewhere")))
    cluster.kubectl("create", "secret", "generic", "theirs", "-n", CARRIED)

    narrow = kubeconfig_without_secrets_and_gadgets(cluster, tmp_path)
    for kubeconfig, code, reason in ((narrow, 1, "Unreadable"), (None, 2, "ForeignObjects")):
        platform.kubeconfig = kubeconfig
        refused = platform.teardown()
        assert refused.code == code, refused.output
        assert reason in refused.output
        assert exists(cluster, "gadget", "theirs", "-n", "elsewhere")
        assert exists(cluster, "secret", "theirs", "-n", CARRIED)
        assert exists(cluster, "crd", "gadgets.hard.test")
        assert exists(cluster, "application", platform.full("kinds"), "-n", "argocd")
    assert "theirs" in refused.output  # who may list them is told their names

    cluster.kubectl("delete", "gadget", "theirs", "-n", "elsewhere")
    allowed = platform.teardown("--delete-foreign", "kinds")
    assert allowed.code == 0, allowed.output
    assert not exists(cluster, "namespace", CARRIED)
    assert not exists(cluster, "crd", "gadgets.hard.test")
    cluster.kubectl("delete", "namespace", "elsewhere")


@pytest.mark.timeout(500)
def test_the_volume_of_a_claim_that_an_operator_owns_is_retained(platform: Platform) -> None:
    cluster = platform.cluster
    assert platform.report("deploy")[0] == 0
    owner = cluster.get("gadget", "own", "-n", CARRIED)
    cluster.apply(json.dumps(volume("operator-data")))
    cluster.apply(json.dumps(claim("operator-data", CARRIED, owner)))
    cluster.wait("pvc/operator-data", "jsonpath={.status.phase}=Bound", "-n", CARRIED)

    seen = len(cluster.audit())
    removed = platform.teardown("--format", "json")
    assert removed.code == 0, removed.output
    kept = cluster.get("persistentvolume", "operator-data")
    assert kept["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert any("operator-data" in line for line in json.loads(removed.stdout)["removal"]["retained"])
    writes = [(record.verb, record.resource) for record in platform.writes(seen)]
    first_delete = next(place for place, write in enumerate(writes) if write[0] == "delete")
    assert ("patch", "persistentvolumes") in writes[:first_delete]
    cluster.kubectl("delete", "persistentvolume", "operator-data")
