"""`windlass` on real Argo CD when it cannot render what the platform should be: never exit code 0."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.platforms import Platform
from tests.testbed import addresses

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.testbed.bed import Cluster

PAIR = {"a": (), "b": ("a",)}
BROKEN = {"root/templates/broken.yaml": '{{ fail "this chart cannot be rendered" }}'}
CONTROLLER = "statefulset/argocd-application-controller"


@contextmanager
def git_server_down(cluster: Cluster) -> Iterator[None]:
    """Refuse every connection to the Git server of the node."""
    rule = ("INPUT", "-p", "tcp", "--dport", str(addresses.GIT_PORT), "-j", "REJECT", "--reject-with", "tcp-reset")
    cluster.node_exec("iptables", "-I", *rule)
    try:
        yield
    finally:
        cluster.node_exec("iptables", "-D", *rule)


@contextmanager
def controller_stopped(cluster: Cluster) -> Iterator[None]:
    cluster.kubectl("scale", CONTROLLER, "-n", "argocd", "--replicas=0")
    cluster.wait("pod/argocd-application-controller-0", "delete", "-n", "argocd")
    try:
        yield
    finally:
        cluster.kubectl("scale", CONTROLLER, "-n", "argocd", "--replicas=1")
        cluster.kubectl("rollout", "status", CONTROLLER, "-n", "argocd", timeout=180)


def words(report: dict[str, Any]) -> str:
    """The text in which a root cause must be named."""
    return str([report["failures"], report.get("notices")])


@pytest.mark.timeout(400)
def test_a_root_commit_that_cannot_be_rendered_is_a_failure(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "broken", PAIR)
    first = platform.publish()
    assert platform.report("deploy")[0] == 0
    platform.files = BROKEN
    platform.publish()
    code, report = platform.report("deploy")
    assert code in {1, 2}, report["summary"]
    assert "platform-root" in words(report)
    assert "cannot be rendered" in words(report)
    assert platform.revisions() == dict.fromkeys(PAIR, first)
    code, report = platform.report("validate")
    assert code in {1, 2}, report["summary"]

    platform.files = {}
    fixed = platform.publish()
    code, report = platform.report("deploy")
    assert code == 0, report["failures"]
    assert platform.report("validate")[0] == 0
    assert set(platform.revisions().values()) <= {first, fixed}
    assert platform.teardown().code == 0


@pytest.mark.timeout(400)
def test_a_git_server_that_is_down_is_a_failure(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "gitdown", PAIR)
    platform.publish()
    assert platform.report("deploy")[0] == 0
    platform.changes = {"a": _config("a")}
    second = platform.publish()
    with git_server_down(argocd_cluster):
        code, report = platform.report("deploy")
    assert code in {1, 2}, report["summary"]
    assert "platform-root" in words(report)

    code, report = platform.report("deploy")
    assert code == 0, report["failures"]
    assert platform.revisions()["a"] == second
    assert platform.teardown().code == 0


def _config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"new": "yes"}}


@pytest.mark.timeout(400)
def test_a_controller_that_does_not_answer_is_a_failure(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "silent", PAIR)
    platform.publish()
    assert platform.report("deploy")[0] == 0
    platform.changes = {"a": _config("a")}
    second = platform.publish()
    with controller_stopped(argocd_cluster):
        code, report = platform.report("deploy")
        assert code in {1, 2, 4}, report["summary"]
        assert "platform-root" in words(report)
    code, report = platform.report("deploy")
    assert code == 0, report["failures"]
    assert platform.revisions()["a"] == second
    assert platform.teardown().code == 0
