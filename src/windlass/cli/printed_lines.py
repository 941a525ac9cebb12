"""The one place where commands write lines: printable, and never a command to the CI system that reads them."""

from __future__ import annotations

import sys

import click

from windlass.errors import WindlassError
from windlass.printable_text import printed_text


class OutputFailed(WindlassError):
    """Stdout is closed or cannot be written."""


def print_text(text: str, *, err: bool = False) -> None:
    """Print the lines of the text to stdout, or to stderr. Characters that the stream cannot encode become `?`."""
    stream = sys.stderr if err else sys.stdout
    encoding = stream.encoding or "utf-8"
    encodable = printed_text(text).encode(encoding, "replace").decode(encoding)
    try:
        click.echo(encodable, err=err)  # noqa: TID251 - the one place
    except BrokenPipeError:
        raise
    except OSError as error:
        if err:
            raise
        raise OutputFailed(f"the output cannot be written: {error.strerror}") from None
