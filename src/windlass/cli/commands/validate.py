"""`windlass validate` and `windlass wait`, and the rendering of reports for all commands."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.argo.health import scripts
from windlass.cli import connections
from windlass.cli.observers import ObservedRun, observe_run, redact_report
from windlass.cli.options import option_values
from windlass.core.platform import gates
from windlass.core.platform.events import PhaseStarted, RunPhase
from windlass.core.platform.gates import Failed, Open
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.reporting import report_documents, report_junit, report_text
from windlass.core.platform.reporting.reports import Action
from windlass.errors import ExitCode, InvalidInput
from windlass.kube.clocks import Clock
from windlass.operations import validate
from windlass.operations import wait as waiting
from windlass.operations.observation import DEFAULT_ARGOCD_NAMESPACE
from windlass.settings.loader import Inputs, load
from windlass.settings.mounts import read_mounts
from windlass.settings.problems import InvalidSettings
from windlass.settings.variables import read_settings
from windlass.telemetry.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.observation import ObservedCluster
    from windlass.settings.variables import SettingValue


def run_validate(options: Mapping[str, Any], environ: Mapping[str, str]) -> Report:
    """Validate the platform of the platform file, or with option `all_` every Application of the cluster."""
    setting_options = {name: value for name, value in options.items() if name not in {"all_", "strict"}}
    if options["all_"]:
        values = _setting_values(setting_options, environ)
        for conflicting in (
            values[name] for name in ("scope", "dag", "environment-file") if not values[name].is_default
        ):
            raise InvalidInput(
                "--all means every Application",
                where=conflicting.origin,
                hint=f"leave out {conflicting.origin}, or --all",
            )
        return connections.run(_validate_all(options, environ, values))
    settings = load(Inputs(option_values(setting_options), environ, is_terminal=sys.stderr.isatty()), Action.VALIDATE)
    environment_file = settings.environment_file.model if settings.environment_file else None
    request = validate.ValidateRequest(
        environment=environment_file.name if environment_file else str(settings.values["environment"].value),
        platform=settings.definition.platform,
        scope=settings.scope,
        is_strict=options["strict"],
    )
    argocd_namespace = environment_file.argocd_namespace if environment_file else DEFAULT_ARGOCD_NAMESPACE
    run = ObservedRun(Action.VALIDATE, settings.values, settings.mounts)
    health_scripts = scripts.mounted_scripts(settings.mounts.health_scripts)
    connection = connections.open_cluster(options, environ, argocd_namespace, health_scripts, _timeout(run.values))
    return connections.run(_validate_cluster(connection, request, run, environ))


async def _validate_all(
    options: Mapping[str, Any], environ: Mapping[str, str], values: Mapping[str, SettingValue]
) -> Report:
    mounts = read_mounts(values)
    if mounts.problems:
        raise InvalidSettings(mounts.problems)
    request = validate.ValidateRequest(str(values["environment"].value or ""), is_strict=options["strict"])
    health_scripts = scripts.mounted_scripts(mounts.health_scripts)
    connection = connections.open_cluster(
        options, environ, health_scripts=health_scripts, clock_timeout=_timeout(values)
    )
    return await _validate_cluster(connection, request, ObservedRun(Action.VALIDATE, values, mounts), environ)


async def _validate_cluster(
    connection: AbstractAsyncContextManager[ObservedCluster],
    request: validate.ValidateRequest,
    run: ObservedRun,
    environ: Mapping[str, str],
) -> Report:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _timeout(run.values).total_seconds()
    async with observe_run(run, environ) as emit:
        emit(PhaseStarted(RunPhase.CONNECT))
        async with connection as cluster:
            emit(PhaseStarted(RunPhase.OBSERVE))
            complete_request = replace(request, environment=request.environment or cluster.reader.server)
            report = redact_report(
                await validate.validate_with_timeout(deadline - loop.time(), cluster, complete_request), run
            )
        emit.finish(report)
        return report


def render_report(report: Report, report_format: str) -> str:
    if report_format == "json":
        return msgspec.json.format(msgspec.json.encode(report_documents.document(report)), indent=2).decode()
    text = report_junit.junit(report) if report_format == "junit" else report_text.text(report)
    return text.rstrip("\n")


def run_wait(
    application: str, options: Mapping[str, Any], environ: Mapping[str, str], print_line: Callable[[str], None]
) -> tuple[str, ExitCode]:
    """Wait for an Application; return the final message and the exit code."""
    namespace, _, name = application.rpartition("/")
    if not name or "/" in namespace:
        raise InvalidInput(f"{application!r} is no Application", hint="it is NAME or NAMESPACE/NAME")
    values = _setting_values({key: value for key, value in options.items() if key != "revision"}, environ)
    request = waiting.WaitRequest(ApplicationRef(name, namespace or None), tuple(options["revision"]), _timeout(values))
    redact, monotonic = Redactor(), Clock().monotonic

    async def work() -> Open | Failed | waiting.WaitTimeout:
        async with AsyncExitStack() as stack:
            started = monotonic()
            async with connections.time_limit(request.timeout):
                cluster = await stack.enter_async_context(connections.open_cluster(options, environ))
            remaining_request = replace(request, timeout=request.timeout - timedelta(seconds=monotonic() - started))
            return await waiting.wait(
                cluster, remaining_request, lambda detail: print_line(f"waiting: {redact(detail)}")
            )

    match connections.run(work()):
        case Open(evidence):
            drifting = ", drifting" if evidence.is_drifting else ""
            message = f"{evidence.health} at {gates.abbreviate(evidence.shown)}{drifting} ({evidence.proof})"
            return f"{application}: {message}", ExitCode.SUCCESS
        case Failed(reason, detail):
            return f"{application}: {reason}: {redact(detail)}", ExitCode.FAILURE
        case waiting.WaitTimeout(detail):
            message = report_text.format_duration(request.timeout)
            return f"{application}: out of time after {message}: {redact(detail)}", ExitCode.TIMEOUT


def _setting_values(options: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, SettingValue]:
    """Read options and variables only, for commands that need no files."""
    defaults = {"log-format": "text"} if sys.stderr.isatty() else {}
    values, problems = read_settings(option_values(options), environ, defaults)
    if problems:
        raise InvalidSettings(problems)
    return values


def _timeout(values: Mapping[str, SettingValue]) -> timedelta:
    timeout = values["timeout"].value
    assert isinstance(timeout, timedelta)
    return timeout
