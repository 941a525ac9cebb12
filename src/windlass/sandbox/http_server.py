"""HTTP server for the sandbox on 127.0.0.1. The only module of the sandbox that imports the HTTP library."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from windlass.sandbox.apiserver.faults import Severed

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from windlass.sandbox.apiserver.http_routes import Answer
    from windlass.sandbox.sandbox import Sandbox

HOST = "127.0.0.1"


@asynccontextmanager
async def served(sandbox: Sandbox, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve while the context is open; yields the URL. Port 0 picks a free port."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        try:
            body = await request.content.read()
            headers = {name: ",".join(request.headers.getall(name)) for name in dict.fromkeys(request.headers)}
            answer = await sandbox.handle(request.method, request.raw_path, headers, body)
            if answer.stream is None:
                return web.Response(status=answer.code, body=answer.body, headers=answer.headers)
            return await _stream(request, answer)
        except Severed:
            if request.transport is not None:
                request.transport.abort()
            raise asyncio.CancelledError from None

    server = web.Server(answer, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, HOST, port, ssl_context=tls)
    await site.start()
    try:
        bound = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://{HOST}:{bound}"
    finally:
        await runner.cleanup()


async def _stream(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.code, headers=answer.headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    assert answer.stream is not None
    try:
        async for chunk in answer.stream:
            await response.write(chunk)
        await response.write_eof()
    except ConnectionResetError:
        pass
    finally:
        await answer.stream.aclose()
    return response
