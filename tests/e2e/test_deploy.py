"""`windlass deploy` on real Argo CD: twelve applications in four levels from git; the audit log is the witness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.platforms import LEVELS, Platform, deployment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster


@pytest.fixture
def twelve(argocd_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Platform:
    return Platform(argocd_cluster, tmp_path_factory.mktemp("twelve"), "twelve")


@pytest.mark.timeout(600)
def test_a_platform_is_raised_kept_moved_broken_and_resumed(twelve: Platform) -> None:
    cluster = twelve.cluster
    first = twelve.publish()
    code, report = twelve.report("deploy")
    assert (code, report["summary"]["counts"]) == (0, {"succeeded": 12})
    assert twelve.revisions() == dict.fromkeys(LEVELS, first)
    assert_in_order(twelve, first)

    seen = len(cluster.audit())
    code, report = twelve.report("deploy")
    assert (code, report["summary"]["counts"]) == (0, {"unchanged": 12})
    assert [record.name for record in twelve.writes(seen)] == ["platform-root"]  # the refresh of a moving root
    calls = report["metrics"]["calls"]
    assert (calls["writes"], calls["refreshes"]) == (0, 1)

    twelve.changes = {"a1": deployment("a1", 4), "b3": deployment("b3", needs_config="later")}
    second = twelve.publish()
    with twelve.started("deploy") as process:
        twelve.wait_for_operation("a1", second)
        third = twelve.publish()  # nothing moves before its turn, and this one has none
    assert process.returncode == 2
    assert third not in twelve.revisions().values()
    moved = {name for name, revision in twelve.revisions().items() if revision == second}
    assert moved == LEVELS.keys() - {"c2", "c3", "d1", "d2", "d3"}  # b3 waits for what is not there

    cluster.kubectl("create", "configmap", "later", "-n", "twelve")
    code, report = twelve.report("deploy")
    assert (code, report["summary"]["verdict"]) == (0, "success")
    assert twelve.revisions() == dict.fromkeys(LEVELS, third)
    assert_in_order(twelve, third)

    cluster.kubectl("delete", "configmap", "later", "-n", "twelve")  # theirs, it would keep the namespace
    removed = twelve.windlass("teardown", "--confirm", "development")
    assert removed.code == 0, removed.output
    left = cluster.kubectl("get", "applications,leases", "-n", "argocd", "-o", "name")
    assert "twelve" not in left
    assert "platform-root" not in left
    assert "lease.coordination.k8s.io/windlass" not in left
    assert "namespace/twelve" not in cluster.kubectl("get", "namespaces", "-o", "name")


def test_a_platform_at_a_commit_is_left_alone_without_a_single_write(argocd_cluster: Cluster, tmp_path: Path) -> None:
    pinned = Platform(argocd_cluster, tmp_path, "pinned", {"a1": (), "b1": ("a1",)})
    pinned.revision = pinned.publish()
    pinned.describe()
    code, report = pinned.report("deploy")
    assert (code, report["summary"]["counts"]) == (0, {"succeeded": 2})

    seen = len(argocd_cluster.audit())
    code, report = pinned.report("deploy")
    assert (code, report["summary"]["counts"]) == (0, {"unchanged": 2})
    assert pinned.writes(seen) == []  # nothing it follows can move: not even a refresh is asked for

    removed = pinned.windlass("teardown", "--confirm", "development")
    assert removed.code == 0, removed.output


def assert_in_order(platform: Platform, revision: str) -> None:
    """No operation began before those it waits for had ended; the clock of the cluster shows whole seconds.

    What a commit does not change is right already and gets no operation.
    """
    found = platform.operations().items()
    moved = {name: state for name, state in found if state["syncResult"]["revision"] == revision}
    assert moved
    for name, state in moved.items():
        for dependency in platform.needs[name]:
            assert dependency not in moved or state["startedAt"] >= moved[dependency]["finishedAt"], (name, dependency)
