"""`windlass demo`: shows the life of a platform on a sandbox of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from windlass.cli.printed_lines import print_text

if TYPE_CHECKING:
    from windlass.settings.source import SettingsSource


@click.command()
@click.option(
    "--out", default="windlass-demo", show_default=True, metavar="DIRECTORY", help="Directory for files and reports."
)
@click.pass_obj
def demo(source: SettingsSource, /, out: str) -> None:
    """Deploy, break, fix and remove a platform on a sandbox.

    It takes about a minute, and prints each command that it runs.

    Exit codes: 0 every step gave the expected result, 1 one did not.
    """
    from windlass.cli import demo_steps  # noqa: PLC0415 - loads pydantic and the simulation

    demo_steps.run_demo(Path(out), source.environ_without_settings(), print_text)
