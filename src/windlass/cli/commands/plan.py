"""`windlass plan`: shows what a deploy or a teardown would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import TELEMETRY_SETTINGS, delete_foreign_option, report_options, setting_options

if TYPE_CHECKING:
    from windlass.cli.plan_session import PlanConnection
    from windlass.operations.planner import RunRequest
    from windlass.settings.settings import Settings
    from windlass.settings.source import SettingsSource

REQUIRED_SETTINGS = {"deploy": "deploy", "teardown": "validate"}
"""By planned action: the action whose settings are required. The plan of a teardown needs no confirmation."""


@click.command()
@setting_options("kubeconfig", "context", "in-cluster", "environment", "scope", "timeout", "argocd-token")
@setting_options("dag", "environment-file", "health-checks", "secrets", "pv-policy", *TELEMETRY_SETTINGS)
@click.option(
    "--action", type=click.Choice(["deploy", "teardown"]), default="deploy", show_default=True, help="What to plan."
)
@click.option("--out", metavar="FILE", help="Also write the plan here, for `deploy --plan` and `teardown --plan`.")
@click.option("--refresh", is_flag=True, help="Request a comparison from Argo CD first; this is the only write.")
@click.option("--diff", is_flag=True, help="List the fields of objects that change; needs a token of Argo CD.")
@delete_foreign_option
@report_options
@click.pass_obj
def plan(source: SettingsSource, /, action: str, out: str | None, **options: Any) -> int:
    """Show what a deploy or a teardown would do.

    In which order, why, and how long it takes. Only --refresh writes.

    Exit codes: 0 it could be done, 1 something outside the scope prevents it, 2 part of it could be done.
    """
    from windlass.cli import plan_files, plan_session, report_output, session  # noqa: PLC0415 - loads the HTTP library
    from windlass.core.platform.reporting.reports import Action  # noqa: PLC0415

    refresh, diff, delete_foreign = options.pop("refresh"), options.pop("diff"), options.pop("delete_foreign")
    options["details"] |= diff
    outputs = report_output.take_outputs(options)
    settings = source.settings(options, REQUIRED_SETTINGS[action])
    request = session.run_request(settings, Action(action), delete_foreign=delete_foreign)
    connection = _refreshed_cluster(settings, request) if refresh else None
    result = plan_session.plan_operation(settings, request, connection, shows_fields=diff)
    if out:
        plan_files.write_plan(Path(out), result, settings, Action(action))
    return report_output.print_report(result.report, outputs, settings.cluster.terminal)


def _refreshed_cluster(settings: Settings, request: RunRequest) -> PlanConnection:
    """The one connection of this command that can write, and only refreshes: nothing else may import it."""
    from windlass.cli import run_session  # noqa: PLC0415 - only --refresh may write

    return run_session.open_refreshed_cluster(settings, request)
