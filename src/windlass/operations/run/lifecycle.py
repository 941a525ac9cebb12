"""What deploy and teardown share: one watch, one lock, phases, notices, and a report however the run ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_writer import Writer
from windlass.core.platform.events import Level, Noticed, PhaseBegan, Planned, RunPhase
from windlass.core.platform.model import scopes
from windlass.core.platform.reporting import reports
from windlass.operations.run import run_lock
from windlass.operations.run.applications_watch import Live
from windlass.operations.run.context import Stopped, unwrapped
from windlass.operations.run.run_lock import Claim, Lock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report, Run
    from windlass.operations.run.context import Access, Asked


class Course(ABC):
    """One run, from the first observation to the report; subclasses implement `execute`."""

    def __init__(self, access: Access, asked: Asked, platform: Platform) -> None:
        self.access = access
        self.control = access.control
        self.asked = asked
        self.platform = platform
        """Includes dependencies from annotations once these were read."""
        self.started = access.now()
        self.writer = Writer(access.client)
        self.live = Live(access, platform, self.writer)
        self.lock = Lock(access.client, Claim(access.run_id, access.argocd, access.now))
        self.planned: tuple[Plan, Snapshot] | None = None
        self.notices: list[str] = []

    async def report(self) -> Report:
        try:
            with unwrapped():
                async with self.live.followed(), self.control.within(self.access.limit):
                    report = await self.carried_through()
        except Stopped:
            report = self._unbegun()
        why = [self.control.why] if self.control.why else []
        return replace(report, notices=(*report.notices, *self.notices, *why))

    @abstractmethod
    async def carried_through(self) -> Report:
        """Run to the end; raise `Stopped` if the run must end before it changed anything."""

    def _unbegun(self) -> Report:
        if self.planned is None:
            return reports.of_nothing(self.run(), self.platform, scopes.selected(self.platform, self.asked.scope))
        return reports.of_plan(self.run(), self.platform, *self.planned)

    def plan(self, plan: Plan, snapshot: Snapshot) -> tuple[Plan, Snapshot]:
        """Record and announce the plan, as far as it is known now."""
        self.planned = plan, snapshot
        self.control.tell(Planned(plan))
        return plan, snapshot

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        self.begin(RunPhase.LOCK)
        async with run_lock.locked(self.lock, self.control):
            self.writer.allow = self.lock.check
            yield

    def run(self) -> Run:
        return self.access.run(self.asked, self.started, refreshes=self.writer.refreshes)

    def begin(self, phase: RunPhase) -> None:
        self.control.tell(PhaseBegan(phase))

    def notice(self, message: str, level: Level = Level.INFO) -> None:
        """Emit the message now and add it to the report."""
        self.notices.append(message)
        self.control.tell(Noticed(level, message))
