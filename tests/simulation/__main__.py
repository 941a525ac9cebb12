"""`python -m tests.simulation 1234` plays one seed and tells its story; `--seeds 10000` plays many, on all cores.

`--digests` prints the SHA-256 of each seed's request journal instead: a change that must not alter behaviour leaves
them all as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING

from tests.simulation.play import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_ONCE = 25  # seeds that one process plays before it tells of them
SHOWN = 20  # failing seeds that are told of one by one


def played(seed: int) -> tuple[int, tuple[int, int, int], tuple[str, ...]]:
    """(seed, (nodes, runs, operations), what was wrong)."""
    try:
        told = simulate(seed)
    except Exception as error:  # noqa: BLE001 - a seed that breaks is a finding like any other
        return seed, (0, 0, 0), (f"{type(error).__name__}: {error}",)
    return seed, (told.nodes, told.runs, told.operations), told.problems


def several(seeds: Sequence[int]) -> list[tuple[int, tuple[int, int, int], tuple[str, ...]]]:
    return [played(seed) for seed in seeds]


def one(seed: int) -> int:
    told = simulate(seed)
    print(f"seed {seed}: {told.nodes} nodes, {told.operations} operations")
    for line in (*told.story, *(f"WRONG  {problem}" for problem in told.problems)):
        print(f"  {line}")
    return 1 if told.problems else 0


def many(first: int, count: int, jobs: int | None) -> int:
    began, sums, wrong = time.monotonic(), Counter[str](), 0  # noqa: TID251 - progress for people
    chunks = [range(first + at, first + min(at + AT_ONCE, count)) for at in range(0, count, AT_ONCE)]
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(several, chunk) for chunk in chunks]):
            for seed, counts, problems in done.result():
                sums.update(dict(zip(("nodes", "runs", "operations"), counts, strict=True)), seeds=1)
                if problems:
                    wrong += 1
                    if wrong <= SHOWN:
                        print(f"\nmake sim SEED={seed}\n  {problems[0]}", flush=True)
            seconds = time.monotonic() - began  # noqa: TID251
            print(f"\r{sums['seeds']} of {count} seeds, {wrong} wrong, {seconds:.0f} s", end="", flush=True)
    told = ", ".join(f"{sums[name]} {name}" for name in ("seeds", "nodes", "runs", "operations"))
    print(f"\n{told}; {wrong} seeds broke an invariant")
    return 1 if wrong else 0


def digest(seed: int) -> str:
    return f"{seed} {hashlib.sha256(simulate(seed).journal).hexdigest()}"


def print_digests(seeds: range, jobs: int | None) -> int:
    with ProcessPoolExecutor(jobs) as pool:
        for line in pool.map(digest, seeds, chunksize=AT_ONCE):
            print(line)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--digests", action="store_true")
    given = parser.parse_args()
    if given.digests:
        return print_digests(range(given.first, given.first + given.seeds), given.jobs)
    return one(given.seed) if given.seed is not None else many(given.first, given.seeds, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
