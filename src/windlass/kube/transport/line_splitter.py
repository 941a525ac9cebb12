"""Assembly of chunks of bytes into lines."""

from __future__ import annotations

from windlass.kube.api_errors import BadAnswer

MAX_LINE_BYTES = (
    32 << 20
)  # etcd stores objects of up to 1.5 MiB; as JSON, with managed fields, they are a few times that


class LineSplitter:
    """Splits a stream into lines. HTTP libraries limit the length of a line to less than a watch may send."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._limit = limit

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without line feeds. Raises `BadAnswer` if a line exceeds the limit."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > self._limit or any(len(line) > self._limit for line in lines):
            raise BadAnswer(f"the watch sent a line of more than {self._limit >> 20} MiB")
        return lines

    @property
    def rest(self) -> bytes:
        """The bytes after the last line feed."""
        return b"".join(self._pieces)
