"""`windlass teardown` on real Argo CD, where it is hard: parents that make again what is deleted, kinds, and data.

A self-healing root with a chart that brings a kind and an object of it, an ApplicationSet, and a StatefulSet.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.platforms import application, application_set, deployment, source
from tests.processes import Ended, windlass

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster

NAMESPACE = "hard"
NODES = {"kinds": (), "store": ("kinds",), "set-one": ("store",), "set-two": ("store",)}


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.hard.test"},
        "spec": {
            "group": "hard.test",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def store() -> list[dict[str, Any]]:
    """Writes a word of its own where there is none, and says what it has."""
    script = "[ -e /data/kept ] || cat /proc/sys/kernel/random/uuid > /data/kept; cat /data/kept; sleep 100000"
    container = {
        "name": "main",
        "image": "busybox:1",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {"app": "store"}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }
    spec = {
        "serviceName": "store",
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
        },
        "volumeClaimTemplates": [claim],
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "store"}}
    return [
        {**service, "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]}},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "store"}, "spec": spec},
    ]


class Hard:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self._folder = folder
        self._url = cluster.git.url("hard")

    def set_up(self) -> None:
        gadget = {"apiVersion": "hard.test/v1", "kind": "Gadget", "metadata": {"name": "one"}}
        files = {
            "root/kinds.json": json.dumps(self._application("kinds", {})),
            "root/store.json": json.dumps(self._application("store", {})),
            "root/set.json": json.dumps(self._set()),
            "kinds/definition.json": json.dumps(definition()),
            "kinds/gadget.json": json.dumps(gadget),
            **{f"store/{number}.json": json.dumps(item) for number, item in enumerate(store())},
            **{f"{name}/all.json": json.dumps(deployment(name)) for name in ("one", "two")},
        }
        self.cluster.git.publish("hard", files)
        self.cluster.apply(json.dumps(self._volume()))
        healing = {"automated": {"selfHeal": True, "prune": True}}
        root = self._application("hard-root", healing, path="root", namespace="argocd")
        self.cluster.apply(json.dumps(root))
        for name in NODES:
            self.cluster.wait(f"application/{name}", "create", "-n", "argocd")
        (self._folder / "dag.yaml").write_text(json.dumps(self._dag()))
        environment = {"name": "development", "domain": "a.test", "gitRepository": self._url, "gitRevision": "main"}
        (self._folder / "environment.yaml").write_text(json.dumps(environment))

    def _volume(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "hard-data"},
            "spec": {
                "capacity": {"storage": "1Mi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Delete",
                "storageClassName": "by-hand",
                "hostPath": {"path": "/var/lib/hard-data", "type": "DirectoryOrCreate"},
            },
        }

    def _application(
        self, name: str, policy: dict[str, Any], *, path: str = "", namespace: str = NAMESPACE
    ) -> dict[str, Any]:
        return application(name, source(self._url, path or name), namespace, policy)

    def _set(self) -> dict[str, Any]:
        return application_set("set", ("one", "two"), self._application("set-{{name}}", {}, path="{{name}}"))

    def _dag(self) -> dict[str, Any]:
        rows = [{"name": name, "dependsOn": list(needed)} for name, needed in NODES.items()]
        spec = {"stacks": [{"name": "all", "applications": rows}]}
        return {"apiVersion": "windlass.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "hard"}, "spec": spec}

    def windlass(self, *arguments: str) -> Ended:
        environ = {"KUBECONFIG_PATH": str(self.cluster.kubeconfig), "ENVIRONMENT": "development"}
        files = ("--dag", str(self._folder / "dag.yaml"), "--environment-file", str(self._folder / "environment.yaml"))
        return windlass(*arguments, *files, environ=environ, timeout=300)

    def names(self, kind: str, *arguments: str) -> set[str]:
        return {item["metadata"]["name"] for item in self.cluster.get(kind, *arguments)["items"]}

    def said(self) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if text := self.cluster.kubectl("logs", "store-0", "-n", NAMESPACE):
                    return text.strip()
            except RuntimeError:
                pass
            time.sleep(0.5)
        pytest.fail("store-0 said nothing")


@pytest.fixture
def hard(argocd_cluster: Cluster, tmp_path: Path) -> Hard:
    made = Hard(argocd_cluster, tmp_path)
    made.set_up()
    return made


@pytest.mark.timeout(900)
def test_parents_kinds_and_data(hard: Hard) -> None:
    deployed = hard.windlass("deploy")
    assert deployed.code == 0, deployed.output
    word = hard.said()

    refused = hard.windlass("teardown")
    assert refused.code == 3, refused.output
    assert hard.names("applications", "-n", "argocd") >= NODES.keys()

    removed = hard.windlass("teardown", "--confirm", "development", "--format", "json")
    assert removed.code == 0, removed.output
    assert not hard.names("applications", "-n", "argocd") & {"hard-root", *NODES}
    assert "set" not in hard.names("applicationsets", "-n", "argocd")
    assert "gadgets.hard.test" not in hard.names("customresourcedefinitions")
    assert not hard.names("deployments", "-n", NAMESPACE)
    assert not hard.names("statefulsets", "-n", NAMESPACE)
    volume = hard.cluster.get("persistentvolume", "hard-data")
    assert (volume["spec"]["persistentVolumeReclaimPolicy"], volume["status"]["phase"]) == ("Retain", "Bound")
    assert any("hard-data" in line for line in json.loads(removed.stdout)["removal"]["retained"])
    time.sleep(10)  # whoever would make them again has had the time
    assert not hard.names("applications", "-n", "argocd") & {"hard-root", *NODES}

    again = hard.windlass("teardown", "--confirm", "development", "--format", "json")
    assert (again.code, json.loads(again.stdout)["metrics"]["calls"]["writes"]) == (0, 0), again.output

    hard.set_up()
    deployed = hard.windlass("deploy")
    assert deployed.code == 0, deployed.output
    assert hard.said() == word, "the data was lost"
    deleted = hard.windlass("teardown", "--confirm", "development", "--pv-policy", "delete")
    assert deleted.code in {0, 2}, deleted.output
    assert not hard.names("persistentvolumeclaims", "-n", NAMESPACE)
    hard.cluster.kubectl("delete", "persistentvolume", "hard-data", "--ignore-not-found")
