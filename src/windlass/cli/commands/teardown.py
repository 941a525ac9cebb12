"""`windlass teardown`: tears the platform down, or plans the teardown for a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import (
    TELEMETRY_SETTINGS,
    delete_foreign_option,
    report_options,
    setting_options,
    take_over_option,
)

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@setting_options("kubeconfig", "context", "in-cluster", "environment", "scope", "confirm", "pv-policy", "dry-run")
@setting_options(
    "timeout",
    "lock-timeout",
    "pipeline-url",
    "dag",
    "environment-file",
    "health-checks",
    "secrets",
    *TELEMETRY_SETTINGS,
)
@delete_foreign_option
@report_options
@take_over_option
@click.option(
    "--plan", metavar="FILE", help="Remove exactly what this plan says; refuse if the cluster has changed since."
)
@click.pass_obj
def teardown(source: SettingsSource, /, plan: str | None, take_over: bool, **options: Any) -> int:
    """Remove the platform in reverse dependency order.

    Each application is removed after all its dependents are gone. It must be confirmed with the name of the
    environment. Volumes are retained unless --pv-policy says otherwise.

    Exit codes: 0 nothing is left, 1 something could not be removed or the run could not begin, 2 something was left
    behind or left alone to spare foreign objects, 4 out of time.
    """
    from windlass.cli import plan_files, plan_session, report_output, run_session, session  # noqa: PLC0415 - loads the HTTP library
    from windlass.core.platform.reporting.reports import Action  # noqa: PLC0415
    from windlass.operations.teardown import teardown as teardown_operation  # noqa: PLC0415

    outputs, delete_foreign = report_output.take_outputs(options), options.pop("delete_foreign")
    settings = source.settings(options, Action.TEARDOWN)
    approved_plan = plan_files.read_plan(plan, settings, Action.TEARDOWN) if plan else None
    request = session.run_request(
        settings, Action.TEARDOWN, approved_plan, takes_over=take_over, delete_foreign=delete_foreign
    )
    if settings.is_dry_run:
        report = plan_session.plan_operation(settings, request).report
    else:
        report = run_session.run_operation(settings, teardown_operation.teardown, request)
    return report_output.print_report(report, outputs, settings.cluster.terminal)
