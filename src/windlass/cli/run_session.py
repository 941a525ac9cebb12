"""The session of a command that changes a cluster: observers, signals, a writing client, the operation, its report."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
import socket
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from windlass.argo.cd.refresher import Refresher
from windlass.argo.health import assessment, scripts
from windlass.cli import session
from windlass.cli.observers import ObservedRun, complete_report, observe_run, warn_about_connection
from windlass.core.platform.events import PhaseStarted, RunPhase
from windlass.core.platform.lock_holders import HOLDER_ANNOTATION, describe_person
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.readers import KubeReader
from windlass.kube.leases import LeaseClaim, ProcessLease
from windlass.operations.cluster_identity import LEASE_NAME
from windlass.operations.observation import ObservedCluster
from windlass.operations.refresh import refresh_applications
from windlass.operations.run.context import RunContext, RunControl, Stopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from datetime import datetime

    from windlass.core.platform.reporting.reports import Report
    from windlass.kube.transport.calls import CallSender
    from windlass.operations.planner import RunRequest
    from windlass.settings.settings import ClusterSettings, Settings

    Operation = Callable[[RunContext, RunRequest], Awaitable[Report]]


def run_operation(settings: Settings, operation: Operation, request: RunRequest) -> Report:
    """Run an operation and return its report, also if a signal ends the run early."""
    work = partial(_observe_operation, settings, operation, request)
    report: Report = session.run_to_report(work, settings.cluster.credentials.redactor)
    return report


async def _observe_operation(
    settings: Settings, operation: Operation, request: RunRequest, keep: Callable[[Report], None]
) -> None:
    run = ObservedRun(request.action, settings.cluster, settings.platform, settings.scope, request.environment)
    async with observe_run(run) as emit:
        calls, control = session.open_calls(settings.cluster), RunControl(emit)
        client, reader = KubeClient(calls), KubeReader(calls)
        try:
            warn_about_connection(reader, emit)
            _handle_signals(control)
            now, remaining = await _connect(calls, control, settings.cluster.timeout)
            health_scripts = scripts.mounted_scripts(settings.cluster.mounts.health_scripts)
            namespace, run_id = settings.argocd_namespace, str(uuid.uuid4())
            async with assessment.open_lua_assessor(reader, namespace, health_scripts) as assessor:
                cluster = ObservedCluster(reader, now, namespace, assessor)
                lease = ProcessLease(client, LeaseClaim(LEASE_NAME, namespace, run_id, now, _holder(settings.cluster)))
                lock_timeout = settings.cluster.lock_timeout
                context = RunContext(cluster, lease, Refresher(client), run_id, control, remaining, lock_timeout)
                report = complete_report(await operation(context, request), run, reader)
                keep(report)
        finally:
            await client.close()
        emit.finish(report)


@asynccontextmanager
async def open_refreshed_cluster(settings: Settings, request: RunRequest) -> AsyncIterator[tuple[ObservedCluster, int]]:
    """Connect and have Argo CD compare again what the plan depends on; yields how many refreshes were requested."""
    calls, namespace = session.open_calls(settings.cluster), settings.argocd_namespace
    client, control, run_id = KubeClient(calls), RunControl(lambda _: None), str(uuid.uuid4())
    health_scripts = scripts.mounted_scripts(settings.cluster.mounts.health_scripts)
    try:
        now, reader = await session.first_answer(calls, settings.cluster.timeout), KubeReader(calls)
        async with assessment.open_lua_assessor(reader, namespace, health_scripts) as assessor:
            cluster = ObservedCluster(reader, now, namespace, assessor)
            lease = ProcessLease(client, LeaseClaim(LEASE_NAME, namespace, run_id, now))
            context = RunContext(cluster, lease, Refresher(client), run_id, control, settings.cluster.timeout)
            yield cluster, await refresh_applications(context, request)
    finally:
        await client.close()


def _holder(settings: ClusterSettings) -> dict[str, str]:
    """What the Lease tells others about who runs this."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an arbitrary user ID in a container
        user = str(os.getuid())
    return {HOLDER_ANNOTATION: describe_person(user, socket.gethostname(), settings.pipeline_url)}


async def _connect(
    calls: CallSender, control: RunControl, timeout: timedelta
) -> tuple[Callable[[], datetime], timedelta]:
    """Send the first request. Returns the server's clock, and what remains of the timeout."""
    started = calls.clock.monotonic()
    control.emit(PhaseStarted(RunPhase.CONNECT))
    try:
        now = await control.unless_stopped(session.first_answer(calls, timeout))
    except Stopped:
        now = calls.clock.now  # the run ends here: only the report needs a time
    return now, timeout - timedelta(seconds=calls.clock.monotonic() - started)


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
