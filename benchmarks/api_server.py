"""The other end of the client benchmarks: prepared answers on loopback with as little work as possible.

python -m benchmarks.api_server: prints its port, serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from urllib.parse import parse_qs, urlsplit

from benchmarks.applications import EVENTS, application, pages

ANSWER_AFTER = 0.005  # seconds a write takes, as a real server's storage does
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class ApiServer(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._may_write = asyncio.Event()
        self._may_write.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1")
            length = next(
                (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
            )
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._answer(*head.split(" ", 2)[:2])

    def _answer(self, method: str, target: str) -> None:
        loop = asyncio.get_running_loop()
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        if method == "PATCH":
            loop.call_later(ANSWER_AFTER, self._send, ONE)
        elif query.get("watch", "").lower() in {"1", "true"}:
            tasks.add(task := loop.create_task(self._stream()))
            task.add_done_callback(tasks.discard)
        elif "limit" in query:
            self._send(PAGES[int(query.get("continue", "0"))])
        else:
            self._send(WHOLE)

    def _send(self, body: bytes) -> None:
        self._transport.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _stream(self) -> None:
        """Events in pieces of 16, as chunks; then the end, as a server does when the watch's time is over."""
        self._transport.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(EVENTS // 16):
            await self._may_write.wait()
            self._transport.write(SIXTEEN)
        self._transport.write(b"0\r\n\r\n")


tasks: set[asyncio.Task[None]] = set()
ONE = json.dumps(application(0)).encode()
PAGES = pages(500)
WHOLE = pages(5000)[0]
_event = b"".join(json.dumps({"type": "MODIFIED", "object": application(n)}).encode() + b"\n" for n in range(16))
SIXTEEN = b"%x\r\n" % len(_event) + _event + b"\r\n"


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(ApiServer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
