"""What deploy and teardown share: one watch, one lock, phases, notices, and a report however the run ends."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_writer import ApplicationWriter
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import PhaseStarted, PlanReady, RunPhase
from windlass.core.platform.identity import identity_mismatch
from windlass.core.platform.model import scopes
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, RunRecord
from windlass.operations.cluster_identity import check_cluster_binding, check_identity, lease_identity, read_identity
from windlass.operations.observation import illegal_row_notices
from windlass.operations.planner import NO_OBJECTS, plan_run
from windlass.operations.run import run_lock
from windlass.operations.run.context import unwrap_exception_groups
from windlass.operations.run.live_applications import LiveApplications
from windlass.operations.run.run_lock import LeaseRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.core.platform.identity import ClusterIdentity
    from windlass.core.platform.model.annotations import AnnotatedPlatform
    from windlass.core.platform.reporting.reports import Report
    from windlass.core.platform.teardown.inventory import PresentObjects
    from windlass.operations.planner import PlannedRun, RunRequest
    from windlass.operations.run.context import RunContext


class Run:
    """A run in progress: its request and context, the Applications it watches, and what it has announced."""

    def __init__(self, context: RunContext, request: RunRequest) -> None:
        self.context = context
        self.request = request
        self.control = context.control
        self.live = LiveApplications(context, request.platform)
        self._started = context.cluster.now()
        self.recorded_identity: ClusterIdentity | None = None
        """What the cluster is recorded as, once `check_identity` has read it."""
        self._planned: PlannedRun | None = None
        self._notices: list[str] = []
        self._dropped: list[str] = []

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Watch the Applications until the context ends, and stop the run after its timeout."""
        with unwrap_exception_groups():
            async with self.live.watch(), self.control.stop_after(self.context.timeout):
                yield

    async def plan(
        self, annotated: AnnotatedPlatform | None = None, objects: PresentObjects = NO_OBJECTS
    ) -> PlannedRun:
        """Plan from the Applications as they are now.

        `annotated`: the platform, if annotations were read before. `objects`: all of the cluster, for a teardown.
        """
        applications = self.live.applications.view
        self._dropped = illegal_row_notices(applications.values())
        return await plan_run(self.context.cluster, self.request, applications, annotated=annotated, objects=objects)

    async def check_identity(self) -> None:
        """Refuse a cluster that is recorded as another one, or not that of the plan, before anything is written.

        If another client deleted the record with the Lease, the root still shows the environment.
        """
        await check_cluster_binding(self.context.cluster, self.request.approved_plan)
        self.recorded_identity = await read_identity(self.context.cluster)
        self._check_record(self.recorded_identity or root_application.root_identity(self.live.root))

    @property
    def changes_identity(self) -> bool:
        """Whether the run takes over a cluster that is recorded as another one."""
        return self.request.takes_over and bool(identity_mismatch(self.recorded_identity, self.request.identity))

    def _check_record(self, recorded: ClusterIdentity | None) -> None:
        if not self.request.takes_over:
            check_identity(recorded, self.request.identity, self.context.cluster.reader.server)

    def announce_plan(self, planned: PlannedRun) -> PlannedRun:
        """Record and emit the plan, as far as it is known now."""
        self._planned = planned
        self.control.emit(PlanReady(planned.plan))
        return planned

    @asynccontextmanager
    async def hold_lock(self) -> AsyncIterator[ApplicationWriter]:
        """Acquire the lock; what it gives is the only way to write."""
        self.start_phase(RunPhase.LOCK)
        has_record = self.request.action is Action.DEPLOY or self.request.takes_over
        record = LeaseRecord(
            self.request.identity.annotations if has_record else {},
            check=lambda lease: self._check_record(lease_identity(lease)),
        )
        async with run_lock.hold_lock(self.context.lease, self.control, record, self.context.lock_timeout) as client:
            yield ApplicationWriter(client)

    def start_phase(self, phase: RunPhase) -> None:
        self.control.emit(PhaseStarted(phase))

    def add_notice(self, message: str, level: Level = Level.INFO) -> None:
        """Emit the message now and add it to the report."""
        self._notices.append(message)
        self.control.emit(LogLine(level, message))

    def record(self) -> RunRecord:
        """The run as of now, for the report."""
        context, counts, refreshes = self.context, self.context.cluster.reader.counts, self.context.refresher.count
        return RunRecord(
            action=self.request.action,
            environment=self.request.environment,
            scope=str(self.request.scope),
            started=self._started,
            finished=context.cluster.now(),
            calls=ApiCalls(counts.total - counts.writes, counts.writes - refreshes, refreshes),
            run_id=context.run_id,
            is_out_of_time=self.control.is_out_of_time,
            was_interrupted=self.control.was_interrupted,
            stop_reason=self.control.stop_reason,
            argocd_namespace=context.argocd_namespace,
            platform=self.request.platform.name,
            platform_file=self.request.platform_file,
            server=context.cluster.reader.server,
        )

    def plan_report(self, planned: PlannedRun) -> Report:
        """Report of a run that changed nothing."""
        return reports.plan_report(self.record(), planned.platform, planned.plan, planned.snapshot)

    def not_started_report(self) -> Report:
        """Report of a run that was stopped before it changed anything."""
        if self._planned is not None:
            return self.plan_report(self._planned)
        platform = self.request.platform
        selected = scopes.selected_nodes(platform, self.request.scope)
        return reports.unobserved_report(self.record(), platform, selected)

    def with_notices(self, report: Report) -> Report:
        stop_reasons = [self.control.stop_reason] if self.control.stop_reason else []
        empty = scopes.empty_selection_notice(self.request.platform, self.request.scope)
        dropped = illegal_row_notices(self.live.applications.view.values()) or self._dropped
        notices = (*report.notices, *filter(None, [empty]), *self._notices, *dropped, *stop_reasons)
        return replace(report, notices=notices)
