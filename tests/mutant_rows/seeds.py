"""Mutants that seeds of the simulation kill too: no scenario is written for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.mutant_rows import Mutant

SEEDS = "seeds"

DIMENSIONS = {
    # order
    "objects of a dependency are not read at a start": "critical@20",
    "objects of a dependency are read once": "critical@21",
    "the final check believes Argo CD alone": "critical@6",
    "a dependency is judged once": "outages@23",
    "Argo CD's clock counts as the server's": "clocks@0",
    "another client's operation opens the gate": "takeovers@5",
    "a rollback after the gate is a success": "takeovers",
    "what is shown as synced after a takeover is synced": "takeovers",
    # the lock
    "a live holder is robbed": "late-writes",
    "a write without the lock": "pauses@10",
    "a deleted Lease is no loss": "deleted-leases",
    "lease times counted from the answer": "lease-outages",
    "the lock is kept": "interruptions",
    "operations go on after the end": "interruptions@0",
    # definitions
    "a race repeats for ever": "third-parties",
    "a broken parent shows what it defines": "late-breakages@2",
    "what left git is unchanged": "late-breakages@14",
    "an empty selection is everything": "parents@7",
    "a step takes whatever its branch leads to": "approvals@12",
    "children follow a parent that is changed": "automated-parents",
    "a root without nodes is believed": "broken-commits@25",
    "parents are not judged at the end": "late-breakages@2",
    "another environment is welcome": "other-environments@0",
    # removal
    "what cannot be listed is no foreign object": "foreign-objects@37",
    "foreign objects are destroyed": "foreign-objects@1",
    "a namespace older than its Applications goes": "foreign-objects",
    "claims are found without their owners": "owned-claims@0",
    "a dependent counts by its Application alone": "orphaned@10",
}
"""By name of a mutant that also has a test of its own: the dimensions whose seeds kill it, separated by colons, and the
lowest seed that did, which is played first."""


def seed_mutants(mutants: Iterable[Mutant]) -> tuple[Mutant, ...]:
    """The mutants of the table above, with seeds as their test."""
    by_name = {mutant.name: mutant for mutant in mutants}
    return tuple(replace(by_name[name], test=f"{SEEDS}:{dimensions}") for name, dimensions in DIMENSIONS.items())
