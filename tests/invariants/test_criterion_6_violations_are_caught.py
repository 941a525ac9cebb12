"""Criterion 6: to deploy something before what it depends on fails with a clear error, and nothing is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import platform_file, staged
from tests.simulation.scenarios import told

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_a_scope_whose_dependencies_are_not_there_is_refused(tmp_path: Path) -> None:
    with staged(tmp_path, told("b: a")) as stage:
        found = stage.deploy("--scope", "app:b")
        assert (found.code, found.writes) == (1, []), found.ended.output
        assert [(each["name"], each["neededBy"], each["why"]) for each in found.report["unmet"]] == [
            ("a", ["b"], "it does not exist")
        ]
        assert stage.deploy("--scope", "app:a").code == 0
        assert stage.deploy("--scope", "app:b").code == 0
        assert not stage.unhealthy()


def test_a_dependency_that_is_sick_is_as_good_as_none(tmp_path: Path) -> None:
    with staged(tmp_path, told("b: a")) as stage:
        assert stage.deploy("--scope", "app:a").code == 0
        stage.cluster.argocd.health_overrides["a"] = "Degraded"
        stage.cluster.rest(1.2)  # Argo CD tells seconds: this comparison is later than the sync
        stage.cluster.patch("a", {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
        stage.cluster.rest(0.5)
        found = stage.deploy("--scope", "app:b")
        assert (found.code, [each["why"] for each in found.report["unmet"]]) == (1, ["it is Degraded"])
        assert not [write for write in found.writes if "leases" in write]
        assert not stage.operations_of(found)


def test_a_circle_is_shown_as_a_path_before_anything_is_read(tmp_path: Path) -> None:
    with staged(tmp_path, told("b: a")) as stage:
        stage.write("dag.yaml", platform_file(stage.scenario).replace("dependsOn: []", "dependsOn: [b]"))
        ended = stage.windlass("deploy", *stage.files)
        assert (ended.code, stage.entries) == (3, [])
        assert "a -> b -> a" in ended.stderr
