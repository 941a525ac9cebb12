"""`InProcessTransport`: connects the client to a sandbox in the same process, and simulates a crash of the client."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from windlass.kube.api_errors import ConnectionLost, Unreachable
from windlass.kube.redactions import Redactor
from windlass.kube.transport.transports import Response
from windlass.sandbox.apiserver.faults import ConnectionSevered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.kube.transport.transports import ByteStream, Request
    from windlass.sandbox.apiserver.http_routes import HttpResponse
    from windlass.sandbox.apiserver.requests import OpenWatch, UserInfo
    from windlass.sandbox.sandbox import Sandbox

USER_AGENT = "windlass"


class ProcessCrashed(Unreachable):
    """Raised for every request after the simulated crash of the process."""

    def __init__(self) -> None:
        super().__init__("the process has crashed", temporary=False)


class InProcessTransport:
    """Implements `Transport`. After `crash()` every call raises, so that no `finally` block can clean up."""

    def __init__(self, sandbox: Sandbox, user: UserInfo, *, user_agent: str = USER_AGENT) -> None:
        self._sandbox = sandbox
        self._user = user
        self._user_agent = user_agent
        self.redactor = Redactor()  # without known secrets: there are no credentials
        self._has_crashed = False
        self._watches: list[OpenWatch] = []

    @property
    def server(self) -> str:
        return "sandbox:"

    def crash(self) -> None:
        self._has_crashed = True
        for watch in self._watches:
            watch.disrupt("cut")

    async def exchange(self, request: Request) -> Response:
        answer = await self._send(request)
        body = answer.body
        if answer.stream is not None:
            body = b"".join([chunk async for chunk in answer.stream])
        if self._has_crashed:
            raise ProcessCrashed
        return Response(answer.code, dict(answer.headers), body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ByteStream]:
        answer = await self._send(request)
        if answer.watch is None or answer.stream is None:
            yield _ResponseStream(answer)
            return
        self._watches.append(answer.watch)
        try:
            yield _ResponseStream(answer)
        finally:
            self._watches.remove(answer.watch)
            await answer.stream.aclose()

    async def close(self) -> None:
        return

    async def _send(self, request: Request) -> HttpResponse:
        if self._has_crashed:
            raise ProcessCrashed
        headers = {"User-Agent": self._user_agent, **dict(request.headers)}
        try:
            await asyncio.sleep(0)  # noqa: TID251 - lets other tasks run, as a network call would
            return await self._sandbox.handle(request.method, request.target, headers, request.body or b"", self._user)
        except ConnectionSevered as severed:
            raise _connection_error(severed) from None


class _ResponseStream:
    def __init__(self, answer: HttpResponse) -> None:
        self.status = answer.code
        self.headers = dict(answer.headers)
        self._answer = answer

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._answer.stream is None:
            yield self._answer.body
            return
        try:
            async for chunk in self._answer.stream:
                yield chunk
        except ConnectionSevered as severed:
            raise _connection_error(severed) from None


def _connection_error(severed: ConnectionSevered) -> ConnectionLost | Unreachable:
    return ConnectionLost(str(severed)) if severed.sent else Unreachable(str(severed))
