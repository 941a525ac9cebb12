"""The evaluation of a gate: Argo CD's verdict first; where that would open the gate, the objects must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform import gates
from windlass.core.platform.gate_values import Open, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ApplicationState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from windlass.core.platform.gate_values import GateDecision, GateHistory, GateTarget
    from windlass.core.platform.model.snapshots import NodeState

    AssessState = Callable[[ApplicationState], Awaitable[ApplicationState]]
    """Returns the state with its health lowered to that of the worst object."""


async def evaluate_with_objects(
    target: GateTarget,
    history: GateHistory,
    state: NodeState | None,
    assess: AssessState,
    now: Callable[[], datetime],
) -> tuple[GateDecision, GateHistory]:
    """Decide on this state, given the history before it; return the decision and the history with the state.

    The objects are read only when they can change the decision: when the gate would open, and when Argo CD shows
    Healthy again, from where on the node must be stable.
    """
    extended = gates.extend_history(history, state, now())
    decision = gates.evaluate_gate(target, extended, now())
    was_healthy = history.latest is not None and history.latest.health is Health.HEALTHY
    is_newly_healthy = not isinstance(decision, Open) and decision.reason is Reason.NOT_STABLE and not was_healthy
    if isinstance(state, ApplicationState) and (isinstance(decision, Open) or is_newly_healthy):
        extended = gates.extend_history(history, await assess(state), now())
        decision = gates.evaluate_gate(target, extended, now())
    return decision, extended
