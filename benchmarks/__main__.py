"""`make bench`: every subject's figures, and docs/benchmarks.md and docs/benchmarks.json written from them."""

from __future__ import annotations

from benchmarks import clients, commands, executors, sandboxes, simulations
from benchmarks.results import write


def main() -> None:
    figures = [
        *clients.figures(),
        *commands.figures(),
        *sandboxes.figures(),
        *simulations.figures(),
        *executors.figures(),
    ]
    write(figures)
    for figure in figures:
        print(f"{figure.name:32} {figure.value:>12,.3f} {figure.unit:3} {figure.target:8} {figure.against}")
    missed = [figure.name for figure in figures if figure.holds is False]
    print(f"missed: {', '.join(missed)}" if missed else "all targets hold")


if __name__ == "__main__":
    main()
