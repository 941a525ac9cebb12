"""Bytes that arrive in any pieces, as whole lines of any length."""

from __future__ import annotations


class LineSplitter:
    """HTTP libraries cap the length of a line; a watch line has no cap, so lines are put together here."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their line feeds."""
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
        """What came after the last line feed."""
        return b"".join(self._pieces)
