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
@click.option("--fail", multiple=True, metavar="APP", help="Application that fails. Repeatable.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed for random choices; the same seed gives the same run.",
)
@click.option(
    "--spread",
    type=click.IntRange(0, 100),
    default=0,
    metavar="PERCENT",
    help="Vary each duration by up to ±PERCENT.",
)
@click.option("--faults", is_flag=True, help="Inject faults: slow and refused requests, broken watches, false health.")
@output_format_option
@click.pass_obj
def rehearse(source: SettingsSource, /, form: str, **options: Any) -> int:
    """Simulate a deploy of the platform file.

    Shows order, duration, critical path, and what each failure would block. No cluster is needed: simulated
    applications become ready after the duration that the file expects.

    Exit codes: 0 all applications became healthy, except those of --fail and their dependents; 1 another did not.
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
