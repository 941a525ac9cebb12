"""python -m tests.fuzz [DECODER ...]: changes the corpus at random and decodes the result, for a limited time.

Inputs with a new kind of result join the corpus. An exception that is not one of our errors, a decoder that takes ten
seconds, or one that changes its mind ends the run with exit code 1 and keeps the input.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
from functools import partial
from random import Random  # noqa: TID251 - seeded by an option
from typing import TYPE_CHECKING

from tests.fuzz.corpus import keep, load_corpus, result_kind
from tests.fuzz.decoders import DECODERS
from tests.fuzz.mutations import mutate
from windlass.kube.clocks import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

INPUT_SECONDS = 10  # for one input


def fuzz(name: str, random: Random, is_over: Callable[[], bool]) -> tuple[int, int]:
    """Decode mutated inputs until time is over; returns how many, and how many of them joined the corpus."""
    corpus = list(load_corpus(name).values())
    kinds = {result_kind(name, content) for content in corpus}
    number = kept = 0
    while not is_over():
        content = mutate(random.choice(corpus), corpus, random)
        number += 1
        faulthandler.dump_traceback_later(INPUT_SECONDS, exit=True)
        try:
            kind = result_kind(name, content)
        except BaseException:
            print(f"{name}: an exception that is not ours; input kept as {keep(name, content)}", file=sys.stderr)
            raise
        faulthandler.cancel_dump_traceback_later()
        if kind not in kinds:
            kinds.add(kind)
            corpus.append(content)
            kept += keep(name, content) is not None
    return number, kept


def _is_past(end: float, monotonic: Callable[[], float]) -> bool:
    return monotonic() >= end


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="DECODER", help=f"of {', '.join(DECODERS)}; all if none is given")
    parser.add_argument("--seconds", type=float, default=60, help="for all decoders together")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    names, monotonic = arguments.names or list(DECODERS), Clock().monotonic
    for name in names:
        end = monotonic() + arguments.seconds / len(names)
        number, kept = fuzz(name, Random(f"{arguments.seed} {name}"), partial(_is_past, end, monotonic))
        print(f"{name:18} {number:8} inputs, {kept} new in the corpus", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
