"""The session of `plan` and of every dry run: observers, a connection, the plan and its report.

The connection is read-only, unless the caller gives one; `run_session` has one that requests refreshes first.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.cli import session
from windlass.cli.observers import ObservedRun, complete_report, observe_run, warn_about_connection
from windlass.core.platform.events import PhaseStarted, PlanReady, RunPhase
from windlass.kube.bounded_files import read_file
from windlass.operations.plan import plan
from windlass.operations.plan_changes import ChangeRequest
from windlass.settings.mounts import ARGOCD_TOKEN_FILE

PLAN_LABEL = "plan"  # `action` in the logs and metrics of `plan` and of dry runs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.operations.observation import ObservedCluster
    from windlass.operations.plan import PlanResult
    from windlass.operations.planner import RunRequest
    from windlass.settings.settings import Settings

    PlanConnection = AbstractAsyncContextManager[tuple[ObservedCluster, int]]
    """A cluster, and how many refreshes were requested when it was opened."""


def plan_operation(
    settings: Settings, request: RunRequest, connection: PlanConnection | None = None, *, shows_fields: bool = False
) -> PlanResult:
    """Plan a run, read-only unless `connection` is given; raise `Moved` if it differs from the approved plan.

    `shows_fields`: list the fields that change.
    """
    changes = ChangeRequest(_argocd_token(settings), shows_fields)
    work = _observe_plan(settings, request, connection or _open_readonly(settings), changes)
    return session.run(work, settings.cluster.credentials.redactor)


def _argocd_token(settings: Settings) -> str | None:
    """The token of Argo CD; `None` if none is mounted."""
    path = settings.cluster.mounts.secrets.get(ARGOCD_TOKEN_FILE)
    return read_file(path).decode(errors="replace").strip() if path else None


@asynccontextmanager
async def _open_readonly(settings: Settings) -> AsyncIterator[tuple[ObservedCluster, int]]:
    async with session.open_cluster(settings.cluster, settings.argocd_namespace) as cluster:
        yield cluster, 0


async def _observe_plan(
    settings: Settings, request: RunRequest, connection: PlanConnection, changes: ChangeRequest
) -> PlanResult:
    run = ObservedRun(PLAN_LABEL, settings.cluster)  # not the planned action: a plan must not look like a deploy
    async with observe_run(run) as emit:
        emit(PhaseStarted(RunPhase.CONNECT))
        async with session.time_limit(settings.cluster.timeout), connection as (cluster, refreshes):
            warn_about_connection(cluster.reader, emit)
            emit(PhaseStarted(RunPhase.OBSERVE))
            result = await plan(cluster, request, refreshes, changes)
        emit(PhaseStarted(RunPhase.PLAN))
        emit(PlanReady(result.plan))
        report = complete_report(result.report, run, cluster.reader)
        emit.finish(report)
        return replace(result, report=report)
