"""What a seed may draw beside its basis: each dimension adds to a scenario from a chance of its own. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random  # noqa: TID251 - seeded, handed on as a value
    from collections.abc import Callable

    from tests.simulation.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class Dimension:
    add: Callable[[random.Random, Scenario], Scenario]
    is_drawn: bool = True
    """Whether it is drawn by default."""


DIMENSIONS: dict[str, Dimension] = {}
