"""The gate never opens on stale health: what a real Argo CD showed after syncs is shown to it again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.builders import NEW, NOW, OLD, at, seconds, source, state
from windlass.core.platform import gates
from windlass.core.platform.gate_values import GateTarget, Open
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import NodeState, Operation, OperationPhase, SyncStatus

OURS = GateTarget((NEW,), (source(),), NodeTiming(sync=seconds(300), health=seconds(300)), run_id="run-1")


def recordings() -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    for line in (Path(__file__).parent / "recorded_syncs.txt").read_text().splitlines():
        if line.startswith("sync"):
            found.append([])
        elif not line.startswith("#"):
            found[-1].append(line.split())
    return found


def recorded_state(columns: list[str]) -> NodeState:
    _, requested, phase, done_at, shown_at, sync, health, finished, reconciled = columns
    revision = {"old": OLD, "new": NEW}
    hour = datetime(2026, 11, 15, 21, tzinfo=UTC)
    ended = None if finished == "-" else hour + timedelta(seconds=int(finished))
    is_ours = phase == "Running" or done_at == "new"
    return state(
        Health(health),
        revisions=(revision[shown_at],),
        sync=SyncStatus(sync),
        operation_requested=requested == "*",
        operation=Operation(
            OperationPhase(phase),
            hour,
            ended,
            (revision[done_at],),
            run_id="run-1" if is_ours else "run-0",
            started_by="windlass",
        ),
        reconciled_at=hour + timedelta(seconds=int(reconciled)),
    )


@pytest.mark.parametrize("recording", recordings())
def test_a_recorded_sync_opens_the_gate_when_it_was_really_healthy(recording: list[list[str]]) -> None:
    """The last state of each is the first true Healthy; one before it that says Healthy is a lie."""
    states = [(float(columns[0]), recorded_state(columns)) for columns in recording]
    found = gates.start_history(states[0][1], NOW)
    for second, each in states:
        found = gates.extend_history(found, each, at(second))
        is_open = isinstance(gates.evaluate_gate(OURS, found, at(second)), Open)
        assert is_open == (second == states[-1][0])
