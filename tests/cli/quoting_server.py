"""A server in front of a sandbox that quotes texts in every message of its answers, and checks who asks.

Each message gets a few of the texts only, the next message the following ones: a message that quoted all of them would
be cut before it is shown.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, web

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

QUOTED_LENGTH = 700  # characters; a longer message of a diagnosis or a log line is cut
DROPPED_HEADERS = {"Host", "Authorization", "Accept-Encoding", "Content-Length", "Transfer-Encoding"}


@dataclass
class QuotingServer:
    texts: list[str]
    sandbox: str
    """The address of the sandbox."""
    token: str
    """Of the sandbox: what a client sends does not go further."""
    is_accepted: Callable[[str], bool]
    """Whether a request with this `Authorization` is answered; the others get 401."""
    is_broken: bool = False
    """Whether every request but that for the version fails."""
    port: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    """The path and the `Authorization` of each."""

    def __post_init__(self) -> None:
        self._texts = cycle(self.texts)

    def quote(self) -> str:
        quoted = next(self._texts)
        for text in islice(self._texts, len(self.texts) - 1):
            if len(quoted) + len(text) > QUOTED_LENGTH:
                break
            quoted += f" | {text}"
        return quoted

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        authorization = request.headers.get("Authorization", "")
        self.requests.append((request.path, authorization))
        if not self.is_accepted(authorization):
            return self.refuse(401, "Unauthorized")
        if self.is_broken and request.path != "/version":
            return (
                self.refuse(403, "Forbidden") if len(self.requests) % 2 else web.Response(status=400, text=self.quote())
            )
        headers = {name: value for name, value in request.headers.items() if name.title() not in DROPPED_HEADERS}
        headers["Authorization"] = f"Bearer {self.token}"
        async with (
            ClientSession(auto_decompress=True) as session,
            session.request(
                request.method, self.sandbox + request.raw_path, headers=headers, data=await request.read()
            ) as received,
        ):
            kind = received.headers.get("Content-Type", "")
            if "watch=1" in request.raw_path and received.status == 200:
                return await self.send_lines(request, received.content, kind)
            body = await received.read()
            if request.path.endswith("/log"):
                body = "\n".join(self.quote() for _ in range(20)).encode()
            elif "json" in kind:
                body = self.quoting(body)
            return web.Response(status=received.status, body=body, headers={"Content-Type": kind})

    async def send_lines(self, request: web.BaseRequest, lines: Any, kind: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        buffered = b""
        async for chunk in lines.iter_any():
            *whole, buffered = (buffered + chunk).split(b"\n")
            for line in whole:
                await response.write(self.quoting(line) + b"\n")
        return response

    def refuse(self, code: int, reason: str) -> web.Response:
        status = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": self.quote()}
        return web.json_response(status, status=code)

    def quoting(self, content: bytes) -> bytes:
        document = json.loads(content)
        self.alter(document)
        return json.dumps(document).encode()

    def alter(self, tree: Any) -> None:
        """Quote in all messages below `tree`, and in those that a healthy Application does not have."""
        if isinstance(tree, list):
            for each in tree:
                self.alter(each)
        elif isinstance(tree, dict):
            if isinstance(tree.get("message"), str):
                tree["message"] += f" {self.quote()}"
            for each in tree.values():
                self.alter(each)
            if isinstance(status := tree.get("status"), dict) and "health" in status:
                status["health"] = {**status["health"], "message": self.quote()}
                warnings = [{"type": "RepeatedResourceWarning", "message": self.quote()} for _ in range(3)]
                status["conditions"] = [*(status.get("conditions") or ()), *warnings]
            if "gitVersion" in tree:
                tree["gitVersion"] = self.quote()
            if isinstance(tree.get("userInfo"), dict):
                tree["userInfo"] = {"username": self.quote(), "groups": [self.quote()]}


@asynccontextmanager
async def serve_quotes(server: QuotingServer, tls: ssl.SSLContext) -> AsyncIterator[QuotingServer]:
    runner = web.ServerRunner(web.Server(server.answer, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
