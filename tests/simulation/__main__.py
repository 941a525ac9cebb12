"""`python -m tests.simulation 1234` plays one seed and prints its story; `--seeds 10000` plays many, on all cores.

`--until-wrong` stops at the first wrong seed. `--only NAME` draws these dimensions instead of the default ones;
`--only basis` draws none. `--digests` prints the SHA-256 of each seed's request journal instead: a change that must not
alter behaviour leaves them all as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.dimensions import DIMENSIONS
from tests.simulation.play import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNK = 25  # seeds that a process plays before it reports them
MAX_SHOWN = 20  # wrong seeds that are printed one by one
MAX_TEXT = 300  # characters of a problem
Dimensions = frozenset[str] | None
PlayedSeed = tuple[int, tuple[int, int, int], tuple[str, ...]]
"""(seed, (nodes, runs, operations), problems)."""


def play_seed(seed: int, dimensions: Dimensions) -> PlayedSeed:
    try:
        result = simulate(seed, dimensions)
    except Exception as error:  # noqa: BLE001 - a seed that breaks is a finding like any other
        return seed, (0, 0, 0), (f"{type(error).__name__}: {error}",)
    return seed, (result.nodes, result.runs, result.operations), result.problems


def play_chunk(seeds: Sequence[int], dimensions: Dimensions) -> list[PlayedSeed]:
    return [play_seed(seed, dimensions) for seed in seeds]


def print_one(seed: int, dimensions: Dimensions) -> int:
    result = simulate(seed, dimensions)
    print(f"seed {seed}: {result.nodes} nodes, {result.operations} operations")
    for line in (*result.story, *(f"WRONG  {problem}" for problem in result.problems)):
        print(f"  {line}")
    return 1 if result.problems else 0


def play_many(seeds: range, dimensions: Dimensions, jobs: int | None, *, until_wrong: bool) -> int:
    started, sums, wrong = time.monotonic(), Counter[str](), 0  # noqa: TID251 - progress for people
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(play_chunk, chunk, dimensions) for chunk in chunks]):
            for seed, counts, problems in done.result():
                sums.update(dict(zip(("nodes", "runs", "operations"), counts, strict=True)), seeds=1)
                wrong += bool(problems)
                if problems and wrong <= MAX_SHOWN:
                    print(f"\nmake sim SEED={seed}\n  {problems[0][:MAX_TEXT]}", flush=True)
            seconds = time.monotonic() - started  # noqa: TID251
            print(f"\r{sums['seeds']} of {len(seeds)} seeds, {wrong} wrong, {seconds:.0f} s", end="", flush=True)
            if wrong and until_wrong:
                pool.shutdown(cancel_futures=True)
                break
    counts_text = ", ".join(f"{sums[name]} {name}" for name in ("seeds", "nodes", "runs", "operations"))
    rate = sums["seeds"] / max(0.001, time.monotonic() - started)  # noqa: TID251
    print(f"\n{counts_text}; {rate:.1f} seeds per second; {wrong} seeds broke an invariant")
    return 1 if wrong else 0


def digest(seed: int, dimensions: Dimensions) -> str:
    return f"{seed} {hashlib.sha256(simulate(seed, dimensions).journal).hexdigest()}"


def print_digests(seeds: range, dimensions: Dimensions, jobs: int | None) -> int:
    with ProcessPoolExecutor(jobs) as pool:
        for line in pool.map(partial(digest, dimensions=dimensions), seeds, chunksize=CHUNK):
            print(line)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", action="append", choices=["basis", *DIMENSIONS])
    parser.add_argument("--until-wrong", action="store_true")
    parser.add_argument("--digests", action="store_true")
    options = parser.parse_args()
    dimensions = frozenset(options.only) if options.only else None
    seeds = range(options.first, options.first + options.seeds)
    if options.digests:
        return print_digests(seeds, dimensions, options.jobs)
    if options.seed is not None:
        return print_one(options.seed, dimensions)
    return play_many(seeds, dimensions, options.jobs, until_wrong=options.until_wrong)


if __name__ == "__main__":
    sys.exit(main())
