"""The server under test: how to reach it as someone, one exact exchange, one watch, and waiting with a deadline."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.kube.auth.connections import Token
from windlass.kube.client.clients import KubeClient
from windlass.kube.clocks import Clock
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.line_splitter import LineSplitter
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from windlass.kube.auth.connections import Connection
    from windlass.kube.client.objects import RawObject
    from windlass.kube.transport.transports import ByteStream, Transport

R = TypeVar("R")

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

PATIENCE = 30.0  # seconds that anything asynchronous may take; what takes longer is broken
POLL = 0.05
UNHURRIED = CallLimits(calls_per_second=10_000, burst=10_000)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, to the letter."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        return str(self.json.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))

    @property
    def causes(self) -> list[RawObject]:
        found: list[RawObject] = self.json.get("details", {}).get("causes", [])
        return found


class Raw:
    """Single exchanges through a transport, with nothing retried and nothing interpreted."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def __call__(
        self,
        method: str,
        target: str,
        body: Any = None,
        content: str = JSON,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Answer:
        """`body` is sent as JSON unless it is bytes; `content` is its media type."""
        given = dict(headers)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if sent is not None and "Content-Type" not in given and content:
            headers = (*headers, ("Content-Type", content))
        if "Accept" not in given:
            headers = (*headers, ("Accept", JSON))
        answer = await self.transport.exchange(Request(method, target, headers, sent))
        return Answer(answer.status, answer.headers, answer.body)

    async def ok(self, method: str, target: str, body: Any = None, content: str = JSON) -> Any:
        """The body of an exchange that must succeed."""
        answer = await self(method, target, body, content)
        assert answer.status < 300, f"{method} {target}: {answer.status} {answer.body[:500]!r}"
        return answer.json

    @asynccontextmanager
    async def watch(
        self, target: str, headers: tuple[tuple[str, str], ...] = (("Accept", JSON),)
    ) -> AsyncIterator[Watching]:
        """A watch of a collection; `target` is its path and query, without `watch=1`."""
        joint = "&" if "?" in target else "?"
        request = Request("GET", f"{target}{joint}watch=1", headers)
        async with asyncio.timeout(PATIENCE) as opening, self.transport.stream(request) as stream:
            opening.reschedule(None)
            yield Watching(stream)


class Watching:
    """The events of one watch connection, taken one by one against a deadline."""

    def __init__(self, stream: ByteStream) -> None:
        self.status = stream.status
        self._chunks = stream.chunks()
        self._splitter = LineSplitter()
        self._lines: list[bytes] = []

    async def next(self) -> RawObject | None:
        """The next event, or None when the server has ended the watch."""
        async with asyncio.timeout(PATIENCE):
            while not self._lines:
                chunk = await anext(self._chunks, None)
                if chunk is None:
                    return None
                self._lines += [line for line in self._splitter.feed(chunk) if line.strip()]
        event: RawObject = json.loads(self._lines.pop(0))
        return event

    async def event(self) -> RawObject:
        """The next event that is no bookmark; it must come."""
        while True:
            event = await self.next()
            assert event is not None, "the watch ended"
            if event["type"] != "BOOKMARK":
                return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """Type and name of as many events."""
        return [(e["type"], e["object"]["metadata"]["name"]) for e in [await self.event() for _ in range(count)]]

    async def rest(self) -> list[RawObject]:
        """All events until the server ends the watch."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


class Server:
    """Opens connections to the server under test, as its administrator or as someone else."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._opened: list[Transport] = []
        self.transport = self._open(connection)
        """The administrator's."""

    def raw(self) -> Raw:
        return Raw(self.transport)

    def client(self, *, manager: str = "windlass", transport: Transport | None = None) -> KubeClient:
        return KubeClient(CallSender(transport or self.transport, limits=UNHURRIED), field_manager=manager)

    def anonymous(self) -> Raw:
        return Raw(self._open(self._without_login()))

    def with_token(self, token: str) -> Raw:
        return Raw(self._open(replace(self._without_login(), auth=Token(token, where="a contract test"))))

    async def close(self) -> None:
        for transport in self._opened:
            await transport.close()

    def _without_login(self) -> Connection:
        connection = self.connection
        return replace(connection, auth=None, impersonation=None, tls=replace(connection.tls, client_certificate=None))

    def _open(self, connection: Connection) -> Transport:
        transport = HttpTransport(connection)
        self._opened.append(transport)
        return transport


async def until(question: Callable[[], Awaitable[R]], what: str = "it") -> R:
    """The first true answer."""
    clock = Clock()
    try:
        async with asyncio.timeout(PATIENCE):
            while not (answer := await question()):
                await clock.sleep(POLL)
            return answer
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {PATIENCE:g} s") from None
