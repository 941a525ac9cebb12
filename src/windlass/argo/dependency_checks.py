"""Rechecks when a step starts: whether the dependencies of a node, or an unchanged node itself, are healthy now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.core.platform import gates, rechecks
from windlass.core.platform.gate_values import Failed, Open, Reason, Wait
from windlass.core.platform.rechecks import Recheck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
    from datetime import datetime

    from windlass.core.platform.gate_values import RefreshNeeded
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import NodeState
    from windlass.kube.clocks import Clock

    ReportWait = Callable[[Wait | RefreshNeeded], None]

RECHECK_INTERVAL = 1.0  # seconds until the next look at a node that is not healthy


@dataclass(frozen=True, slots=True)
class DependencyChecks:
    platform: Platform
    run_id: str
    opened: dict[str, NodeState]
    """The state on which the gate of a node opened; for an unchanged node, that of the plan."""
    read_states: Callable[[Collection[str]], Awaitable[Mapping[str, NodeState | None]]]
    """The states of nodes now, by the assessment that opens gates."""
    clock: Clock
    now: Callable[[], datetime]

    async def ready_nodes(self, names: Collection[str]) -> frozenset[str]:
        """Those of these nodes whose dependencies are all healthy, by one read of all dependencies."""
        needed = {name: self.platform.graph.dependencies[name] for name in names}
        checked = self._start(sorted({dependency for each in needed.values() for dependency in each}))
        closed = rechecks.closed_gates(await self._observe(checked))
        return frozenset(name for name, dependencies in needed.items() if closed.keys().isdisjoint(dependencies))

    async def await_dependencies(self, name: str, report_wait: ReportWait) -> Failed | None:
        """Wait until every dependency is healthy; failure if one is not within its own timeouts."""
        checked = self._start(self.platform.graph.dependencies[name])
        while closed := rechecks.closed_gates(checked := await self._observe(checked)):
            failed = {dependency: each for dependency, each in closed.items() if isinstance(each, Failed)}
            detail = "; ".join(f"{dependency}: {each.detail}" for dependency, each in (failed or closed).items())
            if failed:
                detail = f"not healthy when {name} was to start: {detail}"
                return Failed(Reason.DEPENDENCY_UNHEALTHY, detail, is_final=True, blocked_by=tuple(failed))
            report_wait(Wait(Reason.DEPENDENCY_UNHEALTHY, f"it depends on {detail}"))
            await self.clock.sleep(RECHECK_INTERVAL)
        return None

    async def recheck(self, name: str, report_wait: ReportWait) -> Open | Failed:
        """Wait until the gate of an unchanged node is open again, after those of its dependencies."""
        if blocked := await self.await_dependencies(name, report_wait):
            return blocked
        checked = self._start([name])
        while True:
            checked = await self._observe(checked)
            state, now = checked[name].state, self.now()
            target = gates.current_target(state, replace(checked[name].timing, stability=timedelta()))
            decision = checked[name].closed or gates.evaluate_gate(target, gates.start_history(state, now), now)
            if isinstance(decision, Open | Failed):
                return decision
            report_wait(decision)
            await self.clock.sleep(RECHECK_INTERVAL)

    def _start(self, names: Iterable[str]) -> dict[str, Recheck]:
        nodes = self.platform.applications
        return {name: Recheck(nodes[name].timing, self.run_id, self.opened.get(name)) for name in names}

    async def _observe(self, checked: Mapping[str, Recheck]) -> dict[str, Recheck]:
        return rechecks.observe_all(checked, await self.read_states(checked), self.now())
