"""Time and chance as values: the only way either enters the sandbox, so that one seed gives one history."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the one place where randomness comes in
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so that a generated name spells nothing


@dataclass(frozen=True, slots=True)
class Sources:
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]
    chance: random.Random
    speed: float = 1.0
    """How many of the sandbox's seconds pass in one of the event loop's."""

    def timestamp(self) -> str:
        return self.now().isoformat()[:19] + "Z"

    def uid(self) -> str:
        return str(UUID(int=self.chance.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self.chance.choice(SUFFIX_LETTERS) for _ in range(5))

    def timeout(self, seconds: float) -> asyncio.Timeout:
        return asyncio.timeout(seconds / self.speed)


def real(speed: float = 1.0, seed: int | None = None) -> Sources:
    """The wall clock and real chance, or seeded chance; with a speed, a clock that runs away from the wall's."""

    def wall() -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the one place where the wall clock comes in

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / speed)  # noqa: TID251 - likewise

    began = wall()
    return Sources(lambda: began + (wall() - began) * speed, sleep, random.Random(seed), speed)  # noqa: S311 - no secrets
