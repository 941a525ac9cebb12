"""Time and randomness as injectable values, so that simulations and tests can supply their own."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the only module that may use randomness
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the only function that may read the wall clock


@dataclass(frozen=True, slots=True)
class Clock:
    now: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic  # noqa: TID251 - injected everywhere else
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep  # noqa: TID251 - injected everywhere else
    random: Callable[[], float] = random.random
    """A float in [0, 1). It only adds jitter to retries and watch timeouts; no decision depends on it."""

    def steady_time(self, start: datetime) -> Callable[[], datetime]:
        """The time from `start` on. It follows the monotonic clock: a step of the wall clock does not change it."""
        started = self.monotonic()
        return lambda: start + timedelta(seconds=self.monotonic() - started)
