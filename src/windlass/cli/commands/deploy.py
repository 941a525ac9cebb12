"""`windlass deploy`: deploys the platform, or plans the deploy for a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import TELEMETRY_SETTINGS, report_options, setting_options, take_over_option

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@setting_options(
    "kubeconfig", "context", "in-cluster", "environment", "scope", "dry-run", "timeout", "lock-timeout", "pipeline-url"
)
@setting_options("dag", "environment-file", "health-checks", "secrets", "argocd-token", *TELEMETRY_SETTINGS)
@report_options
@take_over_option
@click.option("--plan", metavar="FILE", help="Do exactly what this plan says; refuse if the cluster has changed since.")
@click.pass_obj
def deploy(source: SettingsSource, /, take_over: bool, plan: str | None, **options: Any) -> int:
    """Deploy the platform in dependency order.

    Each application is synced when all its dependencies are healthy. Applications that need no change are skipped, so
    that a rerun after a failure continues. The report goes to stdout, the log to stderr.

    Exit codes: 0 everything is healthy, 1 nothing is or the run could not start, 2 something failed, 4 timeout.
    """
    from windlass.cli import plan_files, plan_session, report_output, run_session, session  # noqa: PLC0415 - loads the HTTP library
    from windlass.core.platform.reporting.reports import Action  # noqa: PLC0415
    from windlass.operations import deploy as deploy_operation  # noqa: PLC0415

    outputs = report_output.take_outputs(options)
    settings = source.settings(options, Action.DEPLOY)
    approved_plan = plan_files.read_plan(plan, settings, Action.DEPLOY) if plan else None
    request = session.run_request(settings, Action.DEPLOY, approved_plan, takes_over=take_over)
    if settings.is_dry_run:
        report = plan_session.plan_operation(settings, request).report
    else:
        report = run_session.run_operation(settings, deploy_operation.deploy, request)
    return report_output.print_report(report, outputs, settings.cluster.terminal)
