"""What deploy and teardown share: one watch, one lock, phases, notices, and a report however the run ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_writer import ApplicationWriter
from windlass.core.platform.events import Level, Notice, PhaseStarted, PlanReady, RunPhase
from windlass.core.platform.model import scopes
from windlass.core.platform.reporting import reports
from windlass.operations.run import run_lock
from windlass.operations.run.applications_watch import LiveApplications
from windlass.operations.run.context import Stopped, unwrap_exception_groups
from windlass.operations.run.run_lock import LockClaim, RunLock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report, RunRecord
    from windlass.operations.run.context import RunContext, RunRequest


class RunLifecycle(ABC):
    """One run, from the first observation to the report; subclasses implement `execute`."""

    def __init__(self, context: RunContext, run_request: RunRequest, platform: Platform) -> None:
        self.context = context
        self.control = context.control
        self.run_request = run_request
        self.platform = platform
        """Includes dependencies from annotations once these were read."""
        self.started = context.now()
        self.writer = ApplicationWriter(context.client)
        self.live = LiveApplications(context, platform, self.writer)
        self.lock = RunLock(context.client, LockClaim(context.run_id, context.argocd_namespace, context.now))
        self.last_plan: tuple[Plan, Snapshot] | None = None
        self.notices: list[str] = []

    async def run(self) -> Report:
        try:
            with unwrap_exception_groups():
                async with self.live.watch(), self.control.stop_after(self.context.timeout):
                    report = await self.execute()
        except Stopped:
            report = self._not_started_report()
        stop_reasons = [self.control.stop_reason] if self.control.stop_reason else []
        return replace(report, notices=(*report.notices, *self.notices, *stop_reasons))

    @abstractmethod
    async def execute(self) -> Report:
        """Run to the end; raise `Stopped` if the run must end before it changed anything."""

    def _not_started_report(self) -> Report:
        if self.last_plan is None:
            return reports.unobserved_report(
                self.run_record(), self.platform, scopes.selected_nodes(self.platform, self.run_request.scope)
            )
        return reports.plan_report(self.run_record(), self.platform, *self.last_plan)

    def announce_plan(self, plan: Plan, snapshot: Snapshot) -> tuple[Plan, Snapshot]:
        """Record and announce the plan, as far as it is known now."""
        self.last_plan = plan, snapshot
        self.control.emit(PlanReady(plan))
        return plan, snapshot

    @asynccontextmanager
    async def acquire_lock(self) -> AsyncIterator[None]:
        self.start_phase(RunPhase.LOCK)
        async with run_lock.acquire_lock(self.lock, self.control):
            self.writer.check_write_allowed = self.lock.check
            yield

    def run_record(self) -> RunRecord:
        return self.context.run_record(self.run_request, self.started, refreshes=self.writer.refresh_count)

    def start_phase(self, phase: RunPhase) -> None:
        self.control.emit(PhaseStarted(phase))

    def add_notice(self, message: str, level: Level = Level.INFO) -> None:
        """Emit the message now and add it to the report."""
        self.notices.append(message)
        self.control.emit(Notice(level, message))
