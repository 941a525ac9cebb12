"""Random faults of a cluster: slow and failing calls, cut watches, and health that is stale or wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus
from windlass.sandbox.argocd.comparison import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.sandbox.clock import SandboxClock

RESPONSE_LATENCY = 0.05  # seconds added to every response
CALLS_PER_APPLICATION = 3  # approximate; a fault hits a random one of them
CALL_FAULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("answers 429", {"code": 429, "retry_after": 1}),
    ("answers 503", {"code": 503, "kind": APPLICATIONS}),
    ("answers 500", {"code": 500, "kind": APPLICATIONS}),
    ("answers 409", {"code": 409, "kind": APPLICATIONS, "verb": "patch"}),
    ("connections lost before", {"sever": "before", "kind": APPLICATIONS}),
    ("connections lost after", {"sever": "after", "kind": APPLICATIONS}),
)
"""Labels and faults. Apart from 429, none hits the lock.

A run that cannot renew its lock for ten seconds must end, because another run may hold the lock by then.
"""


@dataclass(frozen=True, slots=True)
class FaultSchedule:
    """The faults of one simulated run, and a record of those that occurred."""

    faults: tuple[tuple[str, Fault], ...]
    stale_statuses: Mapping[str, StaleStatus]
    """By node: the outdated status that its Application shows for a while after a sync."""
    watch_cut_times: tuple[float, ...]
    """Times, in seconds from the start, at which all watches are cut."""
    watches_cut: list[int] = field(default_factory=list)
    """The number of watches that were cut, for each time."""

    @property
    def hits(self) -> Mapping[str, int]:
        """Number of occurrences by kind of fault."""
        counts: dict[str, int] = {}
        for label, fault in self.faults:
            counts[label] = counts.get(label, 0) + fault.hits
        return {
            **counts,
            "watches cut": sum(self.watches_cut),
            "applications with untrue health": len(self.stale_statuses),
        }


def draw_faults(clock: SandboxClock, user: str, names: Sequence[str], seconds: float) -> FaultSchedule:
    """Choose random faults for the calls of a user about these nodes, spread over `seconds`."""
    rng, rounds = clock.rng, 1 + len(names) // 10
    faults = [("answers late", Fault(user=user, times=None, latency=RESPONSE_LATENCY))]
    for label, fault_fields in CALL_FAULTS:
        for _ in range(rounds):
            skip, times = rng.randrange(CALLS_PER_APPLICATION * len(names) + 1), rng.randint(1, 2)
            faults.append((label, Fault(user=user, skip=skip, times=times, **fault_fields)))
    stale_names = rng.sample(names, (len(names) + 3) // 4)
    stale_statuses = {name: StaleStatus(rng.choice(list(Staleness)), rng.uniform(1, 10)) for name in stale_names}
    return FaultSchedule(
        tuple(faults), stale_statuses, tuple(sorted(rng.uniform(0, seconds) for _ in range(2 + rounds)))
    )
