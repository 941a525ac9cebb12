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
from windlass.sandbox.clock import SandboxClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

R = TypeVar("R")
MAX_VIRTUAL_SECONDS = 30 * 86_400.0  # virtual seconds; a limit is needed because watches reconnect for ever
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class Deadlock(WindlassError):
    """The run can never finish: no timer is set, or the limit of virtual time has passed."""


class _JumpingSelector(selectors.DefaultSelector):
    now = 0.0

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = limit
        self.waiting_tasks: Callable[[], list[str]] = list

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            names = ", ".join(self.waiting_tasks())
            raise Deadlock(f"no timer is set and nothing is ready; waiting: {names or 'none'}")
        if not timeout:
            return []  # a callback is ready, and there are no sockets to poll
        self.now += max(0.0, timeout)
        if self.now > self._limit:
            limit, self._limit = self._limit, float("inf")  # raised once, so that cancelled tasks can clean up
            raise Deadlock(f"not done after {limit:g} s of virtual time; waiting: {', '.join(self.waiting_tasks())}")
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self, limit: float = MAX_VIRTUAL_SECONDS) -> None:
        self._jumping_selector = _JumpingSelector(limit)
        super().__init__(self._jumping_selector)
        self._jumping_selector.waiting_tasks = self._waiting_tasks

    def time(self) -> float:
        return self._jumping_selector.now

    def _waiting_tasks(self) -> list[str]:
        """All tasks with the function each waits in, sorted."""
        descriptions = []
        for task in asyncio.all_tasks(self):
            frames = task.get_stack(limit=1)
            where = f" in {frames[-1].f_code.co_qualname}" if frames else ""
            descriptions.append(f"{task.get_name()}{where}")
        return sorted(descriptions)


def _loop_clock() -> Callable[[], datetime]:
    """The time of the running loop as datetimes. The last one is cached, because most are requested many times."""
    time = asyncio.get_running_loop().time
    last = (0.0, EPOCH)

    def now() -> datetime:
        nonlocal last
        if last[0] != (seconds := time()):
            last = (seconds, EPOCH + timedelta(seconds=seconds))
        return last[1]

    return now


def virtual_clock(random_source: Callable[[], float] = lambda: 0.5) -> Clock:
    """A clock for the client, on the time of the running loop; by default without randomness."""
    return Clock(now=_loop_clock(), monotonic=asyncio.get_running_loop().time, random=random_source)


def virtual_sandbox_clock(seed: int = 0) -> SandboxClock:
    """Time and randomness for the sandbox, on the time of the running loop."""
    rng = random.Random(seed)  # noqa: S311 - must be reproducible
    return SandboxClock(
        now=_loop_clock(),
        sleep=asyncio.sleep,  # noqa: TID251 - uses the virtual time of the loop
        rng=rng,
        random_bytes=rng.randbytes,
    )


def run(main: Coroutine[Any, Any, R], *, limit: float = MAX_VIRTUAL_SECONDS) -> R:
    """Run a coroutine in virtual time. Raises Deadlock if it can never finish or takes more than `limit` seconds."""
    rare_thresholds, default_thresholds = (500_000, 50, 100), gc.get_threshold()
    gc.set_threshold(*rare_thresholds)  # with the default thresholds it takes an eighth of the run time
    try:
        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(limit)) as runner:
            return runner.run(main)
    finally:
        gc.set_threshold(*default_thresholds)
