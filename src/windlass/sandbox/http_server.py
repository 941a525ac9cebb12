"""HTTP server for the sandbox on 127.0.0.1. The only module of the sandbox that imports the HTTP library.

It answers every client that can connect, so it first refuses what a web page may send; tokens identify the others.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from windlass.sandbox.apiserver import http_routes
from windlass.sandbox.apiserver.access.browser_requests import reject_foreign_pages
from windlass.sandbox.apiserver.faults import ConnectionSevered
from windlass.sandbox.apiserver.wire.api_status import StatusError

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
            response = await _handle(sandbox, request, runner.addresses[0][1])
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


async def _handle(sandbox: Sandbox, request: web.BaseRequest, port: int) -> HttpResponse:
    headers = {name.title(): ",".join(request.headers.getall(name)) for name in dict.fromkeys(request.headers)}
    try:
        reject_foreign_pages(headers, port)
        return await sandbox.handle(request.method, request.raw_path, headers, await _read_body(request))
    except StatusError as error:
        return http_routes.error_response(error)
    except Exception as error:
        if sandbox.report_error is None or isinstance(error, ConnectionSevered):
            raise
        sandbox.report_error(f"{request.method} {request.path}: {type(error).__name__}: {error}")
        return http_routes.error_response(StatusError(500, "InternalError", "Internal error occurred", {}))


async def _read_body(request: web.BaseRequest) -> bytes:
    """The body up to the first chunk beyond the limit, at which the request is refused."""
    body = b""
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > http_routes.MAX_BODY_BYTES:
            break
    return body


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
