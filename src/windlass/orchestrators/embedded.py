"""Orchestrator that runs a plan in this process and starts each step once its dependencies have succeeded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.core.platform.events import NodeEnded
from windlass.core.platform.gates import Failed, Open, Reason
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import schedules
from windlass.core.platform.planning.schedules import Limits, Schedule
from windlass.errors import WindlassError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from windlass.core.platform.events import Tell
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.outcomes import Ended
    from windlass.core.platform.planning.plans import Plan, Step


@dataclass(frozen=True, slots=True)
class Conduct:
    """Callbacks and signals of a run. Once `stop` is set, no step starts and running steps are cancelled.

    `on_error` receives an error that is not the platform's and prevents a step from continuing; it must stop the run.
    """

    carry_out: Callable[[Step], Awaitable[Ended]]
    now: Callable[[], datetime]
    tell: Tell
    stop: asyncio.Event
    broke: Callable[[WindlassError], None]
    waits: Mapping[str, str] = field(default_factory=dict)
    """What each running step is waiting for, as text."""


async def run(plan: Plan, platform: Platform, conduct: Conduct) -> tuple[Outcome, ...]:
    """Run the plan; return the outcome of every step in plan order."""
    running = _Run(plan, platform, conduct)
    await running.to_the_end()
    failed = [outcome.name for outcome in running.outcomes.values() if outcome.result is Result.FAILED]
    causes = schedules.causes(plan.graph, failed)
    found = (running.outcomes.get(step.name) or Outcome(step.name, Result.NOT_STARTED) for step in plan.steps)
    return tuple(replace(each, causes=causes[each.name]) if each.result is Result.SKIPPED else each for each in found)


class _Run:
    def __init__(self, plan: Plan, platform: Platform, conduct: Conduct) -> None:
        self._graph = plan.graph
        self._steps = {step.name: step for step in plan.steps}
        self._conduct = conduct
        limits = Limits(platform.max_parallel, platform.barrier)
        self._schedule = Schedule(plan.graph, platform.expected, limits)
        self._started: dict[str, datetime] = {}
        self._ended: asyncio.Queue[tuple[str, Ended] | None] = asyncio.Queue()
        self.outcomes: dict[str, Outcome] = {}

    async def to_the_end(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._wait_for_stop(), name="stop")
            under_way = []
            while not self._conduct.stop.is_set():
                for name in self._schedule.start():
                    self._started[name] = self._conduct.now()
                    under_way.append(tasks.create_task(self._carry_out(name), name=name))
                if self._schedule.is_over:
                    break
                if (ended := await self._ended.get()) is not None:
                    self._note(*ended)
            for task in (watching, *under_way):
                task.cancel()
        for name in sorted(self._schedule.running):
            judgement = Failed(Reason.INTERRUPTED, self._under_way(name))
            self._tell(Outcome(name, Result.INTERRUPTED, judgement, (), self._started[name], self._conduct.now()))

    def _under_way(self, name: str) -> str:
        waits = self._conduct.waits.get(name)
        return f"when the run ended it was waiting: {waits}" if waits else "it was under way when the run ended"

    async def _wait_for_stop(self) -> None:
        await self._conduct.stop.wait()
        self._ended.put_nowait(None)

    async def _carry_out(self, name: str) -> None:
        try:
            self._ended.put_nowait((name, await self._conduct.carry_out(self._steps[name])))
        except WindlassError as error:
            self._conduct.broke(error)

    def _note(self, name: str, ended: Ended) -> None:
        result = Result.SUCCEEDED if isinstance(ended.judgement, Open) else Result.FAILED
        started, now = self._started[name], self._conduct.now()
        self._tell(Outcome(name, result, ended.judgement, (), started, now, ended.attempts))
        if result is Result.SUCCEEDED:
            self._schedule.succeed(name)
            return
        for skipped in self._schedule.fail(name):
            self._tell(Outcome(skipped, Result.SKIPPED, causes=(name,)))

    def _tell(self, outcome: Outcome) -> None:
        self.outcomes[outcome.name] = outcome
        self._conduct.tell(NodeEnded(outcome))
