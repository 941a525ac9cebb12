"""A bad day of a cluster, drawn by chance: slow and refused calls, cut watches, health that is not true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.application_specs import Lie, Stale
from windlass.sandbox.argocd.comparison import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windlass.sandbox.clock import Sources

LATENCY = 0.05  # seconds by which every answer is late
CALLS = 3  # of one application, about: where among them a fault hits is left to chance
REFUSALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("answers 429", {"code": 429, "retry_after": 1}),
    ("answers 503", {"code": 503, "kind": APPLICATIONS}),
    ("answers 500", {"code": 500, "kind": APPLICATIONS}),
    ("answers 409", {"code": 409, "kind": APPLICATIONS, "verb": "patch"}),
    ("connections lost before", {"sever": "before", "kind": APPLICATIONS}),
    ("connections lost after", {"sever": "after", "kind": APPLICATIONS}),
)
"""Not of the lock: a run that cannot renew it for ten seconds ends, as it should: who else is at work is unknown."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    faults: tuple[tuple[str, Fault], ...]
    lies: Mapping[str, Lie]
    """By name: what it shows after a sync before it shows the truth."""
    cuts: tuple[float, ...]
    """Seconds until all watches are cut."""
    cut: list[int] = field(default_factory=list)
    """How many there were, each time."""

    @property
    def hits(self) -> Mapping[str, int]:
        """What went wrong, and how often."""
        found: dict[str, int] = {}
        for word, fault in self.faults:
            found[word] = found.get(word, 0) + fault.hits
        return {**found, "watches cut": sum(self.cut), "applications with untrue health": len(self.lies)}


def drawn(sources: Sources, user: str, names: Sequence[str], seconds: float) -> Disturbance:
    """For calls of a user about these nodes, over so many seconds."""
    chance, rounds = sources.chance, 1 + len(names) // 10
    faults = [("answers late", Fault(user=user, times=None, latency=LATENCY))]
    for word, fields in REFUSALS:
        for _ in range(rounds):
            skip, times = chance.randrange(CALLS * len(names) + 1), chance.randint(1, 2)
            faults.append((word, Fault(user=user, skip=skip, times=times, **fields)))
    liars = chance.sample(names, (len(names) + 3) // 4)
    lies = {name: Lie(chance.choice(list(Stale)), chance.uniform(1, 10)) for name in liars}
    return Disturbance(tuple(faults), lies, tuple(sorted(chance.uniform(0, seconds) for _ in range(2 + rounds))))
