"""The session of `plan` and of every dry run: observers, a read-only connection, the plan and its report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.cli import session
from windlass.cli.observers import ObservedRun, complete_report, observe_run, warn_about_connection
from windlass.core.platform.events import PhaseStarted, PlanReady, RunPhase
from windlass.operations.plan import plan

if TYPE_CHECKING:
    from windlass.operations.plan import PlanResult
    from windlass.operations.planner import RunRequest
    from windlass.settings.settings import Settings


def plan_operation(settings: Settings, request: RunRequest) -> PlanResult:
    """Plan a run with a read-only client; raise `Moved` if it differs from the approved plan."""
    return session.run(_observe_plan(settings, request), settings.cluster.credentials.redactor)


async def _observe_plan(settings: Settings, request: RunRequest) -> PlanResult:
    run = ObservedRun(request.action, settings.cluster)
    async with observe_run(run) as emit:
        emit(PhaseStarted(RunPhase.CONNECT))
        connection = session.open_cluster(settings.cluster, settings.argocd_namespace)
        async with session.time_limit(settings.cluster.timeout), connection as cluster:
            warn_about_connection(cluster.reader, emit)
            emit(PhaseStarted(RunPhase.OBSERVE))
            result = await plan(cluster, request)
        emit(PhaseStarted(RunPhase.PLAN))
        emit(PlanReady(result.plan))
        report = complete_report(result.report, run, cluster.reader)
        emit.finish(report)
        return replace(result, report=report)
