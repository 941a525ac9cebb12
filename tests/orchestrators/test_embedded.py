"""The embedded orchestrator, with steps that only take time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from tests import builders
from windlass.core.platform.events import NodeFinished, NodeWaiting
from windlass.core.platform.gate_values import Evidence, Failed, Open, Reason
from windlass.core.platform.model.applications import Barrier
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.snapshots import Snapshot
from windlass.core.platform.outcomes import StepResult
from windlass.core.platform.planning import plans
from windlass.errors import WindlassError
from windlass.orchestrators import embedded
from windlass.simulation import virtual_time

if TYPE_CHECKING:
    from windlass.core.platform.events import EmitEvent, Event
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Step

GOOD = Open(Evidence(builders.NOW, Health.HEALTHY))
BAD = Failed(Reason.DEGRADED, "it is Degraded")


@dataclass
class Rehearsal:
    """Each step takes a second, or as many as `seconds` says."""

    platform: Platform
    seconds: dict[str, float] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    breaking: tuple[str, ...] = ()
    stop_at: float = 1e9
    started: dict[str, float] = field(default_factory=dict)
    told: list[Event] = field(default_factory=list)
    waits: dict[str, str] = field(default_factory=dict)

    async def carry_out(self, step: Step, emit: EmitEvent) -> StepResult:
        if step.name in self.waits:
            emit(NodeWaiting(step.name, "Progressing", self.waits[step.name]))
        self.started[step.name] = asyncio.get_running_loop().time()
        await asyncio.sleep(self.seconds.get(step.name, 1.0))  # noqa: TID251 - of the loop that jumps
        if step.name in self.breaking:
            raise WindlassError("the lock is lost")
        return StepResult(BAD if step.name in self.failing else GOOD)

    def outcomes(self) -> dict[str, Outcome]:
        async def main() -> tuple[Outcome, ...]:
            stop, clock = asyncio.Event(), virtual_time.virtual_clock()
            asyncio.get_running_loop().call_later(self.stop_at, stop.set)
            how = (clock.now, self.told.append, stop, lambda _: stop.set())
            conduct = embedded.RunHooks(self.carry_out, *how)
            plan = plans.plan_deploy(self.platform, Snapshot(builders.NOW), Scope())
            return await embedded.run(plan, self.platform, conduct)

        return {outcome.name: outcome for outcome in virtual_time.run(main())}


def results(found: dict[str, Outcome]) -> dict[str, str]:
    return {name: str(outcome.result) for name, outcome in found.items()}


def test_each_starts_when_the_last_it_waits_for_has_ended() -> None:
    run = Rehearsal(builders.platform("d: b c; b: a; c:"), {"a": 2.0, "c": 5.0})
    assert set(results(run.outcomes()).values()) == {"succeeded"}
    assert run.started == {"a": 0.0, "c": 0.0, "b": 2.0, "d": 5.0}


@pytest.mark.parametrize(("most", "expected"), [(1, [0.0, 1.0, 2.0, 3.0]), (2, [0.0, 0.0, 1.0, 1.0])])
def test_no_more_than_allowed_run_at_once(most: int, expected: list[float]) -> None:
    run = Rehearsal(builders.platform("a: ; b: ; c: ; d:", max_parallel=most))
    run.outcomes()
    assert sorted(run.started.values()) == expected


def test_a_barrier_waits_for_the_whole_wave() -> None:
    run = Rehearsal(builders.platform("b: a; c:", barrier=Barrier.WAVE), {"c": 9.0})
    run.outcomes()
    assert run.started["b"] == 9.0


def test_a_failure_skips_what_depends_on_it_and_nothing_else() -> None:
    run = Rehearsal(builders.platform("e: d; d: a b; c: b; b:"), failing=("a",))
    found = run.outcomes()
    assert results(found) == {"a": "failed", "b": "succeeded", "c": "succeeded", "d": "skipped", "e": "skipped"}
    assert {name: outcome.causes for name, outcome in found.items() if outcome.causes} == {"d": ("a",), "e": ("a",)}
    assert not {"d", "e"} & run.started.keys()


def test_two_causes_are_both_named() -> None:
    found = Rehearsal(builders.platform("c: a b"), failing=("a", "b")).outcomes()
    assert found["c"].causes == ("a", "b")


def test_a_stop_ends_it_at_once() -> None:
    run = Rehearsal(builders.platform("c: b; b: a"), {"b": 100.0}, stop_at=5.0)
    found = run.outcomes()
    assert results(found) == {"a": "succeeded", "b": "interrupted", "c": "not started"}
    assert found["b"].duration == builders.seconds(4.0)
    assert found["b"].decision == Failed(Reason.INTERRUPTED, "it was in progress when the run ended")


def test_what_was_under_way_tells_what_it_was_waiting_for() -> None:
    run = Rehearsal(builders.platform("a:"), {"a": 100.0}, stop_at=5.0, waits={"a": "it is Progressing"})
    judgement = Failed(Reason.INTERRUPTED, "when the run ended it was waiting: it is Progressing")
    assert run.outcomes()["a"].decision == judgement


def test_what_ends_is_told_once() -> None:
    run = Rehearsal(builders.platform("c: b; b: a; d:"), failing=("b",))
    run.outcomes()
    names = [event.outcome.name for event in run.told if isinstance(event, NodeFinished)]
    assert sorted(names) == ["a", "b", "c", "d"]


def test_an_empty_plan_is_over_at_once() -> None:
    assert Rehearsal(replace(builders.platform("a:"), managed_nodes=frozenset())).outcomes() == {}


def test_a_step_that_cannot_go_on_stops_the_run_and_there_is_a_report() -> None:
    run = Rehearsal(builders.platform("c: a b; a; b"), seconds={"b": 5}, breaking=("a",))
    assert results(run.outcomes()) == {"a": "interrupted", "b": "interrupted", "c": "not started"}
