"""Text of other programs as it may be shown: printable, on one line, of limited length, no command to a CI system.

Pure functions; the cost of each is linear in the length of the text.
"""

from __future__ import annotations

import re

MAX_MESSAGE_START, MAX_MESSAGE_END = 1_000, 3_000  # characters of a long message that are kept; the cause is at its end
MAX_MESSAGE_LENGTH = MAX_MESSAGE_START + MAX_MESSAGE_END

# Control sequences, operating system commands with their text (titles, links), and other escapes; of 7 and of 8 bits.
# What opens a command ends the one before: a text of nothing else would be scanned to its end from each character.
ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d]*+(?:\x07|\x1b\\|\x9c)|\x1b[@-Z\\^_]"
)
# GitHub Actions trims a line before it looks for `::`, and finds `##[` anywhere, as Azure and TeamCity find theirs.
CI_COMMAND = re.compile(r"^\s*+:(?=:)|##(?=\[|vso\[|teamcity\[)|^\s*+section_(?:start|end)(?=:)", re.IGNORECASE)


def printable(text: str) -> str:
    """The text without escape sequences, each other character that does not print replaced by a space.

    Not printable are control and format characters, among them line breaks and changes of the writing direction, and
    lone surrogates.
    """
    if text.isprintable():
        return text
    stripped = ESCAPE_SEQUENCE.sub("", text)
    return stripped.translate({ord(each): " " for each in set(stripped) if not each.isprintable()})


def one_line(text: str) -> str:
    """The printable text with each run of whitespace as one space."""
    return " ".join(printable(text).split())


def shortened(text: str, start: int, end: int = 0) -> str:
    """The text, or its first `start` and last `end` characters around an ellipsis if that is less."""
    if len(text) <= start + end:
        return text
    return f"{text[:start]}{' … ' if start and end else '…'}{text[-end:] if end else ''}"


def printed_line(line: str) -> str:
    """The line as it may be written where a CI system reads along: printable, and no command."""
    return CI_COMMAND.sub(lambda command: f"{command[0]} ", printable(line))


def printed_text(text: str) -> str:
    """The lines of the text as they may be written."""
    return "\n".join(map(printed_line, text.split("\n")))
