"""Mutants that seeds of the simulation kill: no scenario is written for them."""

from __future__ import annotations

from tests.mutant_rows import Mutant

SEEDS = "seeds"
THIRD_PARTIES = f"{SEEDS}:third-parties"

SEED_MUTANTS = (
    Mutant(
        "a race repeats for ever", "INV-4", "argo/cd/sync_step.py",
        "            if not has_raced and is_race(decision):",
        "            if is_race(decision):",
        THIRD_PARTIES,
    ),
)  # fmt: skip
