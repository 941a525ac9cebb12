"""An Argo CD that somebody else runs: imported, checked, deployed; and nothing of theirs is changed.

It has an ApplicationSet, an Application with several sources, one in another namespace, and a restricted project.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.platforms import HERE, application, application_set, deployment, is_our_write, source
from tests.processes import Ended, windlass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.testbed.bed import Cluster

TEAM = "team"
PLACES = {"set-one": "argocd", "set-two": "argocd", "mixed": "argocd", "away": TEAM, "narrow": "argocd"}


class Brownfield:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self._folder = folder
        self.url = cluster.git.url("brown")

    def set_up(self) -> None:
        """As an administrator would have, long before us."""
        for namespace in (TEAM, "brown"):
            self.cluster.namespace(namespace)
        names = ("one", "two", "mixed", "away", "narrow")
        files = {f"{name}/all.json": json.dumps(deployment(name)) for name in names}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra"}, "data": {"of": "mixed"}}
        self.cluster.git.publish("brown", {**files, "extra/config.json": json.dumps(config)})
        self._allow_namespaces()
        for item in (self._project(), self._set(), *self._applications()):
            self.cluster.apply(json.dumps(item))
        for name in ("set-one", "set-two"):
            self.cluster.wait(f"application/{name}", "create", "-n", "argocd")

    def _allow_namespaces(self) -> None:
        change = {"data": {"application.namespaces": TEAM}}
        kubectl = self.cluster.kubectl
        kubectl("patch", "configmap", "argocd-cmd-params-cm", "-n", "argocd", "--type=merge", "-p", json.dumps(change))
        for workload in ("statefulset/argocd-application-controller", "deployment/argocd-server"):
            kubectl("rollout", "restart", workload, "-n", "argocd")
        for workload in ("statefulset/argocd-application-controller", "deployment/argocd-server"):
            kubectl("rollout", "status", workload, "-n", "argocd", timeout=180)

    def _project(self) -> dict[str, Any]:
        spec = {
            "sourceRepos": [self.url],
            "destinations": [{"server": HERE, "namespace": "brown"}],
            "sourceNamespaces": [TEAM],
            "namespaceResourceWhitelist": [{"group": "apps", "kind": "Deployment"}],
        }
        head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
        return {**head, "metadata": {"name": "narrow", "namespace": "argocd"}, "spec": spec}

    def _set(self) -> dict[str, Any]:
        template = self._application("set-{{name}}", "{{name}}", {"automated": {"selfHeal": True}})
        return application_set("set", ("one", "two"), template)

    def _applications(self) -> Iterator[dict[str, Any]]:
        mixed = self._application("mixed", "mixed")
        mixed["spec"]["sources"] = [mixed["spec"].pop("source"), source(self.url, "extra")]
        yield mixed
        for name in ("away", "narrow"):
            made = self._application(name, name)
            made["spec"]["project"] = "narrow"
            made["metadata"]["namespace"] = PLACES[name]
            yield made

    def _application(self, name: str, path: str, policy: dict[str, Any] | None = None) -> dict[str, Any]:
        made = application(name, source(self.url, path), "brown", {})
        made["spec"]["syncPolicy"] = policy or {}  # a restricted project creates no namespaces
        return made

    def theirs(self) -> dict[str, Any]:
        """All that must stay as it is, byte for byte."""
        found = {"cm": self.cluster.get("configmap", "argocd-cm", "-n", "argocd").get("data")}
        for kind in ("appprojects", "applications", "applicationsets"):
            for item in self.cluster.get(kind, "--all-namespaces")["items"]:
                found[f"{kind} {item['metadata']['namespace']}/{item['metadata']['name']}"] = item["spec"]
        return found

    def windlass(self, *arguments: str) -> Ended:
        environ = {"KUBECONFIG_PATH": str(self.cluster.kubeconfig), "ENVIRONMENT": "production"}
        return windlass(*arguments, environ=environ, timeout=200)

    @property
    def files(self) -> tuple[str, ...]:
        environment = {"name": "production", "domain": "a.test", "gitRepository": self.url, "gitRevision": "main"}
        (self._folder / "environment.yaml").write_text(json.dumps(environment))
        return ("--environment-file", str(self._folder / "environment.yaml"), "--dag", self.dag)

    @property
    def dag(self) -> str:
        return str(self._folder / "dag.yaml")


@pytest.fixture
def brown(argocd_cluster: Cluster, tmp_path: Path) -> Brownfield:
    made = Brownfield(argocd_cluster, tmp_path)
    made.set_up()
    return made


@pytest.mark.timeout(600)
def test_what_somebody_else_runs_is_imported_checked_and_deployed_and_stays_theirs(brown: Brownfield) -> None:
    before = brown.theirs()
    imported = brown.windlass("import", "--out", brown.dag)
    assert imported.code == 0, imported.output
    drawn = brown.windlass("graph", "--dag", brown.dag)
    assert all(name in drawn.stdout for name in PLACES), drawn.output

    checked = brown.windlass("validate", "--dag", brown.dag)
    assert checked.code in {1, 2}, checked.output  # three of them nobody has synced yet

    deployed = brown.windlass("deploy", *brown.files, "--format", "json")
    assert deployed.code == 0, deployed.output
    assert brown.theirs() == before
    assert "platform-root" not in brown.cluster.kubectl("get", "applications", "-A", "-o", "name")

    seen = len(brown.cluster.audit())
    again = brown.windlass("deploy", *brown.files, "--format", "json")
    calls = json.loads(again.stdout)["metrics"]["calls"]
    assert (again.code, calls["writes"]) == (0, 0), again.output
    assert calls["refreshes"] <= len(brown.cluster.get("applications", "--all-namespaces")["items"])
    writes = [record for record in brown.cluster.audit()[seen:] if is_our_write(record)]
    assert len(writes) == calls["refreshes"]
    assert {record.resource for record in writes} <= {"applications"}

    healthy = brown.windlass("validate", "--dag", brown.dag)
    assert healthy.code == 0, healthy.output
    assert brown.theirs() == before

    removed = brown.windlass("teardown", *brown.files, "--scope", "app:narrow", "--confirm", "production")
    assert removed.code == 0, removed.output
    assert brown.theirs() == {name: spec for name, spec in before.items() if name != "applications argocd/narrow"}
    assert "deployment.apps/narrow" not in brown.cluster.kubectl("get", "deployments", "-n", "brown", "-o", "name")
    refused = brown.windlass("teardown", *brown.files, "--scope", "app:set-one", "--confirm", "production")
    assert refused.code == 1, refused.output  # its ApplicationSet would make it again, and makes another one too
    assert "applications argocd/set-one" in brown.theirs()
