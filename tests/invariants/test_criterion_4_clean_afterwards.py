"""Criterion 4: after teardown the cluster is as it was before the platform came, but for data that was to stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import Stage, staged
from tests.sandbox.controllers.objects import claim, workload
from tests.simulation.scenarios import APPLICATIONS, told
from tests.simulation.witnesses import everything

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
CLASS = {
    "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "disk.test",
}


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.slow)], ids=["root", "brownfield"])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """`db` keeps data, and `web` has pods."""
    scenario = told("web: db; beside:", parts={"web": {"kind": "Deployment"}}, has_root=request.param)
    with staged(tmp_path, scenario) as found:
        found.cluster.do(found.cluster.sandbox.client().create("storageclasses.storage.k8s.io", CLASS))
        db = workload("StatefulSet", "data", replicas=2, serviceName="data", volumeClaimTemplates=[claim()])
        files = {**found.scenario.files(0), "db/data.yaml": [db]}
        found.witness.commits[-1] = found.cluster.repository.push(files)
        found.cluster.rest(0.5)  # a new namespace gets an account and a certificate of its own
        yield found


@pytest.mark.parametrize("policy", ["retain", pytest.param("delete", marks=pytest.mark.slow)])
def test_nothing_of_the_platform_is_left(stage: Stage, policy: str) -> None:
    sandbox = stage.cluster.sandbox
    before = frozenset(each for each in everything(sandbox) if each[0] != APPLICATIONS)  # those are the platform's
    told = stage.deploy()
    assert told.code == 0, told.ended.output
    assert len({each for each in everything(sandbox) - before if each[0] in {CLAIMS, VOLUMES}}) == 4
    environ = {"TEARDOWN_CONFIRM": "development", "PV_POLICY": policy}
    ended = stage.windlass("teardown", *stage.files, environ=environ)
    assert ended.code == 0, ended.output
    stage.cluster.rest(0.5)
    left = everything(sandbox) - before
    assert {kind for kind, _, _ in left} == ({CLAIMS, VOLUMES} if policy == "retain" else set())
    assert len(left) == (4 if policy == "retain" else 0)
    again = stage.windlass("teardown", *stage.files, environ=environ)
    assert again.code == 0, again.output
    assert not [entry for entry in stage.entries if entry.is_write], "there is nothing to remove"
