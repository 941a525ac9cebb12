"""INV-7: health is what is, not what was applied. What an object says of itself is read; a word alone opens no gate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import staged
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import Act, told
from windlass.argo.health.builtin import assess_object
from windlass.core.platform.model.applications import ResourceRef
from windlass.core.platform.model.health import Health
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.play import Ended


def test_synced_is_not_healthy(tmp_path: Path) -> None:
    """Applied at once, and its pods never get ready: the process ends out of time, what depends on it has not begun."""
    with staged(tmp_path, told("b: a", parts={"a": {"kind": "Deployment", "trouble": "unready"}})) as stage:
        found = stage.deploy("--timeout", "4s")
        assert (found.code, found.report["summary"]["verdict"]) == (4, "timeout"), found.ended.output
        assert found.results == {"a": "interrupted", "b": "not started"}
        assert "b" not in stage.operations_of(found)


def test_a_lie_about_health_is_seen_through(tmp_path: Path) -> None:
    """Argo CD shows the new revision as healthy, in the second of the sync, with the health of before."""
    scenario = told(
        "b: a",
        parts={"a": {"kind": "Deployment", "ready_after": 1.5}},
        lies={"a": StaleStatus(Staleness.SAME_SECOND, 4)},
    )
    with staged(tmp_path, scenario) as stage:
        found = stage.deploy()
        assert found.code == 0, found.ended.output
        assert not stage.unhealthy()


@pytest.mark.parametrize("trouble", ["", "unready"])
def test_an_object_that_is_a_gate_is_read_itself(trouble: str) -> None:
    """Argo CD claims that all is well; the gate on the workload does not believe it."""
    scenario = told("b: gate; gate+: a", parts={"a": {"kind": "Deployment", "ready_after": 5.0, "trouble": trouble}})
    nodes = dict(scenario.platform.applications)
    nodes["gate"] = replace(nodes["gate"], target=ResourceRef("apps/v1", "Deployment", "a", "default"))
    commits = ({name: part for name, part in scenario.commits[0].items() if name != "gate"},)
    scenario = replace(scenario, platform=replace(scenario.platform, applications=nodes), commits=commits)

    async def main(play: Play) -> Ended:
        play.argocd.health_overrides["a"] = "Healthy"
        return await play.run(Act())

    ended = acted(scenario, main)
    assert ended.report is not None
    results = {each.name: str(each.result) for each in ended.report.components}
    good = {"a": "succeeded", "gate": "succeeded", "b": "succeeded"}
    assert results == (good if not trouble else {"a": "succeeded", "gate": "failed", "b": "skipped"})


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("CephCluster", {"conditions": [{"type": "Ready", "status": "False"}]}, Health.PROGRESSING),
        ("CephCluster", {"conditions": [{"type": "Ready", "status": "True"}]}, Health.HEALTHY),
        ("Vault", {}, Health.UNKNOWN),
        ("postgresql", {"conditions": [{"type": "Degraded", "status": "True"}]}, Health.DEGRADED),
        ("PersistentVolumeClaim", {"phase": "Pending"}, Health.PROGRESSING),
        ("Deployment", {"availableReplicas": 0, "updatedReplicas": 1}, Health.PROGRESSING),
    ],
)
def test_what_says_nothing_is_never_healthy(kind: str, status: dict[str, object], expected: Health) -> None:
    assert assess_object({"kind": kind, "metadata": {"name": "x"}, "status": status}).health is expected
