"""INV-8: no hook orders applications: ours have none, and those of others are found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.builders import typed_object
from tests.invariants.clusters import staged
from tests.simulation.scenarios import ROOT, told
from windlass.argo.cd.applications import Application
from windlass.argo.cd.root_application import root_manifest
from windlass.argo.cd.sync_requests import SyncRequest, sync_operation

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_that_we_write_has_a_hook() -> None:
    root = root_manifest(ROOT, "argocd")
    operation = sync_operation(typed_object(root, Application), SyncRequest(("1" * 40,), "run", ()))
    assert "hook" not in json.dumps([root, operation]).lower()
    assert operation["sync"]["revision"] == "1" * 40


@pytest.mark.parametrize(
    ("kind", "annotations", "found"),
    [
        ("PreSync", {}, True),
        pytest.param("PostSync", {}, True, marks=pytest.mark.slow),
        pytest.param("PreSync", {"windlass.dev/hook": "internal"}, False, marks=pytest.mark.slow),
        pytest.param("Sync", {}, False, marks=pytest.mark.slow),
    ],
)
def test_hooks_that_others_use_for_order_are_findings(
    tmp_path: Path, kind: str, annotations: dict[str, str], found: bool
) -> None:
    with staged(tmp_path, told("a:")) as stage:
        assert stage.deploy().code == 0
        row = {"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "wait-for-b", "hookType": kind}
        state = {"status": {"operationState": {"syncResult": {"resources": [row]}}}}
        stage.cluster.patch("a", {**state, "metadata": {"annotations": annotations}})
        arguments = ("validate", "--strict", "--format", "json", "--dag", str(stage.folder / "dag.yaml"))
        ended = stage.windlass(*arguments)
        findings = json.loads(ended.stdout)["compliance"]
        assert ended.code == (2 if found else 0)
        assert [(each["rule"], each["application"]) for each in findings] == ([("INV-8", "a")] if found else [])
        assert not found or "dependsOn" in findings[0]["remedy"], "the removal to make"
