"""`windlass validate`: checks the health of a platform, or of every Application of a cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import TELEMETRY_SETTINGS, report_options, setting_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.validate import ValidateRequest
    from windlass.settings.settings import ClusterSettings
    from windlass.settings.source import SettingsSource


@click.command()
@setting_options("kubeconfig", "context", "in-cluster", "environment", "scope", "timeout")
@setting_options("dag", "environment-file", "health-checks", "secrets", *TELEMETRY_SETTINGS)
@click.option("--all", "all_", is_flag=True, help="Every Application of the cluster; no platform file is read.")
@click.option("--strict", is_flag=True, help="Exit with 2 if there are compliance findings.")
@report_options
@click.pass_obj
def validate(source: SettingsSource, /, all_: bool, strict: bool, **options: Any) -> int:
    """Check that the platform is healthy and follows its rules.

    Reads only.

    Exit codes: 0 everything is healthy, 1 nothing or something critical is not, 2 something else is not, 4 timeout.
    """
    from windlass.cli import report_output, session  # noqa: PLC0415 - loads the HTTP library
    from windlass.core.platform.identity import EMBEDDED_PLATFORM  # noqa: PLC0415
    from windlass.core.platform.reporting.reports import Action  # noqa: PLC0415
    from windlass.operations.observation import DEFAULT_ARGOCD_NAMESPACE  # noqa: PLC0415
    from windlass.operations.validate import ValidateRequest  # noqa: PLC0415

    outputs = report_output.take_outputs(options)
    if all_:
        cluster, namespace = source.all_applications_settings(options), DEFAULT_ARGOCD_NAMESPACE
        request = ValidateRequest(cluster.environment, is_strict=strict)
    else:
        settings = source.settings(options, Action.VALIDATE)
        cluster, namespace = settings.cluster, settings.argocd_namespace
        request = ValidateRequest(
            settings.environment_name,
            settings.platform,
            settings.scope,
            is_strict=strict,
            platform_file=settings.platform_path or EMBEDDED_PLATFORM,
        )
    work = partial(_observe_validation, cluster, namespace, request)
    return report_output.print_report(
        session.run_to_report(work, cluster.credentials.redactor), outputs, cluster.terminal
    )


async def _observe_validation(
    settings: ClusterSettings, namespace: str, request: ValidateRequest, keep: Callable[[Report], None]
) -> None:
    from dataclasses import replace  # noqa: PLC0415

    from windlass.cli import session  # noqa: PLC0415
    from windlass.cli.observers import (  # noqa: PLC0415
        ObservedRun,
        complete_report,
        observe_run,
        warn_about_connection,
    )
    from windlass.core.platform.events import PhaseStarted, RunPhase  # noqa: PLC0415
    from windlass.core.platform.reporting.reports import Action  # noqa: PLC0415
    from windlass.kube.clocks import Clock  # noqa: PLC0415
    from windlass.operations.validate import validate_with_timeout  # noqa: PLC0415

    monotonic = Clock().monotonic
    deadline = monotonic() + settings.timeout.total_seconds()
    run = ObservedRun(Action.VALIDATE, settings)
    async with observe_run(run) as emit:
        emit(PhaseStarted(RunPhase.CONNECT))
        async with session.open_cluster(settings, namespace) as cluster:
            warn_about_connection(cluster.reader, emit)
            emit(PhaseStarted(RunPhase.OBSERVE))
            complete_request = replace(request, environment=request.environment or cluster.reader.server)
            report = await validate_with_timeout(deadline - monotonic(), cluster, complete_request)
            report = complete_report(report, run, cluster.reader)
            keep(report)
        emit.finish(report)
