"""Layout of text: durations, lists of names, wrapped paragraphs, aligned tables, and a limited number of lines."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

MIN_WIDTH = 40  # columns; a narrower terminal wraps lines by itself
_SHELL_WORDS = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+|\S""")


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
    """The line, continued on further lines after `indent` if it is longer than the width.

    The lines of a text with line breaks stay separate. A command (`$ ...`) is continued as a shell continues it.
    """
    for part in line.split("\n"):
        if width is None or len(part) <= width:
            yield part
            continue
        if part.lstrip().startswith("$ "):
            yield from _wrap_command(part, width, indent)
            continue
        own_indent = part[: len(part) - len(part.lstrip())]
        yield from textwrap.wrap(
            part.strip(),
            max(width, MIN_WIDTH),
            initial_indent=own_indent,
            subsequent_indent=own_indent + indent,
            break_on_hyphens=False,
        )


def _wrap_command(line: str, width: int, indent: str) -> Iterator[str]:
    """The words of a command on several lines that end with a backslash; quoted words stay whole."""
    text = line.lstrip()
    current, further_indent = line[: len(line) - len(text)], line[: len(line) - len(text)] + indent
    is_empty = True
    for word in _SHELL_WORDS.findall(text):
        separator = "" if is_empty else " "
        if not is_empty and current.strip() != "$" and len(current + separator + word) > max(width, MIN_WIDTH) - 2:
            yield f"{current} \\"
            current, separator = further_indent, ""
        current, is_empty = current + separator + word, False
    yield current


def limit_items(items: Sequence[Sequence[str]], max_lines: int) -> list[str]:
    """As many items as fit, and a line that says how many are left out."""
    if sum(map(len, items)) <= max_lines:
        return [line for item in items for line in item]
    lines: list[str] = []
    count = 0
    while len(lines) + len(items[count]) + 1 <= max_lines:
        lines += items[count]
        count += 1
    return [*lines, f"  and {len(items) - count} more"]


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
