"""The final check: whether the nodes that became healthy still are at the end of the run, with the same timeouts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.platform import gates
from windlass.core.platform.gate_values import Failed, Open, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.gate_values import Closed, GateHistory
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import NodeState, Snapshot

RECOVERY_STABILITY = timedelta(seconds=10)
"""How long a node that was unhealthy must be Healthy: a crashing container is ready for a moment between crashes."""


def update_histories(
    histories: Mapping[str, GateHistory], names: Iterable[str], snapshot: Snapshot
) -> dict[str, GateHistory]:
    """Histories of the nodes that are unhealthy in this snapshot, or were in an earlier one."""
    states, now = snapshot.states, snapshot.taken_at
    updated = {name: gates.extend_history(history, states.get(name), now) for name, history in histories.items()}
    new = (name for name in names if name not in histories and not _is_healthy(states.get(name)))
    return {**updated, **{name: gates.start_history(states.get(name), now) for name in new}}


def _is_healthy(state: NodeState | None) -> bool:
    return (
        state is not None and state.health is Health.HEALTHY and not state.is_deleting and not gates.is_degraded(state)
    )


def closed_gates(platform: Platform, histories: Mapping[str, GateHistory], snapshot: Snapshot) -> dict[str, Closed]:
    """The decision for each node whose gate is not open again, by name."""
    closed = {}
    for name, history in histories.items():
        timing = platform.applications[name].timing
        steady = replace(timing, stability=max(timing.stability, RECOVERY_STABILITY))
        decision = gates.evaluate_gate(gates.current_target(history.latest, steady), history, snapshot.taken_at)
        if not isinstance(decision, Open):
            closed[name] = decision
    return closed


def apply_final_check(outcome: Outcome, decision: Closed | None) -> Outcome:
    """The outcome of a node after the final check. A node that is still waiting counts as interrupted."""
    if decision is None:
        return outcome
    detail = f"it was healthy in its turn, and is not at the end of the run: {decision.detail}"
    if isinstance(decision, Failed):
        return replace(outcome, result=Result.FAILED, decision=replace(decision, detail=detail))
    return replace(outcome, result=Result.INTERRUPTED, decision=Failed(Reason.INTERRUPTED, detail))
