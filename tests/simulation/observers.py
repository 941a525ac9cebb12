"""Commands that only read, beside and between runs: what they say is true, and they write nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from tests.simulation.scenarios import ENVIRONMENT, Act
from windlass.core.platform.gate_values import Open
from windlass.core.platform.model.applications import ApplicationRef
from windlass.errors import WindlassError
from windlass.operations import plan
from windlass.operations.validate import ValidateRequest, validate_with_timeout
from windlass.operations.wait import WaitRequest, wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from tests.simulation.play import Play
    from tests.simulation.scenarios import Event


R = TypeVar("R")


class Observers:
    """Each kind of command is one method, called with the event that starts it."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._count = 0

    async def validate(self, event: Event) -> None:
        """`validate` of the whole platform: exit code 0 only if all of it is healthy, at whatever commit."""
        agent = self._next_agent("validate")
        request = ValidateRequest(ENVIRONMENT, self._play.scenario.platform)
        work = validate_with_timeout(event.seconds, self._play.cluster(agent), request)
        report = await self._observe(agent, work)
        if report is not None and report.summary.exit_code == 0:
            self._judge_healthy(agent, self._play.scenario.platform.applications)

    async def wait(self, event: Event) -> None:
        """`wait` for one application: it ends with success only if that is healthy."""
        agent = self._next_agent("wait")
        request = WaitRequest(ApplicationRef(event.target), timeout=timedelta(seconds=event.seconds))
        decision = await self._observe(agent, wait(self._play.cluster(agent), request, lambda _: None))
        if isinstance(decision, Open):
            self._judge_healthy(agent, [event.target])

    async def plan(self, _: Event) -> None:
        agent = self._next_agent("plan")
        request = replace(self._play.request(Act()), scope=Act().scope)
        await self._observe(agent, plan.plan(self._play.cluster(agent), request))

    def _next_agent(self, command: str) -> str:
        self._count += 1
        return f"{command}-{self._count}"

    async def _observe(self, agent: str, work: Awaitable[R]) -> R | None:
        note = self._play.witness.problems.append
        try:
            return await work
        except WindlassError:  # the cluster cannot be read, or the request is refused
            return None
        except Exception as error:  # noqa: BLE001 - a finding like any other
            note(f"{agent} ended with {error!r}")
            return None
        finally:
            written = [entry for entry in self._play.journal.entries if entry.agent == agent and entry.is_write]
            if written:
                note(f"{agent} wrote to {written[0].kind} {written[0].name}")

    def _judge_healthy(self, agent: str, nodes: Iterable[str]) -> None:
        witness = self._play.witness
        for name in nodes:
            why = witness.why_not_ready(name, range(len(witness.commits)))
            if why and not witness.is_recent(name) and not witness.is_moving(name):
                witness.problems.append(f"{agent} says that {name} is healthy: {why}")
