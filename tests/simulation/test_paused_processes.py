"""A paused process does nothing, and then goes on as if no time had passed for it; other processes go on."""

from __future__ import annotations

import asyncio

from tests.simulation.paused_processes import Pause, process_context
from windlass.simulation import virtual_time

PAUSE = Pause(2.5, 10.25)


async def tick(ticks: list[float]) -> None:
    while True:
        await asyncio.sleep(1.0)  # noqa: TID251 - virtual time
        ticks.append(asyncio.get_running_loop().time())


def test_only_the_paused_process_stands_still() -> None:
    async def main() -> None:
        paused: list[float] = []
        beside: list[float] = []
        async with asyncio.TaskGroup() as tasks:
            ticking = [
                tasks.create_task(tick(paused), context=process_context(PAUSE)),
                tasks.create_task(tick(beside), context=process_context(None)),
            ]
            await asyncio.sleep(12.0)  # noqa: TID251
            for task in ticking:
                task.cancel()
        assert paused == [1.0, 2.0, 10.25, 11.25]
        assert beside == [float(second) for second in range(1, 12)]

    virtual_time.run(main())


def test_a_timeout_during_the_pause_is_noticed_after_it() -> None:
    async def wait() -> float:
        try:
            async with asyncio.timeout(5.0):
                await asyncio.Event().wait()
        except TimeoutError:
            return asyncio.get_running_loop().time()
        return 0.0

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            assert await tasks.create_task(wait(), context=process_context(PAUSE)) == PAUSE.end

    virtual_time.run(main())
