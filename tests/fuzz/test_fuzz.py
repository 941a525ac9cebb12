"""The corpus, and a few hundred changes to it: a decoder raises no error but ours. `make fuzz` plays for longer."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.corpus import load_corpus, result_kind
from tests.fuzz.decoders import DECODERS
from tests.fuzz.mutations import mutate


@pytest.mark.parametrize("name", DECODERS)
def test_each_decoder_raises_no_error_but_ours(name: str) -> None:
    corpus = list(load_corpus(name).values())
    random = Random(name)
    for content in [*corpus, *(mutate(random.choice(corpus), corpus, random) for _ in range(300))]:
        assert result_kind(name, content)


@pytest.mark.parametrize("name", DECODERS)
def test_each_corpus_has_an_input_that_is_decoded(name: str) -> None:
    assert any(result_kind(name, content).startswith("decoded") for content in load_corpus(name).values())


def test_fuzzing_ends_when_its_time_is_over() -> None:
    answers = iter([False, True])
    assert fuzz("yaml", Random(1), lambda: next(answers)) in {(1, 0), (1, 1)}
