"""Rechecks of nodes whose gates had opened: what is unhealthy then, for how long it may be, what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import OLD, at, operation, state
from windlass.core.platform import rechecks
from windlass.core.platform.gate_values import Closed, Failed, Reason, Wait
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import Condition, NodeState, OperationPhase, ResourceState, SyncStatus
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.rechecks import Recheck

GOOD = Outcome("web", Result.SUCCEEDED)
PATIENT = NodeTiming(health=timedelta(seconds=60), degraded_grace=timedelta(seconds=30))
WELL, SICK = state(), state(Health.DEGRADED)


def judged(*looks: tuple[int, NodeState | None], opened: NodeState | None = None) -> Closed | None:
    """After looks since its gate opened: each at a second, with what was there."""
    checked = {"web": Recheck(PATIENT, "run-1", opened)}
    for second, shown in looks:
        checked = rechecks.observe_all(checked, {"web": shown} if shown else {}, at(second))
    return rechecks.closed_gates(checked).get("web")


@pytest.mark.parametrize(
    "shown",
    [
        SICK,
        state(Health.PROGRESSING),
        state(conditions=(Condition("ComparisonError", "no such path"),)),
        state(sync=SyncStatus.UNKNOWN),
        ResourceState(Health.UNKNOWN),
        None,
    ],
)
def test_what_is_not_well_is_waited_for(shown: NodeState | None) -> None:
    assert isinstance(judged((0, shown)), Wait)
    assert isinstance(judged((0, shown), (59, shown), (60, shown)), Failed)


@pytest.mark.parametrize("shown", [WELL, ResourceState(Health.HEALTHY)])
def test_what_is_well_is_not_waited_for(shown: NodeState) -> None:
    assert judged((0, shown)) is None


def test_degraded_has_its_grace_and_what_is_deleted_has_none() -> None:
    assert isinstance(judged((0, SICK), (29, SICK)), Wait)
    found = judged((0, SICK), (30, SICK))
    assert isinstance(found, Failed)
    assert found.reason is Reason.DEGRADED
    assert isinstance(judged((0, state(is_deleting=True))), Failed)


def test_between_two_crashes_it_is_not_healthy_yet() -> None:
    found = judged((0, SICK), (5, WELL), (14, WELL))
    assert isinstance(found, Wait)
    assert found.reason is Reason.NOT_STABLE
    assert judged((0, SICK), (5, WELL), (15, WELL)) is None
    assert isinstance(judged((0, SICK), (5, WELL), (6, SICK), (16, WELL)), Wait)


OPENED = state(uid="1", operation=operation(run_id="run-1"))
THEIRS = operation(started_at=at(1), finished_at=at(2), run_id=None, started_by="eve")
AUTOMATED = replace(THEIRS, started_by="", is_automated=True)


def test_what_is_not_as_its_gate_saw_it_is_not_ready_although_it_is_healthy() -> None:
    assert judged((3, OPENED), opened=OPENED) is None
    assert judged((3, replace(OPENED, uid="2"))) is None, "without a gate in this run only its health counts"
    rolled_back = judged((3, replace(OPENED, operation=replace(THEIRS, revisions=(OLD,)))), opened=OPENED)
    assert isinstance(rolled_back, Failed)
    assert rolled_back.reason is Reason.OVERTAKEN
    assert isinstance(judged((3, None), opened=OPENED), Failed)
    assert judged((3, replace(OPENED, operation=THEIRS)), opened=OPENED) is None


def test_what_argo_cd_fails_to_repair_is_waited_for_as_long_as_the_node_may_take() -> None:
    failed = replace(OPENED, operation=replace(AUTOMATED, phase=OperationPhase.FAILED))
    assert isinstance(judged((3, failed), (20, failed), opened=OPENED), Wait)
    assert isinstance(judged((3, failed), (63, failed), opened=OPENED), Failed)
    healed = replace(OPENED, operation=replace(AUTOMATED, finished_at=at(21)))
    assert judged((3, failed), (20, failed), (40, healed), (50, healed), opened=OPENED) is None


def test_what_becomes_of_it() -> None:
    assert rechecks.apply_final_check(GOOD, None) == GOOD
    failed = rechecks.apply_final_check(GOOD, Failed(Reason.DEGRADED, "it is Degraded"))
    assert failed.result is Result.FAILED
    assert isinstance(failed.decision, Failed)
    assert failed.decision.detail.endswith("not ready at the end of the run: it is Degraded")
    stopped = rechecks.apply_final_check(GOOD, Wait(Reason.PROGRESSING, "it is Progressing"))
    assert stopped.result is Result.INTERRUPTED
    assert isinstance(stopped.decision, Failed)
    assert stopped.decision.reason is Reason.INTERRUPTED
