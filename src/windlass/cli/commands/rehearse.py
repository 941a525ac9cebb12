"""`windlass rehearse`: deploys a platform in simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import output_format_option, setting_options
from windlass.cli.printed_lines import print_text

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@setting_options("dag", "scope", "environment-file", "timeout")
@click.option("--fail", multiple=True, metavar="APP", help="Let this one fail; may be given several times.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all chance.")
@click.option(
    "--spread",
    type=click.IntRange(0, 100),
    default=0,
    metavar="PERCENT",
    help="Let each take up to so much shorter or longer than expected.",
)
@click.option("--faults", is_flag=True, help="On a bad day: slow and refused calls, cut watches, untrue health.")
@output_format_option
@click.pass_obj
def rehearse(source: SettingsSource, /, form: str, **options: Any) -> int:
    """Deploy the platform file in simulation: order, time, critical path, and what each failure would hold back.

    No cluster is needed or touched: stand-ins become ready after the time that the file expects.

    Exit codes: 0 it went as asked, with what --fail names failing; 1 something else did not become healthy.
    """
    from windlass.cli.views import rehearsal as rehearsal_views  # noqa: PLC0415
    from windlass.operations import rehearse as rehearse_operation  # noqa: PLC0415 - loads the simulation

    settings = source.settings(options)
    request = rehearse_operation.RehearsalRequest(
        platform=settings.platform,
        scope=settings.scope,
        failing_nodes=tuple(sorted(set(options["fail"]))),
        seed=options["seed"],
        spread=options["spread"] / 100,
        has_faults=options["faults"],
        timeout=settings.cluster.timeout,
    )
    rehearsal = rehearse_operation.rehearse(request)
    print_text(rehearsal_views.document(rehearsal) if form == "json" else rehearsal_views.text(rehearsal))
    return rehearsal.exit_code
