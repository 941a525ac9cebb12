"""INV-6: the same again changes nothing; the cluster's journal counts the writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import ENVIRONMENT, staged
from tests.simulation.scenarios import APPLICATIONS, told
from windlass.argo.cd.root_application import NAME as ROOT

if TYPE_CHECKING:
    from pathlib import Path

THREE = "c: b; b: a"
WITH_PODS = {name: {"kind": "Deployment"} for name in "ac"}


def test_a_second_deploy_of_a_pinned_platform_makes_no_write_at_all(tmp_path: Path) -> None:
    with staged(tmp_path, told(THREE, parts=WITH_PODS)) as stage:
        stage.write(
            "environment.yaml", ENVIRONMENT.replace("gitRevision: main", f"gitRevision: {stage.witness.commits[0]}")
        )
        first = stage.deploy()
        assert first.code == 0, first.ended.output
        versions = stage.cluster.sandbox.server.store.version
        for _ in range(2):
            again = stage.deploy()
            assert (again.code, again.writes) == (0, [])
            assert set(again.results.values()) == {"unchanged"}
            calls = again.report["metrics"]["calls"]
            assert (calls["writes"], calls["refreshes"]) == (0, 0)
        assert stage.cluster.sandbox.server.store.version == versions


@pytest.mark.slow
@pytest.mark.parametrize("has_root", [True, False], ids=["root", "brownfield"])
def test_what_follows_a_branch_is_only_asked_to_look_again(tmp_path: Path, has_root: bool) -> None:
    """Once for each that follows it itself: below a root that is the root alone."""
    with staged(tmp_path, told(THREE, parts=WITH_PODS, has_root=has_root)) as stage:
        assert stage.deploy().code == 0
        specs = [stage.cluster.shown(name)["spec"] for name in "abc"]
        again = stage.deploy()
        asked = [ROOT] if has_root else ["a", "b", "c"]
        assert (again.code, again.writes) == (0, [f"patch {APPLICATIONS} {name}" for name in asked])
        assert again.report["metrics"]["calls"]["refreshes"] == len(asked)
        assert again.report["metrics"]["calls"]["writes"] == 0
        assert [stage.cluster.shown(name)["spec"] for name in "abc"] == specs


@pytest.mark.slow
def test_validate_says_the_same_every_time(tmp_path: Path) -> None:
    with staged(tmp_path, told(THREE)) as stage:
        assert stage.deploy().code == 0
        told_once = [stage.windlass("validate", "--dag", str(stage.folder / "dag.yaml")) for _ in range(2)]
        assert [each.code for each in told_once] == [0, 0]
        assert not [entry for entry in stage.entries if entry.is_write]
