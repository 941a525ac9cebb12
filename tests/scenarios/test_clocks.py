"""The server's clock counts, not ours; and while we run, neither may step."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from windlass.cli.session import server_clock
from windlass.kube.clocks import Clock
from windlass.kube.redactions import Redactor
from windlass.kube.transport.calls import CallSender
from windlass.kube.transport.transports import Request, Response

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from windlass.kube.transport.transports import ByteStream

NOW = datetime(2026, 11, 15, 21, 0, 0, tzinfo=UTC)


@dataclass(slots=True)
class Server:
    """Answers everything with a date."""

    date: str
    server: str = "test:"
    asked: list[Request] = field(default_factory=list)
    redactor: Redactor = field(default_factory=Redactor)

    async def exchange(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(200, {"Date": self.date} if self.date else {}, b"{}")

    def stream(self, request: Request) -> AbstractAsyncContextManager[ByteStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("Sun, 15 Nov 2026 21:00:00 GMT", NOW),
        ("Sun, 15 Nov 2026 20:00:00 GMT", NOW - timedelta(hours=1)),
        ("Mon, 16 Nov 2026 21:00:00 GMT", NOW + timedelta(days=1)),
        ("Sun, 15 Nov 2026 21:00:00 -0000", NOW),
        ("yesterday", NOW),
        ("", NOW),
    ],
)
@pytest.mark.parametrize("step", [-600, 0, 600])
async def test_our_clock_is_put_right_and_does_not_step(date: str, expected: datetime, step: int) -> None:
    ours, passed = [NOW], [5.0]
    server = Server(date)
    now = await server_clock(CallSender(server, clock=Clock(now=lambda: ours[0], monotonic=lambda: passed[0])))
    assert now() == expected
    ours[0] += timedelta(seconds=step)
    passed[0] += 7
    assert now() == expected + timedelta(seconds=7)
    assert [request.method for request in server.asked] == ["GET"]
