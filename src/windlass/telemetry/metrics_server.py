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

METRICS_PATH = "/metrics"
MAX_HEAD_SIZE = 8_192  # bytes
MAX_CONNECTIONS = 32  # at once; one scraper needs one
CLIENT_TIMEOUT = 5.0  # seconds for a client to send its request and read the response

_HINTS = {
    errno.EADDRINUSE: "another process has it; choose another port",
    errno.EACCES: "ports below 1024 need rights; choose another port",
    errno.EADDRNOTAVAIL: "it must be an address of this machine, or 0.0.0.0",
}


@asynccontextmanager
async def serve_metrics(
    text: Callable[[], bytes], address: str, port: int, client_timeout: float = CLIENT_TIMEOUT
) -> AsyncIterator[tuple[str, int]]:
    """Serve `text` at /metrics; yields the address and port.

    Open connections are aborted at the end, so that no client can delay the end of a run.
    """
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(connections) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        connections[task] = writer
        try:
            async with asyncio.timeout(client_timeout):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(head, text))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # not a metrics client, or it disconnected; neither concerns the run
        finally:
            writer.transport.abort()
            del connections[task]

    server = await _start_server(handle, address, port)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        for writer in connections.values():
            writer.transport.abort()  # instead of cancelling the task, which asyncio would log
        if connections:
            await asyncio.wait(list(connections))


async def _start_server(
    handler: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], address: str, port: int
) -> asyncio.Server:
    try:
        return await asyncio.start_server(handler, address, port, limit=MAX_HEAD_SIZE)
    except (OSError, UnicodeError) as error:  # UnicodeError: the address is not a valid host name
        number = getattr(error, "errno", None) or errno.EADDRNOTAVAIL  # missing since Python 3.13
        raise InvalidInput(
            f"metrics cannot be served on {address} port {port}",
            where="--metrics-port",
            hint=_HINTS.get(number, str(error)),
        ) from None


def _response(head: bytes, text: Callable[[], bytes]) -> bytes:
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    content_type, allow = "text/plain; charset=utf-8", ""
    if path != METRICS_PATH:
        status, body = "404 Not Found", f"metrics are at {METRICS_PATH}\n".encode()
    elif method not in {"GET", "HEAD"}:
        status, body, allow = "405 Method Not Allowed", b"use GET\n", "Allow: GET, HEAD\r\n"
    else:
        status, body, content_type = "200 OK", text(), CONTENT_TYPE
    content_headers = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    response_head = f"HTTP/1.1 {status}\r\n{allow}{content_headers}Connection: close\r\n\r\n"
    return response_head.encode() + (b"" if method == "HEAD" else body)
