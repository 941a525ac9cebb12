"""A transport that gives prepared answers in turn and keeps what it was asked."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.errors import WindlassError
from windlass.kube.client.clients import KubeClient
from windlass.kube.redactions import Redactor
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.kube.transport.transports import Response
from windlass.simulation.virtual_time import run, virtual_clock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from windlass.kube.transport.transports import ByteStream, Request

Answer = Response | Exception | None
"""None is a server that never answers."""


def ok(value: object = None, **headers: str) -> Response:
    return answer(200, value if value is not None else {}, **headers)


def answer(code: int, value: object, **headers: str) -> Response:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(code, {"Content-Type": "application/json", **named}, msgspec.json.encode(value))


def refusal(code: int, reason: str = "", message: str = "", details: object = None, **headers: str) -> Response:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details or {}}
    return answer(code, status, **headers)


class ScriptedServer:
    server = "scripted://"
    redactor = Redactor()

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []
        self.times: list[float] = []

    async def exchange(self, request: Request) -> Response:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        given = self._answers.pop(0)
        if given is None:
            await asyncio.Event().wait()
        if isinstance(given, Exception):
            raise given
        assert given is not None
        return given

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ByteStream]:
        yield _Whole(await self.exchange(request))

    async def close(self) -> None:
        assert not self._answers, "prepared answers were never asked for"

    @property
    def bodies(self) -> list[Any]:
        return [msgspec.json.decode(request.body) for request in self.requests if request.body is not None]


class _Whole:
    """A stream that delivers a prepared body in one piece and ends in good order."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body


def ask(
    answers: Sequence[Answer], question: Callable[[KubeClient], Awaitable[Any]], limits: CallLimits | None = None
) -> tuple[Any, ScriptedServer]:
    """Runs a question against prepared answers in virtual time: its result (or its error) and the server."""
    server = ScriptedServer(answers)

    async def main() -> Any:
        client = KubeClient(CallSender(server, clock=virtual_clock(), limits=limits))
        try:
            result: Any = await question(client)
        except WindlassError as error:
            result = error
        await client.close()
        return result

    return run(main()), server
