"""The rows of `make mutants` fit the sources: one whose line was changed breaks nothing any more."""

from __future__ import annotations

from tests.mutants import HERE, MUTANTS, SOURCE


def test_the_line_of_every_mutant_occurs_exactly_once() -> None:
    texts = {mutant.file: (HERE / SOURCE / mutant.file).read_text() for mutant in MUTANTS}
    counts = {mutant.name: texts[mutant.file].count(mutant.old) for mutant in MUTANTS}
    assert not {name: count for name, count in counts.items() if count != 1}


def test_every_mutant_changes_something() -> None:
    assert not [mutant.name for mutant in MUTANTS if mutant.old == mutant.new]
