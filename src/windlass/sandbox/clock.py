"""Time and chance as values: the only way either enters the sandbox, so that one seed gives one history."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the one place where randomness comes in
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
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
        return told(self.now())

    def uid(self) -> str:
        return str(UUID(int=self.chance.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self.chance.choice(SUFFIX_LETTERS) for _ in range(5))

    async def wait(self, event: asyncio.Event, moments: list[datetime]) -> None:
        """Until it happens; it does when the first of these moments has come. Without any, no timer is set."""
        left = [(moment - self.now()).total_seconds() / self.speed for moment in moments]
        timer = asyncio.get_running_loop().call_later(min(left), event.set) if left else None
        try:
            await event.wait()
        finally:
            if timer:
                timer.cancel()


@lru_cache(maxsize=64)
def told(moment: datetime) -> str:
    """A moment as objects show it; most are told many times."""
    return moment.isoformat()[:19] + "Z"


def real(speed: float = 1.0, seed: int | None = None) -> Sources:
    """The wall clock and real chance, or seeded chance; with a speed, a clock that runs away from the wall's."""

    def wall() -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the one place where the wall clock comes in

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / speed)  # noqa: TID251 - likewise

    began = wall()
    return Sources(lambda: began + (wall() - began) * speed, sleep, random.Random(seed), speed)  # noqa: S311 - no secrets
