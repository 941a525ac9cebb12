"""An event loop whose clock jumps to the next timer instead of waiting for it: hours of retries in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.kube.clocks import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

R = TypeVar("R")
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class _JumpingSelector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: no timer is set and nothing is ready")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def virtual_clock(random: Callable[[], float] = lambda: 0.5) -> Clock:
    """A clock that follows the running loop's time; by default without chance."""
    time = asyncio.get_running_loop().time
    return Clock(now=lambda: EPOCH + timedelta(seconds=time()), monotonic=time, random=random)


def run(main: Coroutine[Any, Any, R]) -> R:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
