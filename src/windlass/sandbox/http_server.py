"""HTTP server for the sandbox on 127.0.0.1. The only module of the sandbox that imports the HTTP library."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from windlass.sandbox.apiserver.faults import ConnectionSevered

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from windlass.sandbox.apiserver.http_routes import HttpResponse
    from windlass.sandbox.sandbox import Sandbox

HOST = "127.0.0.1"


@asynccontextmanager
async def serve_http(sandbox: Sandbox, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve while the context is open; yields the URL. Port 0 picks a free port."""

    async def handle_request(request: web.BaseRequest) -> web.StreamResponse:
        try:
            body = await request.content.read()
            headers = {name: ",".join(request.headers.getall(name)) for name in dict.fromkeys(request.headers)}
            response = await sandbox.handle(request.method, request.raw_path, headers, body)
            if response.stream is None:
                return web.Response(status=response.code, body=response.body, headers=response.headers)
            return await _send_stream(request, response)
        except ConnectionSevered:
            if request.transport is not None:
                request.transport.abort()
            raise asyncio.CancelledError from None

    server = web.Server(handle_request, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, HOST, port, ssl_context=tls)
    await site.start()
    try:
        bound_port = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://{HOST}:{bound_port}"
    finally:
        await runner.cleanup()


async def _send_stream(request: web.BaseRequest, response: HttpResponse) -> web.StreamResponse:
    stream_response = web.StreamResponse(status=response.code, headers=response.headers)
    stream_response.enable_chunked_encoding()
    await stream_response.prepare(request)
    assert response.stream is not None
    try:
        async for chunk in response.stream:
            await stream_response.write(chunk)
        await stream_response.write_eof()
    except ConnectionResetError:
        pass
    finally:
        await response.stream.aclose()
    return stream_response
