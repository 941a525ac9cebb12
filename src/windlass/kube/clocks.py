"""Time and randomness as values, so that a simulation can bring its own."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - the one place where randomness comes in
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the one place where the wall clock comes in


@dataclass(frozen=True, slots=True)
class Clock:
    now: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic  # noqa: TID251 - likewise
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep  # noqa: TID251 - likewise
    random: Callable[[], float] = random.random
    """From 0 up to 1; spreads retries, never decides anything."""
