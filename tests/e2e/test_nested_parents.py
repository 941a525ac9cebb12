"""Parents of other clients on real Argo CD: one that syncs itself changes another one during a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.platforms import Platform, application, deployment, source

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster

CHART = "apiVersion: v2\nname: chart\nversion: 1.0.0\n"
PINNED = "{{ .Values.targetRevision }}"
SELF_HEAL = {"automated": {"selfHeal": True}}


class NestedPlatform(Platform):
    """`outer` syncs itself and defines `middle`, whose parameter pins the applications to the commit of `outer`."""

    def publish(self) -> str:
        self.files = {
            "outer/Chart.yaml": CHART,
            "outer/templates/middle.yaml": json.dumps(self.parent("middle", "root", PINNED)),
        }
        return super().publish()

    def parent(self, name: str, path: str, revision: str, policy: dict[str, Any] | None = None) -> dict[str, Any]:
        chart = source(self.cluster.git.url(self.name), path)
        chart["helm"] = {"parameters": [{"name": "targetRevision", "value": revision}]}
        return application(self.full(name), chart, "argocd", policy or {})

    def _environment(self) -> dict[str, Any]:
        return {key: value for key, value in super()._environment().items() if key != "gitPath"}

    def pin(self) -> str:
        """The commit to which `middle` pins the applications now."""
        middle = self.cluster.get("application", self.full("middle"), "-n", "argocd")
        return str(middle["spec"]["source"]["helm"]["parameters"][0]["value"])


@pytest.mark.timeout(300)
def test_children_stay_at_one_commit_although_their_parent_is_changed_during_the_run(
    argocd_cluster: Cluster, tmp_path: Path
) -> None:
    platform = NestedPlatform(argocd_cluster, tmp_path, "nested", {"a": (), "b": ("a",)})
    platform.changes = {"a": deployment("a", 15)}
    first = platform.publish()
    outer = platform.parent("outer", "outer", "$ARGOCD_APP_REVISION", SELF_HEAL)
    argocd_cluster.apply(json.dumps(outer))
    argocd_cluster.wait(f"application/{platform.full('middle')}", "create", "-n", "argocd")
    name = f"application/{platform.full('middle')}"
    argocd_cluster.wait(name, "jsonpath={.status.sync.status}=OutOfSync", "-n", "argocd")
    with platform.started("deploy") as process:
        platform.wait_for_operation("a", first, "Succeeded")
        platform.changes = {"a": deployment("a", 1), "b": deployment("b", 1)}
        second = platform.publish()
        refresh = "argocd.argoproj.io/refresh=normal"
        argocd_cluster.kubectl("annotate", f"application/{platform.full('outer')}", "-n", "argocd", refresh)
        pinned = f"jsonpath={{.spec.source.helm.parameters[0].value}}={second}"
        argocd_cluster.wait(name, pinned, "-n", "argocd")
    assert process.returncode == 0
    assert platform.pin() == second != first
    assert platform.revisions() == {"a": first, "b": first}

    code, report = platform.report("deploy")
    assert code == 0, report["failures"]
    assert platform.revisions() == {"a": second, "b": second}
    assert platform.teardown().code == 0
