"""`SandboxClock`: time and randomness of the sandbox.

Nothing else in the sandbox reads the clock or draws random numbers, so the same seed always gives the same history.
"""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the only module of the sandbox that draws random numbers
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so that a generated name is never a word


@dataclass(frozen=True, slots=True)
class SandboxClock:
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]
    rng: random.Random
    speed: float = 1.0
    """Sandbox seconds per second of the event loop."""
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    """For the key that signs tokens: it cannot be guessed, except in a simulation, which only repeats itself."""
    skew: timedelta = timedelta(0)
    """By how much the timestamps of its owner are ahead; durations are not affected."""

    def timestamp(self) -> str:
        return format_timestamp(self.now() + self.skew)

    def uid(self) -> str:
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def name_suffix(self) -> str:
        return "".join(self.rng.choice(SUFFIX_LETTERS) for _ in range(5))

    async def wait(self, event: asyncio.Event, deadlines: list[datetime]) -> None:
        """Wait until the event is set, and set it at the earliest deadline. Without deadlines no timer is started."""
        delays = [(moment - self.now()).total_seconds() / self.speed for moment in deadlines]
        timer = asyncio.get_running_loop().call_later(min(delays), event.set) if delays else None
        try:
            await event.wait()
        finally:
            if timer:
                timer.cancel()


@lru_cache(maxsize=64)
def format_timestamp(moment: datetime) -> str:
    """A time as objects store it (RFC 3339, whole seconds). Cached, because most times are formatted many times."""
    return moment.isoformat()[:19] + "Z"


def real_clock(speed: float = 1.0, seed: int | None = None) -> SandboxClock:
    """A clock that starts at the current wall time and runs `speed` times as fast.

    Random numbers are unpredictable without a seed.
    """

    def wall_time() -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the only place of the sandbox that reads the wall clock

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / speed)  # noqa: TID251 - the only place of the sandbox that really sleeps

    started_at = wall_time()
    return SandboxClock(lambda: started_at + (wall_time() - started_at) * speed, sleep, random.Random(seed), speed)  # noqa: S311 - no secrets
