"""Transports that stand between our client and the server, and make it a less obliging one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.kube.api_errors import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from windlass.kube.transport.transports import ByteStream, Request, Response, Transport


class Passing:
    """Hands everything on; keeps what was asked."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.asked: list[Request] = []
        self.redactor = inner.redactor

    @property
    def server(self) -> str:
        return self.inner.server

    async def exchange(self, request: Request) -> Response:
        self.asked.append(request)
        return await self.inner.exchange(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ByteStream]:
        self.asked.append(request)
        async with self.inner.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        await self.inner.close()


class WithoutAggregation(Passing):
    """Asks for plain JSON only, so that discovery goes from group to group."""

    async def exchange(self, request: Request) -> Response:
        headers = tuple((name, "application/json" if name == "Accept" else value) for name, value in request.headers)
        return await super().exchange(replace(request, headers=headers))


class WithoutInitialEvents(Passing):
    """Has the server refuse initial events, as one does that has never heard of resourceVersionMatch in a watch."""

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ByteStream]:
        older = replace(request, target=request.target.replace("sendInitialEvents=true&", ""))
        async with super().stream(older) as stream:
            yield stream


class Cutting(Passing):
    """Cuts every stream after some chunks, and counts the cuts."""

    def __init__(self, inner: Transport, after: int) -> None:
        super().__init__(inner)
        self.after = after
        self.cuts = 0

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ByteStream]:
        async with super().stream(request) as stream:
            yield _CutStream(stream, self)


class _CutStream:
    def __init__(self, inner: ByteStream, owner: Cutting) -> None:
        self._inner = inner
        self._owner = owner

    @property
    def status(self) -> int:
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._inner.chunks():
            count += 1
            if count > self._owner.after:
                self._owner.cuts += 1
                yield chunk[: len(chunk) // 2]
                raise ConnectionLost("cut on purpose")
            yield chunk
