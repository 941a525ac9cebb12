"""Small servers on 127.0.0.1 that say exactly what a test wants, byte by byte: HTTP, and a proxy."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    Answers = Callable[["Seen"], bytes]
    Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Seen:
    """A request as it came in."""

    line: str
    fields: tuple[tuple[str, str], ...]
    body: bytes
    peer: object = None
    connection: int = 0

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name.lower()]


@dataclass
class Server:
    port: int
    url: str
    seen: list[Seen] = field(default_factory=list)


def answer(body: bytes = b"{}", status: str = "200 OK", *fields: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def serving(answers: Answers, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Each request is answered with what `answers` says; nothing said hangs up, as does an answer that announces it."""
    connections = iter(range(1, 1000))

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(connections)
        while (request := await _request(reader, writer, number)) is not None:
            server.seen.append(request)
            said = answers(request)
            writer.write(said)
            await writer.drain()
            if not said or b"\r\nConnection: close" in said:
                return

    server = Server(0, "")
    async with listening(converse, tls) as port:
        server.port, server.url = port, f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield server


@asynccontextmanager
async def listening(converse: Conversation, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    running: set[asyncio.Task[None]] = set()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await converse(reader, writer)
        finally:
            running.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        while running:
            await asyncio.wait(running)
        await server.wait_closed()


@asynccontextmanager
async def proxying(to_port: int, authorization: str | None = None) -> AsyncIterator[Server]:
    """A proxy that leads to one server, whatever name was asked for."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _request(reader, writer, 1)
        if request is None:
            return
        proxy.seen.append(request)
        if authorization is not None and request.all("Proxy-Authorization") != [authorization]:
            writer.write(answer(b"", "407 Proxy Authentication Required"))
            return
        if not request.line.startswith("CONNECT"):
            writer.write(answer(b"from the proxy"))
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to_port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, far_writer))
                tasks.create_task(_pump(far_reader, writer))
        finally:
            far_writer.close()

    proxy = Server(0, "")
    async with listening(converse) as port:
        proxy.port, proxy.url = port, f"http://127.0.0.1:{port}"
        yield proxy


def refusing_port() -> Iterator[int]:
    """A port that is ours, and on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.close()


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    fields = tuple((name, value) for name, _, value in (each.partition(": ") for each in rest))
    length = next((int(value) for name, value in fields if name.lower() == "content-length"), 0)
    return Seen(line, fields, await reader.readexactly(length), writer.get_extra_info("peercert"), number)
