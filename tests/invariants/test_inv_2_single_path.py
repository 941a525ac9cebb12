"""INV-2: whatever reaches a new revision was brought there by a run; nothing else moves the platform."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import run_of, staged
from tests.scenarios.clusters import SYNC
from tests.simulation.scenarios import newer, told
from windlass.argo.cd.root_application import NAME as ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.invariants.clusters import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    first = told("b: a", automated=frozenset({"a"}))
    with staged(tmp_path, replace(first, commits=(first.commits[0], newer(first.commits[0])))) as found:
        yield found


def test_every_operation_carries_the_run_and_the_root_never_moves_by_itself(stage: Stage) -> None:
    done = stage.deploy()
    assert done.code == 0, done.ended.output
    root = stage.cluster.shown(ROOT)
    assert "automated" not in (root["spec"].get("syncPolicy") or {})
    for name in ("a", "b", ROOT):
        state = stage.cluster.shown(name)["status"]["operationState"]
        is_own = (
            state["operation"].get("initiatedBy", {}).get("automated") is True
        )  # at the commit that it is pinned to
        assert run_of(state["operation"]) == done.report["summary"]["runId"] or (name == "a" and is_own)
    assert {entry.kind for entry in done.entries if entry.is_write} <= {
        "applications.argoproj.io",
        "leases.coordination.k8s.io",
    }


def test_a_new_commit_alone_moves_nothing(stage: Stage) -> None:
    assert stage.deploy().code == 0
    before = {name: stage.cluster.shown(name)["spec"] for name in ("a", "b")}
    stage.push()
    stage.cluster.patch(ROOT, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
    stage.cluster.rest(1.0)
    assert {name: stage.cluster.shown(name)["spec"] for name in ("a", "b")} == before
    assert not stage.unhealthy(0), "all is still as the first commit says"


@pytest.mark.slow
def test_who_goes_past_it_is_found(stage: Stage) -> None:
    assert stage.deploy().code == 0
    arguments = ("validate", "--format", "json", "--dag", str(stage.folder / "dag.yaml"))
    assert not json.loads(stage.windlass(*arguments).stdout)["compliance"]
    new = stage.push()
    stage.cluster.patch("b", {"spec": {"source": {"targetRevision": new}}, **SYNC})
    stage.cluster.rest(1.0)
    findings = json.loads(stage.windlass(*arguments, "--strict").stdout)["compliance"]
    stage.witness.problems.clear()  # the witness has seen it, too
    assert [(each["rule"], each["application"]) for each in findings] == [
        ("INV-2", "b"),
        ("up-to-date", "argocd/platform-root"),
    ]
