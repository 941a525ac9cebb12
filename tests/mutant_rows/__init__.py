"""Mutants by subject, for `make mutants`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    invariant: str
    file: str
    old: str
    new: str
    test: str
    """A file below tests/, a test in one, `seeds` or `seeds:DIMENSION`."""
