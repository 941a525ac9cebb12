"""`windlass graph`: shows the dependency graph of a platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import setting_options
from windlass.cli.printed_lines import print_text

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@setting_options("dag", "scope")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot", "svg"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.pass_obj
def graph(source: SettingsSource, /, form: str, **options: Any) -> None:
    """Show the dependency graph of the platform.

    As text, in waves of applications that can start together, or as mermaid, dot or svg.
    """
    from windlass.cli.views import graph as graph_views  # noqa: PLC0415

    settings = source.settings(options)
    print_text(graph_views.FORMATS[form](graph_views.graph_view(settings.platform, settings.scope)))
