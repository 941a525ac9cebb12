"""What a status says about each Application, and which exit code it has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import at
from windlass.core.platform.cluster_status import (
    ClusterStatus,
    FailedApplication,
    active_applications,
    failed_applications,
    health_counts,
    lock_status,
    seems_abandoned,
    sync_counts,
)
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    Condition,
    Operation,
    OperationPhase,
    SyncStatus,
)
from windlass.errors import ExitCode

STARTED = Operation(OperationPhase.RUNNING, at(-40), run_id="7ae2c1d0")
ENDING = replace(STARTED, phase=OperationPhase.TERMINATING)
SUCCEEDED = Operation(OperationPhase.SUCCEEDED, at(-90), at(-80))
REFUSED = Operation(OperationPhase.FAILED, at(-90), at(-80), message="Deployment web is invalid")
HEALTHY = ApplicationState(health=Health.HEALTHY, sync=SyncStatus.SYNCED, operation=SUCCEEDED)


def state(**changes: Any) -> ApplicationState:
    return replace(HEALTHY, **changes)


@pytest.mark.parametrize(
    ("shown", "activity", "by"),
    [
        (state(operation=STARTED), "is syncing", "run 7ae2c1d0"),
        (state(operation=replace(STARTED, run_id=None, started_by="jane")), "is syncing", "jane"),
        (
            state(operation=replace(STARTED, phase=OperationPhase.TERMINATING)),
            "is terminating its sync",
            "run 7ae2c1d0",
        ),
        (state(operation_requested=True, requesting_run_id="9"), "waits for its requested sync", "run 9"),
        (state(is_deleting=True), "is being deleted", ""),
        (state(health=Health.PROGRESSING, operation=replace(SUCCEEDED, run_id="8")), "is progressing", "run 8"),
    ],
)
def test_what_changes_now_and_who_started_it(shown: ApplicationState, activity: str, by: str) -> None:
    [active] = active_applications({"web": shown}, {"web": shown})
    assert (active.name, active.activity, active.by) == ("web", activity, by)


def test_an_application_that_rests_does_not_change() -> None:
    assert not active_applications({"web": HEALTHY}, {"web": HEALTHY})
    assert not failed_applications({"web": HEALTHY})


def test_health_that_may_predate_the_last_sync_counts_as_progressing() -> None:
    unproven = state(health=Health.UNKNOWN, health_message="an operation finished a moment ago")
    assert health_counts({"web": HEALTHY}, {"web": unproven}) == {"Progressing": 1}
    [active] = active_applications({"web": HEALTHY}, {"web": unproven})
    assert active.detail == "an operation finished a moment ago"


@pytest.mark.parametrize(
    ("shown", "reason", "cause"),
    [
        (state(health=Health.DEGRADED, health_message="0 of 1 is ready"), "Degraded", "0 of 1 is ready"),
        (state(health=Health.MISSING), "Missing", ""),
        (state(health=Health.UNKNOWN), "Unknown", ""),
        (state(sync=SyncStatus.OUT_OF_SYNC, operation=REFUSED), "sync Failed", "Deployment web is invalid"),
        (state(conditions=(Condition("ComparisonError", "no such path"),)), "ComparisonError", "no such path"),
    ],
)
def test_what_failed_and_why(shown: ApplicationState, reason: str, cause: str) -> None:
    [failed] = failed_applications({"web": shown})
    assert (failed.reason, failed.cause) == (reason, cause)


@pytest.mark.parametrize(
    "shown",
    [
        state(health=Health.MISSING, operation=None, sync=SyncStatus.OUT_OF_SYNC),
        state(health=Health.UNKNOWN, operation=None),
        state(health=Health.MISSING, operation=STARTED),
        state(operation=REFUSED),
        state(sync=SyncStatus.OUT_OF_SYNC, operation=REFUSED, operation_requested=True),
        state(health=Health.DEGRADED, is_deleting=True),
        state(conditions=(Condition("SharedResourceWarning", "web"),)),
    ],
    ids=["never deployed", "never compared", "first sync", "synced since", "synced again", "deleted", "a warning"],
)
def test_what_is_no_failure(shown: ApplicationState) -> None:
    assert not failed_applications({"web": shown})


def test_the_oldest_comes_first_and_an_unknown_time_last() -> None:
    states = {
        "new": state(health=Health.DEGRADED, health_since=at(-5)),
        "none": state(health=Health.DEGRADED),
        "old": state(health=Health.DEGRADED, health_since=at(-500)),
    }
    assert [each.name for each in failed_applications(states)] == ["old", "new", "none"]


def test_counts_are_from_best_to_worst() -> None:
    states = {"a": state(health=Health.DEGRADED), "b": HEALTHY, "c": state(sync=SyncStatus.OUT_OF_SYNC)}
    assert list(health_counts(states, states).items()) == [("Healthy", 2), ("Degraded", 1)]
    assert sync_counts(states.values()) == {"Synced": 2, "OutOfSync": 1}


@pytest.mark.parametrize(
    ("failed", "applications", "code"),
    [(0, 0, ExitCode.SUCCESS), (0, 3, ExitCode.SUCCESS), (1, 3, ExitCode.PARTIAL), (3, 3, ExitCode.FAILURE)],
)
def test_exit_codes(failed: int, applications: int, code: ExitCode) -> None:
    failures = tuple(FailedApplication(str(number), "Degraded") for number in range(failed))
    assert ClusterStatus("", applications=applications, failed=failures).exit_code is code


LEASE: dict[str, Any] = {
    "metadata": {"annotations": {"windlass.dev/holder": "ada@build-1"}},
    "spec": {"holderIdentity": "run", "acquireTime": "2026-11-15T20:58:00Z", "renewTime": "2026-11-15T20:59:58Z"},
}


def test_the_lock_names_its_holder_and_since_when() -> None:
    lock = lock_status(LEASE)
    assert lock is not None
    assert (lock.holder.run_id, lock.holder.person, lock.since) == ("run", "ada@build-1", at(-120))
    assert lock_status({}) is None
    assert lock_status({**LEASE, "spec": {**LEASE["spec"], "holderIdentity": ""}}) is None


@pytest.mark.parametrize("change", [{}, {"renewTime": 7}, {"renewTime": "soon"}, {"renewTime": None}])
def test_a_lock_that_was_not_renewed_seems_abandoned(change: dict[str, Any]) -> None:
    assert not seems_abandoned(LEASE, at(0))
    assert seems_abandoned({**LEASE, "spec": {**LEASE["spec"], **change}}, at(60))
    assert not seems_abandoned({}, at(60))
