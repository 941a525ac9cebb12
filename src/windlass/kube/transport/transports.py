"""The seam between the client and an API server: one exchange, one byte stream; over HTTP, or inside the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True, slots=True)
class Request:
    """One call, complete but for server address and credentials, which the transport adds."""

    method: str
    target: str
    """Path and encoded query, as they stand in the request line."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    repeatable: bool = False
    """Whether sending it twice leaves the cluster as sending it once does."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    """Looked up by canonical name, such as `Retry-After`."""
    body: bytes


class ByteStream(Protocol):
    """An answer whose body is still arriving."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def chunks(self) -> AsyncIterator[bytes]:
        """Bytes as they arrive, cut anywhere. Raises ConnectionLost if the body ends before its time."""
        ...


class Transport(Protocol):
    """Raises Unreachable if the request was not sent, ConnectionLost if it may have been."""

    @property
    def server(self) -> str:
        """The address to name in errors; carries no credentials."""
        ...

    async def exchange(self, request: Request) -> Response: ...
    def stream(self, request: Request) -> AbstractAsyncContextManager[ByteStream]: ...
    async def close(self) -> None: ...
