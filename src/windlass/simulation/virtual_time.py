"""An event loop with virtual time: its clock jumps to the next timer, so that hours take milliseconds."""

from __future__ import annotations

import asyncio
import gc
import random  # noqa: TID251 - seeded, passed on as a value
import selectors
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.errors import WindlassError
from windlass.kube.clocks import Clock
from windlass.sandbox.clock import Sources

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

R = TypeVar("R")
LONGEST = 30 * 86_400.0  # virtual seconds; a limit is needed because watches reconnect for ever
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class Deadlock(WindlassError):
    """The run can never finish: no timer is set, or the limit of virtual time has passed."""


class _JumpingSelector(selectors.DefaultSelector):
    now = 0.0

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = limit
        self.waiting: Callable[[], list[str]] = list

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            names = ", ".join(self.waiting())
            raise Deadlock(f"no timer is set and nothing is ready; waiting: {names or 'nobody'}")
        if not timeout:
            return []  # a callback is ready, and there are no sockets to poll
        self.now += max(0.0, timeout)
        if self.now > self._limit:
            limit, self._limit = self._limit, float("inf")  # raised once, so that cancelled tasks can clean up
            raise Deadlock(f"not done after {limit:g} s of virtual time; waiting: {', '.join(self.waiting())}")
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self, limit: float = LONGEST) -> None:
        self._jumping = _JumpingSelector(limit)
        super().__init__(self._jumping)
        self._jumping.waiting = self._waiting

    def time(self) -> float:
        return self._jumping.now

    def _waiting(self) -> list[str]:
        """All tasks with the function each waits in, sorted."""
        found = []
        for task in asyncio.all_tasks(self):
            frames = task.get_stack(limit=1)
            where = f" in {frames[-1].f_code.co_qualname}" if frames else ""
            found.append(f"{task.get_name()}{where}")
        return sorted(found)


def _moments() -> Callable[[], datetime]:
    """The time of the running loop as datetimes. The last one is cached, because most are requested many times."""
    time = asyncio.get_running_loop().time
    last = (0.0, EPOCH)

    def now() -> datetime:
        nonlocal last
        if last[0] != (seconds := time()):
            last = (seconds, EPOCH + timedelta(seconds=seconds))
        return last[1]

    return now


def virtual_clock(chance: Callable[[], float] = lambda: 0.5) -> Clock:
    """A clock for the client, on the time of the running loop; by default without randomness."""
    return Clock(now=_moments(), monotonic=asyncio.get_running_loop().time, random=chance)


def virtual_sources(seed: int = 0) -> Sources:
    """Time and randomness for the sandbox, on the time of the running loop."""
    return Sources(
        now=_moments(),
        sleep=asyncio.sleep,  # noqa: TID251 - uses the virtual time of the loop
        chance=random.Random(seed),  # noqa: S311 - must be reproducible
    )


def run(main: Coroutine[Any, Any, R], *, limit: float = LONGEST) -> R:
    """Run a coroutine in virtual time. Raises Deadlock if it can never finish or takes more than `limit` seconds."""
    rarely, usual = (500_000, 50, 100), gc.get_threshold()
    gc.set_threshold(*rarely)  # with the default thresholds it takes an eighth of the run time
    try:
        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(limit)) as runner:
            return runner.run(main)
    finally:
        gc.set_threshold(*usual)
