"""The `Transport` interface between the client and an API server; implemented over HTTP and in-process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from windlass.kube.api_errors import BadAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from windlass.kube.redactions import Redactor


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request without server address and credentials, which the transport adds."""

    method: str
    target: str
    """Path and encoded query, as in the request line."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    idempotent: bool = False
    """Sending it twice has the same effect as sending it once."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    """Look up by canonical name, such as `Retry-After`."""
    body: bytes


MAX_BODY_BYTES = 256 << 20  # decompressed; a page of a list is far smaller, and more would exhaust the memory of a pod


async def read_body(chunks: AsyncIterator[bytes], limit: int = MAX_BODY_BYTES) -> bytes:
    """All chunks in one piece. Raises `BadAnswer` as soon as they exceed the limit."""
    pieces: list[bytes] = []
    remaining = limit
    async for chunk in chunks:
        remaining -= len(chunk)
        if remaining < 0:
            raise BadAnswer(f"the answer is larger than {limit >> 20} MiB")
        pieces.append(chunk)
    return b"".join(pieces)


class ByteStream(Protocol):
    """A response whose body is still arriving."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def chunks(self) -> AsyncIterator[bytes]:
        """The body in chunks of any size. Raises `ConnectionLost` if it ends prematurely."""
        ...


class Transport(Protocol):
    """Sends requests to one API server.

    Raises `Unreachable` if the request was not sent, `ConnectionLost` if it may have been.
    """

    @property
    def server(self) -> str:
        """The server's address for error messages, without credentials."""
        ...

    @property
    def redactor(self) -> Redactor:
        """Removes the credentials of this connection from text; redact before you cut text of the server."""
        ...

    async def exchange(self, request: Request) -> Response: ...
    def stream(self, request: Request) -> AbstractAsyncContextManager[ByteStream]: ...
    async def close(self) -> None: ...
