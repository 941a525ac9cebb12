"""Random faults of a cluster: slow and failing calls, cut watches, and health that is stale or wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.application_specs import Lie, Stale
from windlass.sandbox.argocd.comparison import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.sandbox.clock import Sources

LATENCY = 0.05  # seconds added to every response
CALLS = 3  # approximate; a fault hits a random one of them
REFUSALS: tuple[tuple[str, dict[str, Any]], ...] = (
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
class Disturbance:
    """The faults of one simulated run, and a record of those that occurred."""

    faults: tuple[tuple[str, Fault], ...]
    lies: Mapping[str, Lie]
    """By node: the outdated status that its Application shows for a while after a sync."""
    cuts: tuple[float, ...]
    """Times, in seconds from the start, at which all watches are cut."""
    cut: list[int] = field(default_factory=list)
    """The number of watches that were cut, for each time."""

    @property
    def hits(self) -> Mapping[str, int]:
        """Number of occurrences by kind of fault."""
        found: dict[str, int] = {}
        for word, fault in self.faults:
            found[word] = found.get(word, 0) + fault.hits
        return {**found, "watches cut": sum(self.cut), "applications with untrue health": len(self.lies)}


def drawn(sources: Sources, user: str, names: Sequence[str], seconds: float) -> Disturbance:
    """Choose random faults for the calls of a user about these nodes, spread over `seconds`."""
    chance, rounds = sources.chance, 1 + len(names) // 10
    faults = [("answers late", Fault(user=user, times=None, latency=LATENCY))]
    for word, fields in REFUSALS:
        for _ in range(rounds):
            skip, times = chance.randrange(CALLS * len(names) + 1), chance.randint(1, 2)
            faults.append((word, Fault(user=user, skip=skip, times=times, **fields)))
    liars = chance.sample(names, (len(names) + 3) // 4)
    lies = {name: Lie(chance.choice(list(Stale)), chance.uniform(1, 10)) for name in liars}
    return Disturbance(tuple(faults), lies, tuple(sorted(chance.uniform(0, seconds) for _ in range(2 + rounds))))
