"""INV-1: an application begins only when all it depends on is healthy: truly, at the revision of this run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests import builders
from tests.invariants.clusters import staged
from tests.simulation.play import played
from tests.simulation.scenarios import Act, Scenario, newer, told
from windlass.argo.cd.root_application import NAME as ROOT
from windlass.core.platform import gates
from windlass.core.platform.gate_values import GateTarget, Open, Reason, Wait
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.snapshots import SyncStatus
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus

if TYPE_CHECKING:
    from pathlib import Path

DIAMOND = "top: left right; left: base; right: base; beside:"
SLOW = {"kind": "Deployment", "ready_after": 0.4}


def moved(**changes: object) -> Scenario:
    """There already, then moved to a commit at which each pod is another one; one side takes longer than the other."""
    parts = {**dict.fromkeys(("base", "left", "top"), SLOW), "right": {**SLOW, "ready_after": 1.4}}
    first = told(DIAMOND, parts=parts, **changes)
    second = newer(newer(first.commits[0], ready_after=1.0), "right", ready_after=2.0)
    return replace(first, commits=(first.commits[0], second))


@pytest.mark.parametrize("has_root", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["root", "brownfield"])
def test_the_process_waits_for_every_dependency(tmp_path: Path, has_root: bool) -> None:
    with staged(tmp_path, moved(has_root=has_root)) as stage:
        for _ in stage.scenario.commits:
            told = stage.deploy()
            assert told.code == 0, told.ended.output
            order = [name for name in stage.operations_of(told) if name != ROOT]
            assert sorted(order) == ["base", "beside", "left", "right", "top"]
            assert order.index("base") < min(order.index("left"), order.index("right")) < order.index("top")
            assert not stage.unhealthy()
            if len(stage.witness.commits) < len(stage.scenario.commits):
                stage.push()


@pytest.mark.parametrize("has_root", [True, False], ids=["root", "brownfield"])
@pytest.mark.parametrize("how", list(Staleness))
@pytest.mark.parametrize("seconds", [2.0, 25.0])
def test_health_of_before_the_sync_opens_no_gate(how: Staleness, seconds: float, has_root: bool) -> None:
    scenario = moved(has_root=has_root, acts=(Act(),))
    lies = {name: StaleStatus(how, seconds) for name in scenario.platform.applications}
    found = played(replace(scenario, lies=lies))
    assert not found.problems
    assert found.story[0].startswith("run-1 ended: success")
    assert found.operations >= 10


def test_a_commit_pushed_in_the_middle_moves_nothing() -> None:
    """Each is at the commit that the run began with; the newer one comes with the next run."""
    found = played(moved(acts=(Act(push_at=3.0),)))
    assert not found.problems
    assert found.story[0].startswith("run-1 ended: success")


@pytest.mark.parametrize("lag", [0.5, 2.5])
def test_controllers_that_lag_behind_open_no_gate(lag: float) -> None:
    found = played(moved(lag=lag, acts=(Act(),)))
    assert not found.problems


def test_out_of_sync_right_after_a_sync_is_no_drift_yet() -> None:
    """Argo CD may have compared what was there before the sync, with the health of before; ten seconds settle that."""
    done = builders.operation(finished_at=builders.at(0), run_id="run-1")
    shown = builders.state(sync=SyncStatus.OUT_OF_SYNC, operation=done, reconciled_at=builders.at(1))
    wanted = GateTarget((builders.NEW,), (builders.source(),), NodeTiming(), "run-1")
    seen = gates.extend_history(gates.start_history(builders.state(), builders.at(-5)), shown, builders.at(1))
    early, late = gates.evaluate_gate(wanted, seen, builders.at(2)), gates.evaluate_gate(wanted, seen, builders.at(11))
    assert isinstance(early, Wait)
    assert early.reason is Reason.NOT_FRESH
    assert isinstance(late, Open)
    assert late.evidence.is_drifting
