"""Layout of text: durations, lists of names, wrapped paragraphs, aligned tables, and a limited number of lines."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

MIN_WIDTH = 40  # columns; a narrower terminal wraps lines by itself


@dataclass(frozen=True, slots=True)
class Screen:
    """The size of a terminal in columns and lines."""

    width: int
    height: int


def format_duration(duration: timedelta) -> str:
    """`4 s`, `3 min 20 s`, `1 h 5 min`."""
    seconds = round(duration.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s" if seconds % 60 else f"{seconds // 60} min"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def pluralize(number: int, word: str, plural: str = "") -> str:
    return f"{number} {word if number == 1 else plural or f'{word}s'}"


def join_names(names: Sequence[str], limit: int | None = None) -> str:
    rest = len(names) - limit if limit else 0
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:limit])} and {rest} more"


def wrap(line: str, width: int | None, indent: str = "    ") -> Iterator[str]:
    """The line, continued on further lines after `indent` if it is longer than the width. Commands are never wrapped.

    The lines of a text with line breaks stay separate.
    """
    for part in line.split("\n"):
        if width is None or len(part) <= width or part.lstrip().startswith("$ "):
            yield part
            continue
        own_indent = part[: len(part) - len(part.lstrip())]
        yield from textwrap.wrap(
            part.strip(),
            max(width, MIN_WIDTH),
            initial_indent=own_indent,
            subsequent_indent=own_indent + indent,
            break_on_hyphens=False,
        )


def limit_items(items: Sequence[Sequence[str]], max_lines: int, names: Sequence[str] = ()) -> list[str]:
    """As many items as fit, and a line that says how many are left out, with their names if they have any."""
    if sum(map(len, items)) <= max_lines:
        return [line for item in items for line in item]
    lines: list[str] = []
    count = 0
    for count, item in enumerate(items):  # noqa: B007 - the number of items that are shown
        if len(lines) + len(item) + 1 > max_lines:
            break
        lines += item
    left_out = len(items) - count
    return [*lines, f"  and {join_names(names[count:], 5)}" if names else f"  and {left_out} more"]


def table(
    rows: Sequence[Sequence[str]], indent: str = "  ", width: int | None = None, optional: Sequence[int] = ()
) -> Iterator[str]:
    """Aligned lines; each column is as wide as its widest cell, and a column without text is omitted.

    Of a table that is wider than `width`, the optional columns are omitted one after the other, until it fits.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for column in optional:
        if width is None or _table_width(widths, indent) <= width:
            break
        widths[column] = 0
    for row in rows:
        cells = [f"{cell:<{size}}" for cell, size in zip(row, widths, strict=True) if size]
        yield (indent + "  ".join(cells)).rstrip()


def _table_width(widths: Sequence[int], indent: str) -> int:
    shown = [size for size in widths if size]
    return len(indent) + sum(shown) + 2 * (len(shown) - 1)
