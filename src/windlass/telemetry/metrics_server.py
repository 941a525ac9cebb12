"""HTTP endpoint for metrics, on the event loop of the action; one request per connection."""

from __future__ import annotations

import asyncio
import errno
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from windlass.errors import InvalidInput
from windlass.telemetry.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

PATH = "/metrics"
LONGEST_HEAD = 8_192  # bytes
PATIENCE = 5.0  # seconds for a client to send its request and read the response

_HINTS = {
    errno.EADDRINUSE: "another process has it; choose another port",
    errno.EACCES: "ports below 1024 need rights; choose another port",
    errno.EADDRNOTAVAIL: "it must be an address of this machine, or 0.0.0.0",
}


@asynccontextmanager
async def served(
    text: Callable[[], bytes], address: str, port: int, patience: float = PATIENCE
) -> AsyncIterator[tuple[str, int]]:
    """Serve `text` at /metrics; yields the address and port.

    Open connections are aborted at the end, so that no client can delay the end of a run.
    """
    under_way: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way[task] = writer
        try:
            async with asyncio.timeout(patience):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_answer(head, text))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # not a metrics client, or it disconnected; neither concerns the run
        finally:
            writer.transport.abort()
            del under_way[task]

    server = await _listening(answer, address, port)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        for writer in under_way.values():
            writer.transport.abort()  # instead of cancelling the task, which asyncio would log
        if under_way:
            await asyncio.wait(list(under_way))


async def _listening(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], address: str, port: int
) -> asyncio.Server:
    try:
        return await asyncio.start_server(answer, address, port, limit=LONGEST_HEAD)
    except (OSError, UnicodeError) as error:  # UnicodeError: the address is not a valid host name
        number = getattr(error, "errno", None) or errno.EADDRNOTAVAIL  # missing since Python 3.13
        raise InvalidInput(
            f"metrics cannot be served on {address} port {port}",
            where="--metrics-port",
            hint=_HINTS.get(number, str(error)),
        ) from None


def _answer(head: bytes, text: Callable[[], bytes]) -> bytes:
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    kind, allow = "text/plain; charset=utf-8", ""
    if path != PATH:
        status, body = "404 Not Found", f"metrics are at {PATH}\n".encode()
    elif method not in {"GET", "HEAD"}:
        status, body, allow = "405 Method Not Allowed", b"use GET\n", "Allow: GET, HEAD\r\n"
    else:
        status, body, kind = "200 OK", text(), CONTENT_TYPE
    size = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    lines = f"HTTP/1.1 {status}\r\n{allow}{size}Connection: close\r\n\r\n"
    return lines.encode() + (b"" if method == "HEAD" else body)
