"""Orchestrator that runs a plan in this process and starts each step once its dependencies have succeeded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.core.log_lines import LogLine
from windlass.core.platform.events import NodeFinished, NodeWaiting
from windlass.core.platform.gate_values import Failed, Open, Reason
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import schedules
from windlass.core.platform.planning.plans import Verb
from windlass.core.platform.planning.schedules import Schedule, ScheduleLimits
from windlass.errors import WindlassError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from windlass.core.platform.events import EmitEvent, Event
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.outcomes import StepResult
    from windlass.core.platform.planning.plans import Plan, Step


@dataclass(frozen=True, slots=True)
class RunHooks:
    """Callbacks and signals of a run. Once `stop` is set, no step starts and running steps are cancelled.

    `on_error` receives an error that is not the platform's and prevents a step from continuing; it must stop the run.
    """

    execute: Callable[[Step, EmitEvent], Awaitable[StepResult]]
    """Runs a step to its end and emits its events."""
    now: Callable[[], datetime]
    emit: EmitEvent
    stop: asyncio.Event
    on_error: Callable[[WindlassError], None]


async def run(plan: Plan, platform: Platform, hooks: RunHooks) -> tuple[Outcome, ...]:
    """Run the plan; return the outcome of every step in plan order, and of the rechecks that did not succeed.

    A recheck that was skipped is left out: nothing was to be done to its node, which is unchanged.
    """
    plan_run = _PlanRun(plan, platform, hooks)
    await plan_run.run()
    ended = [each for each in plan_run.outcomes.values() if each.is_failed or each.is_blocked]
    causes = schedules.skip_causes(plan.graph, {each.name: each.causes or (each.name,) for each in ended})
    outcomes = [plan_run.outcomes.get(step.name) or Outcome(step.name, Result.NOT_STARTED) for step in plan.steps]
    rechecked = (plan_run.outcomes[step.name] for step in plan.rechecks if step.name in plan_run.outcomes)
    outcomes += [each for each in rechecked if each.result in {Result.FAILED, Result.INTERRUPTED}]
    return tuple(
        replace(each, causes=causes.get(each.name, each.causes)) if each.result is Result.SKIPPED else each
        for each in outcomes
    )


class _PlanRun:
    def __init__(self, plan: Plan, platform: Platform, hooks: RunHooks) -> None:
        self._steps = {step.name: step for step in (*plan.steps, *plan.rechecks)}
        self._hooks = hooks
        limits = ScheduleLimits(platform.max_parallel, platform.barrier)
        self._schedule = Schedule(plan.graph, platform.expected_durations, limits)
        self._started: dict[str, datetime] = {}
        self._finished_steps: asyncio.Queue[tuple[str, StepResult] | None] = asyncio.Queue()
        self._waiting_for: dict[str, str] = {}
        """What each step is waiting for, as it last reported."""
        self.outcomes: dict[str, Outcome] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            stop_task = tasks.create_task(self._wait_for_stop(), name="stop")
            step_tasks = []
            while not self._hooks.stop.is_set():
                for name in self._schedule.start():
                    self._started[name] = self._hooks.now()
                    step_tasks.append(tasks.create_task(self._execute(name), name=name))
                if self._schedule.is_finished:
                    break
                if (finished := await self._finished_steps.get()) is not None:
                    self._record_result(*finished)
            for task in (stop_task, *step_tasks):
                task.cancel()
        for name in sorted(self._schedule.running):
            decision = Failed(Reason.INTERRUPTED, self._interruption_detail(name))
            self._record_outcome(
                Outcome(name, Result.INTERRUPTED, decision, (), self._started[name], self._hooks.now())
            )

    def _interruption_detail(self, name: str) -> str:
        waiting_for = self._waiting_for.get(name)
        return (
            f"when the run ended it was waiting: {waiting_for}"
            if waiting_for
            else "it was in progress when the run ended"
        )

    async def _wait_for_stop(self) -> None:
        await self._hooks.stop.wait()
        self._finished_steps.put_nowait(None)

    async def _execute(self, name: str) -> None:
        try:
            self._finished_steps.put_nowait((name, await self._hooks.execute(self._steps[name], self._emit)))
        except WindlassError as error:
            self._hooks.on_error(error)

    def _emit(self, event: Event) -> None:
        if isinstance(event, NodeWaiting):
            self._waiting_for[event.name] = event.detail
        elif isinstance(event, LogLine) and event.component:
            self._waiting_for[event.component] = event.message
        self._hooks.emit(event)

    def _record_result(self, name: str, ended: StepResult) -> None:
        started, now = self._started[name], self._hooks.now()
        if isinstance(ended.decision, Open):
            result = Result.UNCHANGED if self._steps[name].verb is Verb.RECHECK else Result.SUCCEEDED
            self._record_outcome(Outcome(name, result, ended.decision, (), started, now, ended.attempts))
            self._schedule.succeed(name)
            return
        causes = ended.decision.causes
        result = Result.SKIPPED if ended.decision.blocked_by else Result.FAILED
        self._record_outcome(Outcome(name, result, ended.decision, causes, started, now, ended.attempts))
        for skipped in self._schedule.fail(name):
            self._record_outcome(Outcome(skipped, Result.SKIPPED, causes=causes or (name,)))

    def _record_outcome(self, outcome: Outcome) -> None:
        self.outcomes[outcome.name] = outcome
        self._hooks.emit(NodeFinished(outcome))
