"""The one place where commands write lines: printable, and never a command to the CI system that reads them."""

from __future__ import annotations

import click

from windlass.printable_text import printed_text


def print_text(text: str, *, err: bool = False) -> None:
    """Print the lines of the text to stdout, or to stderr."""
    click.echo(printed_text(text), err=err)  # noqa: TID251 - the one place
