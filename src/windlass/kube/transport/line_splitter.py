"""Assembly of chunks of bytes into lines of any length."""

from __future__ import annotations


class LineSplitter:
    """Splits a stream into lines. HTTP libraries limit the length of a line; lines of a watch can be longer."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without line feeds."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        return lines

    @property
    def rest(self) -> bytes:
        """The bytes after the last line feed."""
        return b"".join(self._pieces)
