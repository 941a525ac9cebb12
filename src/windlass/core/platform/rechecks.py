"""Rechecks: whether nodes whose gates have opened are still healthy, and still as they were then.

The dependencies of a node are rechecked whenever it starts, all nodes of a run at its end. A node that is not healthy
is waited for with its own timeouts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.platform import gates, takeovers
from windlass.core.platform.gate_values import Failed, Open, Reason, Wait
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ApplicationState, SyncStatus
from windlass.core.platform.outcomes import Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from windlass.core.platform.gate_values import Closed, GateDecision, GateHistory
    from windlass.core.platform.model.applications import NodeTiming
    from windlass.core.platform.model.snapshots import NodeState

RECOVERY_STABILITY = timedelta(seconds=10)
"""How long a node that was unhealthy must be Healthy: a crashing container is ready for a moment between crashes."""


@dataclass(frozen=True, slots=True)
class Recheck:
    """What was seen of one node after its gate had opened."""

    timing: NodeTiming
    run_id: str
    opened: NodeState | None = None
    """The state on which its gate opened; `None` if the run has no gate for it and only its health counts."""
    history: GateHistory | None = None
    """Since it was first not as it should be; `None` if it always was."""
    closed: Closed | None = None
    """What is wrong with it now; `None` if it is as it should be."""
    state: NodeState | None = None
    """The state that was seen last."""
    undefined_since: datetime | None = None
    """Since when its definition is not known; `None` if it is."""

    def observe(self, state: NodeState | None, now: datetime) -> Recheck:
        """The recheck after one more look."""
        change = None
        if isinstance(self.opened, ApplicationState):
            change = takeovers.check_takeover_since_gate(self.opened, state, self.run_id)
        if self.history is None and change is None and _is_healthy(state):
            return replace(self, closed=None, state=state)
        history = (
            gates.start_history(state, now) if self.history is None else gates.extend_history(self.history, state, now)
        )
        if isinstance(change, Failed):
            return replace(self, history=history, closed=change, state=state)
        timing = replace(self.timing, stability=max(self.timing.stability, RECOVERY_STABILITY))
        target = gates.current_target(state, timing)
        decision: GateDecision | None = gates.evaluate_gate(target, history, now)
        if isinstance(decision, Open):
            decision = change and (gates.check_limit(target, history, change, now) or change)
        return replace(self, history=history, closed=decision, state=state)

    def observe_definition(self, failed: Failed | None, now: datetime) -> Recheck:
        """The recheck after one more look at what defines the node; a failure counts after the grace period."""
        if failed is None:
            return replace(self, undefined_since=None)
        since = self.undefined_since or now
        is_over = now - since >= self.timing.degraded_grace
        closed = failed if is_over else Wait(failed.reason, failed.detail)
        return replace(self, undefined_since=since, closed=self.closed if isinstance(self.closed, Failed) else closed)


def observe_all(
    rechecks: Mapping[str, Recheck], states: Mapping[str, NodeState | None], now: datetime
) -> dict[str, Recheck]:
    return {name: recheck.observe(states.get(name), now) for name, recheck in rechecks.items()}


def observe_definitions(
    rechecks: Mapping[str, Recheck], failures: Mapping[str, Failed], now: datetime
) -> dict[str, Recheck]:
    return {name: recheck.observe_definition(failures.get(name), now) for name, recheck in rechecks.items()}


def closed_gates(rechecks: Mapping[str, Recheck]) -> dict[str, Closed]:
    """What is wrong, by node; nodes that are as they should be are left out."""
    return {name: recheck.closed for name, recheck in rechecks.items() if recheck.closed is not None}


def _is_healthy(state: NodeState | None) -> bool:
    if state is None or state.is_deleting or gates.is_degraded(state):
        return False
    is_compared = not isinstance(state, ApplicationState) or state.sync is not SyncStatus.UNKNOWN
    return is_compared and state.health is Health.HEALTHY


def apply_final_check(outcome: Outcome, closed: Closed | None) -> Outcome:
    """The outcome of a node after the recheck at the end. A node that is still waited for counts as interrupted."""
    if closed is None:
        return outcome
    detail = f"its gate had opened, but it is not ready at the end of the run: {closed.detail}"
    if isinstance(closed, Failed):
        causes = (closed.cause,) if closed.cause else outcome.causes
        return replace(outcome, result=Result.FAILED, decision=replace(closed, detail=detail), causes=causes)
    return replace(outcome, result=Result.INTERRUPTED, decision=Failed(Reason.INTERRUPTED, detail))
