"""A cluster that knows which platform it carries, and plans that are executed exactly as approved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.e2e.platforms import Platform, deployment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testbed.bed import Cluster


@pytest.mark.timeout(300)
def test_another_environment_or_platform_is_refused(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "identity", {"a": ()})
    platform.publish()
    assert platform.report("deploy")[0] == 0
    seen = len(argocd_cluster.audit())

    folder = tmp_path / "staging"
    folder.mkdir()
    staging = replace(platform, folder=folder, environment="staging")
    staging.describe()
    for refused in (staging.teardown(), staging.windlass("deploy")):
        assert refused.code in {1, 3}, refused.output
        assert "staging" in refused.output
        assert "development" in refused.output

    without_file = platform.windlass_without_platform("teardown", "--confirm", "development")
    assert without_file.code in {1, 3}, without_file.output
    assert "identity" in without_file.output
    assert platform.writes(seen) == []
    assert platform.teardown().code == 0


@pytest.mark.timeout(300)
def test_an_approved_plan_deploys_no_commit_that_was_pushed_later(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "approved", {"a": (), "b": ("a",)})
    platform.publish()
    assert platform.report("deploy")[0] == 0
    platform.changes = {"a": deployment("a", 6), "b": deployment("b", 1)}
    second = platform.publish()
    plan_file = tmp_path / "plan.json"
    planned = platform.windlass("plan", "--refresh", "--out", str(plan_file))
    assert planned.code == 0, planned.output
    with platform.started("deploy", "--plan", str(plan_file)) as process:
        platform.wait_for_operation("a", second)
        platform.changes = {"a": deployment("a", 2), "b": deployment("b", 2)}
        third = platform.publish()
    assert third not in platform.revisions().values()
    assert process.returncode == 0
    assert platform.revisions() == {"a": second, "b": second}

    stale = platform.windlass("deploy", "--plan", str(plan_file))
    assert stale.code in {1, 3}, stale.output
    assert third not in platform.revisions().values()
    assert platform.report("deploy")[0] == 0
    assert platform.revisions() == {"a": third, "b": third}
    assert platform.teardown().code == 0
