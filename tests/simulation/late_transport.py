"""A transport that delivers chosen writes late, even if the sender has given up, or loses the Lease of the run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windlass.kube.api_errors import ConnectionLost, Unreachable
from windlass.sandbox.apiserver.faults import ConnectionSevered
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windlass.kube.transport.transports import Request
    from windlass.sandbox.apiserver.http_routes import HttpResponse
    from windlass.sandbox.apiserver.requests import UserInfo
    from windlass.sandbox.sandbox import Sandbox


class LateTransport(InProcessTransport):
    """`delays`: by number of the write, from 1, the seconds until it arrives.

    `lease_outage`: the number of the last write to the Lease that arrives, and the seconds until its answer does.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        user: UserInfo,
        agent: str,
        delays: Mapping[int, float],
        lease_outage: tuple[int, float] | None = None,
    ) -> None:
        super().__init__(sandbox, user, user_agent=agent)
        self._delays = delays
        self._lease_outage = lease_outage
        self._writes = self._lease_writes = 0
        self.on_arrival: Callable[[str], None] = lambda _: None
        self.on_lease_outage: Callable[[], None] = lambda: None

    async def _send(self, request: Request) -> HttpResponse:
        if request.method == "GET":
            return await super()._send(request)
        if self._lease_outage and "/leases/" in request.target:
            return await self._write_lease(request, *self._lease_outage)
        self._writes += 1
        delay = self._delays.get(self._writes, 0.0)
        if not delay:
            return await super()._send(request)
        answer: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._sandbox.start(self._deliver(request, delay, answer), name="late write")
        return await answer

    async def _write_lease(self, request: Request, last: int, delay: float) -> HttpResponse:
        self._lease_writes += 1
        if self._lease_writes > last:
            raise Unreachable("the connection was refused")
        answer = await super()._send(request)
        if self._lease_writes == last:
            self.on_lease_outage()
            await self._sandbox.clock.sleep(delay)
        return answer

    async def _deliver(self, request: Request, delay: float, answer: asyncio.Future[HttpResponse]) -> None:
        """Deliver a request, even if its sender has given up or crashed."""
        await self._sandbox.clock.sleep(delay)
        headers = {"User-Agent": self._user_agent, **dict(request.headers)}
        self.on_arrival(self._user_agent)
        try:
            result = await self._sandbox.handle(
                request.method, request.target, headers, request.body or b"", self._user
            )
            if not answer.done():
                answer.set_result(result)
        except ConnectionSevered:
            if not answer.done():
                answer.set_exception(ConnectionLost("connection lost after sending"))
        finally:
            self.on_arrival("")
