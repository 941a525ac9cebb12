from __future__ import annotations

import asyncio

import pytest

from windlass.simulation.virtual_time import EPOCH, Deadlock, run, virtual_clock, virtual_sandbox_clock


def test_an_hour_passes_at_once() -> None:
    async def main() -> float:
        clock = virtual_clock()
        await clock.sleep(3600)
        return (clock.now() - EPOCH).total_seconds()

    assert run(main()) == 3600


def test_nothing_to_wait_for_is_an_error_that_names_who_waits() -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(wait_for_ever(), name="the patient one")

    with pytest.raises(Deadlock, match=r"the patient one in .*wait_for_ever"):
        run(main())


def test_chance_comes_from_the_seed() -> None:
    async def uids(seed: int) -> list[str]:
        sources = virtual_sandbox_clock(seed)
        return [sources.uid(), sources.name_suffix()]

    assert run(uids(1)) == run(uids(1)) != run(uids(2))


def test_a_run_that_only_renews_itself_ends_at_its_limit() -> None:
    async def main() -> None:
        while True:
            await virtual_clock().sleep(60)

    with pytest.raises(Deadlock, match="not done after 3600 s"):
        run(main(), limit=3600)
