"""Code shared by the commands that plan or change a cluster: settings, client, signals, observers and report."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.argo.cd.root_application import Root
from windlass.argo.health import assessment, scripts
from windlass.cli import connections
from windlass.cli.observers import Followed, following, shown
from windlass.cli.options import given
from windlass.core.platform.events import PhaseBegan, RunPhase
from windlass.core.platform.events import Planned as PlanMade
from windlass.core.platform.teardown.volumes import Policy
from windlass.kube.client.clients import KubeClient
from windlass.operations import plan as planning
from windlass.operations.observation import ARGOCD
from windlass.operations.run.context import Access, Control, Stopped
from windlass.settings.loader import Inputs, load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from windlass.argo.health.scripts import HealthScripts
    from windlass.core.platform.reporting.reports import Action, Report
    from windlass.kube.transport.calls import Calls
    from windlass.operations.plan import Planned
    from windlass.settings.loader import Settings

    Act = Callable[[Access], Awaitable[Report]]


def loaded(options: Mapping[str, Any], environ: Mapping[str, str], action: Action) -> Settings:
    return load(Inputs(given(options), environ, is_terminal=sys.stderr.isatty()), action)


def environment_of(settings: Settings) -> str:
    file = settings.environment
    return file.model.name if file else str(settings.values["environment"].value)


def argocd_of(settings: Settings) -> str:
    return settings.environment.model.argocd_namespace if settings.environment else ARGOCD


def policy_of(settings: Settings) -> Policy:
    return Policy(str(settings.values["pv-policy"].value))


def checks_of(settings: Settings) -> HealthScripts:
    return scripts.mounted(settings.mounts.health_scripts)


def planned(options: Mapping[str, Any], environ: Mapping[str, str], settings: Settings, action: Action) -> Planned:
    """Plan an action. The plan is computed with a read-only client."""
    platform, scope = settings.assembled.platform, settings.scope
    stated, root = settings.assembled.stated, root_of(settings)
    wish = planning.Wish(action, environment_of(settings), platform, scope, stated, root, policy_of(settings))
    reading = connections.reading(options, environ, argocd_of(settings), checks_of(settings))
    run = Followed(action, settings.values, settings.mounts)

    async def work() -> Planned:
        async with following(run, environ) as tell:
            tell(PhaseBegan(RunPhase.CONNECT))
            async with connections.within(_limit(settings)), reading as cluster:
                tell(PhaseBegan(RunPhase.OBSERVE))
                found = await planning.plan(cluster, wish)
            tell(PhaseBegan(RunPhase.PLAN))
            tell(PlanMade(found.plan))
            report = shown(found.report, run)
            tell.ended(report)
            return replace(found, report=report)

    return connections.run(work())


def root_of(settings: Settings) -> Root | None:
    """The root Application that the environment file describes; `None` without an environment file."""
    if settings.environment is None:
        return None
    file = settings.environment.model
    parameters = {"environment": file.name, "domain": file.domain}
    if file.cluster_name:
        parameters["clusterName"] = file.cluster_name
    return Root(file.git_repository, file.git_revision, file.git_path or ".", parameters)


def acted(
    options: Mapping[str, Any], environ: Mapping[str, str], settings: Settings, action: Action, act: Act
) -> Report:
    """Run an operation and return its report, also if a signal ends the run early."""
    run = Followed(action, settings.values, settings.mounts, settings.assembled.platform)

    async def work() -> Report:
        async with following(run, environ) as tell:
            report = shown(await _acted(connections.calls_to(options, environ), settings, Control(tell), act), run)
            tell.ended(report)
            return report

    return connections.run(work())


async def _acted(calls: Calls, settings: Settings, control: Control, act: Act) -> Report:
    client = KubeClient(calls)
    limit, began = _limit(settings), client.clock.monotonic()
    try:
        _stop_by_signals(control)
        control.tell(PhaseBegan(RunPhase.CONNECT))
        try:
            async with control.within(limit):
                now = await control.unless_stopped(connections.server_clock(calls))
        except Stopped:
            now = client.clock.now  # the run ends here: only the report needs a time
        argocd, left = argocd_of(settings), limit - timedelta(seconds=client.clock.monotonic() - began)
        async with assessment.scripted(client, argocd, checks_of(settings)) as judge:
            return await act(Access(client, now, argocd, str(uuid.uuid4()), control, left, judge))
    finally:
        await client.close()


def _limit(settings: Settings) -> timedelta:
    limit = settings.values["timeout"].value
    assert isinstance(limit, timedelta)
    return limit


def _stop_by_signals(control: Control) -> None:
    """Stop on SIGINT and SIGTERM: the first signal lets the run end with a report, the second cancels it."""
    task = asyncio.current_task()
    assert task is not None

    def stop() -> None:
        if control.stop.is_set():
            task.cancel()
        control.interrupt()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
