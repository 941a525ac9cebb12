"""`windlass deploy` on real Argo CD while another client acts: rollback, selective sync, health that falls."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.platforms import Platform, deployment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster

CHAIN = {"a": (), "b": ("a",), "c": ("a", "b")}


def failures(report: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["reason"] for row in report["failures"]}


@pytest.mark.timeout(300)
def test_a_rollback_by_another_client_during_the_run_is_not_a_success(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "rollback", CHAIN)
    first = platform.publish()
    assert platform.report("deploy")[0] == 0
    platform.changes = {"a": deployment("a", 1), "b": deployment("b", 12)}
    second = platform.publish()
    with platform.started("deploy") as process:
        platform.wait_for_operation("b", second, "Succeeded")
        platform.request_sync("a", first)  # a was healthy at the second commit; its gate is open
    assert process.returncode in {1, 2}
    assert platform.operations()["a"]["operation"]["initiatedBy"]["username"] == "another-client"

    code, report = platform.report("deploy")
    assert code == 0, report["failures"]
    assert platform.revisions() == dict.fromkeys(CHAIN, second)
    assert platform.operations()["a"]["syncResult"]["revision"] == second
    assert platform.teardown().code == 0


@pytest.mark.timeout(300)
def test_a_selective_sync_by_another_client_opens_no_gate(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "selective", {"a": (), "b": ("a",)})
    platform.publish()
    assert platform.report("deploy")[0] == 0
    platform.changes = {"a": deployment("a", 8)}
    second = platform.publish()
    with platform.started("deploy") as process:
        platform.wait_for_operation("a", second, "Succeeded")
        resource = {"group": "apps", "kind": "Deployment", "name": "a", "namespace": "selective"}
        platform.request_sync("a", second, resources=[resource])
    assert process.returncode == 0
    log = [json.loads(line) for line in (tmp_path / "output").read_text().splitlines() if line.startswith("{")]
    begun = [line for line in log if (line["component"], line["message"]) == ("a", "sync begins")]
    assert len(begun) == 2, log  # it was overtaken, and judged anew by a comparison of everything
    assert platform.teardown().code == 0


@pytest.mark.timeout(300)
def test_no_dependent_starts_after_the_health_of_its_dependency_fell(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "falling", CHAIN)
    argocd_cluster.namespace("falling")
    argocd_cluster.kubectl("create", "configmap", "needed", "-n", "falling")
    platform.changes = {"a": deployment("a", needs_config="needed"), "b": deployment("b", 12)}
    commit = platform.publish()
    with platform.started("deploy") as process:
        platform.wait_for_operation("b", commit, "Succeeded")
        argocd_cluster.kubectl("delete", "configmap", "needed", "-n", "falling")
        argocd_cluster.kubectl("delete", "pod", "-l", "app=a", "-n", "falling")
    assert process.returncode == 2
    assert "c" not in platform.shown()  # it was not even defined

    code, report = platform.report("deploy")
    assert code in {1, 2}
    assert "a" in failures(report), report["failures"]
    assert "c" not in platform.shown()
    argocd_cluster.kubectl("create", "configmap", "needed", "-n", "falling")
    time.sleep(2)
    code, report = platform.report("deploy")
    assert code == 0, report["failures"]
    assert platform.revisions() == dict.fromkeys(CHAIN, commit)
    argocd_cluster.kubectl("delete", "configmap", "needed", "-n", "falling")
    assert platform.teardown().code == 0
