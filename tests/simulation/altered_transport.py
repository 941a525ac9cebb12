"""A transport that changes Applications and pods in the answers: a broken controller writes anything into a status."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.simulation.late_transport import LateTransport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from windlass.kube.transport.transports import Request
    from windlass.sandbox.apiserver.http_routes import HttpResponse

    Alteration = Callable[[dict[str, Any]], None]


class AlteredTransport(LateTransport):
    """`alter` changes each Application and each pod of an answer, of a list and of a watch, in place."""

    alter: Alteration | None = None
    replace_body: tuple[str, bytes] | None = None
    """What is replaced, `pod log` or `error body`, and the text that is sent instead."""

    async def _send(self, request: Request) -> HttpResponse:
        response = await super()._send(request)
        if self.replace_body and self.replace_body[0] == ("error body" if response.code >= 400 else "pod log"):
            return self._with_text(request, response, self.replace_body[1])
        is_altered = "/applications" in request.target or ("/pods" in request.target and "/log" not in request.target)
        if self.alter is None or not is_altered or response.code >= 300:
            return response
        if response.stream is not None:
            return replace(response, stream=self._altered_lines(response.stream))
        return replace(response, body=self._altered(response.body))

    def _with_text(self, request: Request, response: HttpResponse, text: bytes) -> HttpResponse:
        if response.code >= 400:
            status = {**json.loads(response.body), "message": text.decode()}
            return replace(response, body=json.dumps(status).encode())
        return replace(response, body=text) if "/log?" in request.target else response

    def _altered(self, content: bytes) -> bytes:
        document = json.loads(content)
        for item in document["items"] if "items" in document else [document.get("object", document)]:
            if self.alter is not None and item.get("status"):
                self.alter(item)
        return json.dumps(document).encode()

    async def _altered_lines(self, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The sandbox sends whole lines, one per event."""
        try:
            async for chunk in chunks:
                yield b"".join(self._altered(line) + b"\n" for line in chunk.splitlines())
        finally:
            await chunks.aclose()
