"""`windlass demo`: shows the life of a platform on a sandbox of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from windlass.cli.printed_lines import print_text

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@click.option("--out", default="windlass-demo", show_default=True, metavar="DIRECTORY", help="For files and reports.")
@click.pass_obj
def demo(source: SettingsSource, /, out: str) -> None:
    """Show a platform's life in a minute, on a sandbox of its own; every command is one that you could type.

    Exit codes: 0 each chapter did what it says, 1 one did not.
    """
    from windlass.cli import demo_steps  # noqa: PLC0415 - loads pydantic and the simulation

    demo_steps.run_demo(Path(out), source.environ_without_settings(), print_text)
