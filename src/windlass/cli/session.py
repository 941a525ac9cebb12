"""Code shared by the commands that plan or change a cluster: settings, client, signals, observers and report."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.argo.cd.root_application import RootApplication
from windlass.argo.health import assessment, scripts
from windlass.cli import connections
from windlass.cli.observers import ObservedRun, observe_run, redact_report
from windlass.cli.options import option_values
from windlass.core.platform.events import PhaseStarted, RunPhase
from windlass.core.platform.events import PlanReady as PlanMade
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.kube.client.clients import KubeClient
from windlass.operations import plan as planning
from windlass.operations.observation import DEFAULT_ARGOCD_NAMESPACE
from windlass.operations.run.context import RunContext, RunControl, Stopped
from windlass.settings.loader import Inputs, load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from windlass.argo.health.scripts import HealthScripts
    from windlass.core.platform.reporting.reports import Action, Report
    from windlass.kube.transport.calls import CallSender
    from windlass.operations.plan import PlanResult
    from windlass.settings.loader import Settings

    RunOperation = Callable[[RunContext], Awaitable[Report]]


def load_settings(options: Mapping[str, Any], environ: Mapping[str, str], action: Action) -> Settings:
    return load(Inputs(option_values(options), environ, is_terminal=sys.stderr.isatty()), action)


def environment_name(settings: Settings) -> str:
    environment_file = settings.environment_file
    return environment_file.model.name if environment_file else str(settings.values["environment"].value)


def argocd_namespace(settings: Settings) -> str:
    return settings.environment_file.model.argocd_namespace if settings.environment_file else DEFAULT_ARGOCD_NAMESPACE


def volume_policy(settings: Settings) -> VolumePolicy:
    return VolumePolicy(str(settings.values["pv-policy"].value))


def health_scripts(settings: Settings) -> HealthScripts:
    return scripts.mounted_scripts(settings.mounts.health_scripts)


def plan_action(
    options: Mapping[str, Any], environ: Mapping[str, str], settings: Settings, action: Action
) -> PlanResult:
    """Plan an action. The plan is computed with a read-only client."""
    platform, scope = settings.definition.platform, settings.scope
    explicit_dependencies, root = settings.definition.explicit_dependencies, root_application(settings)
    request = planning.PlanRequest(
        action, environment_name(settings), platform, scope, explicit_dependencies, root, volume_policy(settings)
    )
    connection = connections.open_cluster(options, environ, argocd_namespace(settings), health_scripts(settings))
    run = ObservedRun(action, settings.values, settings.mounts)

    async def work() -> PlanResult:
        async with observe_run(run, environ) as emit:
            emit(PhaseStarted(RunPhase.CONNECT))
            async with connections.time_limit(_timeout(settings)), connection as cluster:
                emit(PhaseStarted(RunPhase.OBSERVE))
                result = await planning.plan(cluster, request)
            emit(PhaseStarted(RunPhase.PLAN))
            emit(PlanMade(result.plan))
            report = redact_report(result.report, run)
            emit.finish(report)
            return replace(result, report=report)

    return connections.run(work())


def root_application(settings: Settings) -> RootApplication | None:
    """The root Application that the environment file describes; `None` without an environment file."""
    if settings.environment_file is None:
        return None
    file = settings.environment_file.model
    parameters = {"environment": file.name, "domain": file.domain}
    if file.cluster_name:
        parameters["clusterName"] = file.cluster_name
    return RootApplication(file.git_repository, file.git_revision, file.git_path or ".", parameters)


def run_session(
    options: Mapping[str, Any], environ: Mapping[str, str], settings: Settings, action: Action, operation: RunOperation
) -> Report:
    """Run an operation and return its report, also if a signal ends the run early."""
    run = ObservedRun(action, settings.values, settings.mounts, settings.definition.platform)

    async def work() -> Report:
        async with observe_run(run, environ) as emit:
            report = redact_report(
                await _run_operation(
                    connections.cluster_calls(options, environ), settings, RunControl(emit), operation
                ),
                run,
            )
            emit.finish(report)
            return report

    return connections.run(work())


async def _run_operation(calls: CallSender, settings: Settings, control: RunControl, operation: RunOperation) -> Report:
    client = KubeClient(calls)
    timeout, started = _timeout(settings), client.clock.monotonic()
    try:
        _handle_signals(control)
        control.emit(PhaseStarted(RunPhase.CONNECT))
        try:
            async with control.stop_after(timeout):
                now = await control.unless_stopped(connections.server_clock(calls))
        except Stopped:
            now = client.clock.now  # the run ends here: only the report needs a time
        namespace, remaining = (
            argocd_namespace(settings),
            timeout - timedelta(seconds=client.clock.monotonic() - started),
        )
        async with assessment.open_lua_assessor(client, namespace, health_scripts(settings)) as assessor:
            return await operation(RunContext(client, now, namespace, str(uuid.uuid4()), control, remaining, assessor))
    finally:
        await client.close()


def _timeout(settings: Settings) -> timedelta:
    timeout = settings.values["timeout"].value
    assert isinstance(timeout, timedelta)
    return timeout


def _handle_signals(control: RunControl) -> None:
    """Stop on SIGINT and SIGTERM: the first signal lets the run end with a report, the second cancels it."""
    task = asyncio.current_task()
    assert task is not None

    def stop() -> None:
        if control.stop.is_set():
            task.cancel()
        control.interrupt()

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop)
