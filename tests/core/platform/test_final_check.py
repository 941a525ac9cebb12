"""The last look at what was healthy in its turn: what is sick then, for how long it may be, what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import at, platform, state
from windlass.core.platform import final_check
from windlass.core.platform.gate_values import Closed, Failed, GateHistory, Reason, Wait
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import Condition, NodeState, ResourceState, Snapshot
from windlass.core.platform.outcomes import Outcome, Result

GOOD = Outcome("web", Result.SUCCEEDED)
WEB = platform("web")
PATIENT = NodeTiming(health=timedelta(seconds=60), degraded_grace=timedelta(seconds=30))
WEB = replace(WEB, applications={"web": replace(WEB.applications["web"], timing=PATIENT)})
WELL, SICK = state(), state(Health.DEGRADED)


def judged(*looks: tuple[int, NodeState | None]) -> Closed | None:
    """After looks at the end of the run: each at a second, with what was there."""
    seen: dict[str, GateHistory] = {}
    snapshot = Snapshot(at(0))
    for second, shown in looks:
        snapshot = Snapshot(at(second), {"web": shown} if shown else {})
        seen = final_check.update_histories(seen, ["web"], snapshot)
    return final_check.closed_gates(WEB, seen, snapshot).get("web")


@pytest.mark.parametrize(
    "shown",
    [
        SICK,
        state(Health.PROGRESSING),
        state(conditions=(Condition("ComparisonError", "no such path"),)),
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


def test_what_becomes_of_it() -> None:
    assert final_check.apply_final_check(GOOD, None) == GOOD
    failed = final_check.apply_final_check(GOOD, Failed(Reason.DEGRADED, "it is Degraded"))
    assert failed.result is Result.FAILED
    assert isinstance(failed.decision, Failed)
    assert failed.decision.detail.endswith("not at the end of the run: it is Degraded")
    stopped = final_check.apply_final_check(GOOD, Wait(Reason.PROGRESSING, "it is Progressing"))
    assert stopped.result is Result.INTERRUPTED
    assert isinstance(stopped.decision, Failed)
    assert stopped.decision.reason is Reason.INTERRUPTED
