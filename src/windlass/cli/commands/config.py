"""`windlass config`: shows the effective settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import output_format_option, setting_options
from windlass.cli.printed_lines import print_text
from windlass.errors import InvalidInput
from windlass.settings.requirements import ACTIONS
from windlass.settings.variables import SETTINGS

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@setting_options(*(setting.name for setting in SETTINGS if setting.option))
@click.option("--for", "action", type=click.Choice(ACTIONS), help="Also require the settings that this action needs.")
@output_format_option
@click.pass_obj
def config(source: SettingsSource, /, action: str | None, form: str, **options: Any) -> None:
    """Show every effective setting and where it comes from.

    Secrets are masked.
    """
    from windlass.cli.views import settings as settings_views  # noqa: PLC0415

    try:
        values = source.settings(options, action or "").effective_values
    except InvalidInput:
        print_text(settings_views.text(source.readable_values(options)))  # what is set helps to find what is wrong
        raise
    print_text(settings_views.document(values) if form == "json" else settings_views.text(values))
