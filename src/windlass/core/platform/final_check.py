"""The final check: whether the nodes that became healthy still are at the end of the run, with the same timeouts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.platform import gates
from windlass.core.platform.gates import Failed, Open, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.gates import Closed, Seen
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import Snapshot, State

HOLDS_AFTER = timedelta(seconds=10)
"""How long a node that was unhealthy must be Healthy: a crashing container is ready for a moment between crashes."""


def looked_at(seen: Mapping[str, Seen], names: Iterable[str], snapshot: Snapshot) -> dict[str, Seen]:
    """Histories of the nodes that are unhealthy in this snapshot, or were in an earlier one."""
    states, now = snapshot.states, snapshot.taken_at
    again = {name: gates.followed(each, states.get(name), now) for name, each in seen.items()}
    new = (name for name in names if name not in seen and not _is_well(states.get(name)))
    return {**again, **{name: gates.first_seen(states.get(name), now) for name in new}}


def _is_well(state: State | None) -> bool:
    return state is not None and state.health is Health.HEALTHY and not state.is_deleting and not gates.is_sick(state)


def judged(platform: Platform, seen: Mapping[str, Seen], snapshot: Snapshot) -> dict[str, Closed]:
    """The decision for each node whose gate is not open again, by name."""
    found = {}
    for name, each in seen.items():
        patience = platform.applications[name].patience
        steady = replace(patience, stability=max(patience.stability, HOLDS_AFTER))
        judgement = gates.judge(gates.as_shown(each.last, steady), each, snapshot.taken_at)
        if not isinstance(judgement, Open):
            found[name] = judgement
    return found


def corrected(outcome: Outcome, judgement: Closed | None) -> Outcome:
    """The outcome of a node after the final check. A node that is still waiting counts as interrupted."""
    if judgement is None:
        return outcome
    detail = f"it was healthy in its turn, and is not at the end of the run: {judgement.detail}"
    if isinstance(judgement, Failed):
        return replace(outcome, result=Result.FAILED, judgement=replace(judgement, detail=detail))
    return replace(outcome, result=Result.INTERRUPTED, judgement=Failed(Reason.INTERRUPTED, detail))
