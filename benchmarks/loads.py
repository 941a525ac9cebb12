"""A load generator: prepared requests over raw connections, answers only told apart.

Client and server share the machine's cores; a client that decoded what it gets would measure itself.
"""

from __future__ import annotations

import asyncio
import json
import re
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

HOST = "127.0.0.1"


class _Sender(asyncio.Protocol):
    """Takes the next request, from those that all senders share, when the answer to its last is complete."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._received = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)
            return
        self._transport.close()
        if not self.done.done():
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)\r\n.*", head + b"\r\n")
        if not length or len(body) < int(length[1]):
            return
        if not head.startswith(b"HTTP/1.1 20") and not self.done.done():
            self.done.set_exception(AssertionError(self._received.decode()))
        self._received = b""
        self._send()


class _Watcher(asyncio.Protocol):
    def __init__(self, load: Load, request: bytes) -> None:
        self._load = load
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._load.watched += len(data)


class Load:
    """What is sent to one server with one token."""

    def __init__(self, port: int, token: str, tls: ssl.SSLContext) -> None:
        self._port = port
        self._tls = tls
        self._head = f"HTTP/1.1\r\nHost: {HOST}:{port}\r\nUser-Agent: bench\r\nAuthorization: Bearer {token}\r\n"
        self.watched = 0
        """Bytes that came to watchers."""

    def request(self, method: str, path: str, body: Any = None, media: str = "application/json") -> bytes:
        content = json.dumps(body).encode() if body else b""
        head = f"{method} {path} {self._head}Content-Type: {media}\r\nContent-Length: {len(content)}\r\n\r\n"
        return head.encode() + content

    async def send(self, requests: Iterator[bytes], in_flight: int = 1) -> float:
        """Sends them all, and says how many seconds that took."""
        loop, began = asyncio.get_running_loop(), perf_counter()
        senders = [_Sender(requests) for _ in range(in_flight)]
        for sender in senders:
            await loop.create_connection(lambda sender=sender: sender, HOST, self._port, ssl=self._tls)  # type: ignore[misc]
        for sender in senders:
            await sender.done
        return perf_counter() - began

    async def watch(self, path: str) -> None:
        """Until the loop ends."""
        request = self.request("GET", f"{path}?watch=true")
        await asyncio.get_running_loop().create_connection(
            lambda: _Watcher(self, request), HOST, self._port, ssl=self._tls
        )
