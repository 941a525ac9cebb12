"""What breaks on the way to a server, and what the transport makes of it."""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp import client_exceptions
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from tests.kube.http_clients import GET, always, fails, transport
from tests.kube.leaks import assert_hidden
from tests.kube.loopback_servers import Seen, answer, listening, refusing_port, serving
from windlass.kube.api_errors import BadAnswer, ConnectionLost, KubeError, Unreachable
from windlass.kube.transport import http
from windlass.kube.transport.http import HttpTransport, Route, translate_error
from windlass.kube.transport.transports import Request


async def test_a_connection_that_ends_without_an_answer_is_lost_and_nothing_is_sent_again() -> None:
    def hang_up_on_the_second(_: Seen) -> bytes:
        return answer() if len(server.seen) == 1 else b""

    async with serving(hang_up_on_the_second) as server, transport(server.url) as http:
        await http.exchange(GET)
        for method in ("DELETE", "PUT", "GET"):
            with pytest.raises(ConnectionLost):
                await http.exchange(Request(method, "/x"))
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20_000 + b"\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nshort\r\nxx\r\n",
    ],
    ids=["ssh", "no status", "long header", "bad header", "bad length", "no chunk"],
)
async def test_garbage_is_a_bad_answer(said: bytes) -> None:
    async with serving(always(said)) as server:
        await fails(BadAnswer, server.url)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_nobody_listens(scheme: str) -> None:
    for port in refusing_port():
        error = await fails(Unreachable, f"{scheme}://127.0.0.1:{port}")
        assert error.what == "connection refused"
        assert error.hint == "is the server running, and is this its address?"


async def test_a_name_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = await fails(Unreachable, "https://windlass.invalid:6443")
    assert error.what == "the name windlass.invalid cannot be resolved"


async def test_a_server_that_says_nothing_in_the_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CONNECT_SECONDS", 0.2)

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        await asyncio.Event().wait()

    async with listening(silent) as port:
        error = await fails(Unreachable, f"https://127.0.0.1:{port}")
    assert error.what == "no connection within 0.2 s"


async def test_the_caller_s_deadline_stays_the_caller_s() -> None:
    async def silent(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with listening(silent) as port, transport(f"http://127.0.0.1:{port}") as http:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await http.exchange(GET)


async def test_closing_breaks_what_is_under_way_and_opens_nothing_again() -> None:
    arrived = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(10)
        arrived.set()
        await asyncio.Event().wait()

    async with listening(silent) as port, transport(f"http://127.0.0.1:{port}") as http:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(_error_of(http))
            await arrived.wait()
            await http.close()
        assert isinstance(waiting.result(), ConnectionLost)
        with pytest.raises(RuntimeError, match="closed"):
            await http.exchange(GET)


async def _error_of(http: HttpTransport) -> BaseException:
    with pytest.raises(KubeError) as caught:
        await http.exchange(GET)
    return caught.value


# The mapping is total


SECRET_HEADERS = CIMultiDictProxy(CIMultiDict({"Authorization": "Bearer s3cret"}))
REQUEST = aiohttp.RequestInfo(URL("https://k"), "GET", SECRET_HEADERS, URL("https://k"))
KEY = aiohttp.client_reqrep.ConnectionKey("k", 443, True, True, None, None, None)
DISTRUST = ssl.SSLCertVerificationError(1, "no")
DISTRUST.verify_code, DISTRUST.verify_message = 99, "no"
ARGUMENTS: dict[type[Exception], tuple[Any, ...]] = {
    aiohttp.ClientResponseError: (REQUEST, ()),
    client_exceptions.UnixClientConnectorError: ("path", KEY, OSError(1, "no")),
    aiohttp.ClientConnectorCertificateError: (KEY, DISTRUST),
    aiohttp.ClientConnectorError: (KEY, OSError(1, "no")),
    aiohttp.ServerFingerprintMismatch: (b"", b"", "k", 443),
    aiohttp.InvalidURL: ("https://me:s3cret@k",),
    HttpProcessingError: (),
}
EXPECTED: dict[str, type[KubeError]] = {
    "ClientConnectionError": ConnectionLost,
    "ClientConnectionResetError": ConnectionLost,
    "ClientConnectorCertificateError": Unreachable,
    "ClientConnectorDNSError": Unreachable,
    "ClientConnectorError": Unreachable,
    "ClientConnectorSSLError": Unreachable,
    "ClientError": BadAnswer,
    "ClientHttpProxyError": Unreachable,
    "ClientOSError": ConnectionLost,
    "ClientPayloadError": ConnectionLost,
    "ClientProxyConnectionError": Unreachable,
    "ClientResponseError": BadAnswer,
    "ClientSSLError": Unreachable,
    "ConnectionTimeoutError": Unreachable,
    "ContentTypeError": BadAnswer,
    "InvalidURL": Unreachable,
    "InvalidUrlClientError": Unreachable,
    "InvalidUrlRedirectClientError": Unreachable,
    "NonHttpUrlClientError": Unreachable,
    "NonHttpUrlRedirectClientError": Unreachable,
    "RedirectClientError": BadAnswer,
    "ServerConnectionError": ConnectionLost,
    "ServerDisconnectedError": ConnectionLost,
    "ServerFingerprintMismatch": Unreachable,
    "ServerTimeoutError": ConnectionLost,
    "SocketTimeoutError": ConnectionLost,
    "TooManyRedirects": BadAnswer,
    "UnixClientConnectorError": Unreachable,
    "UploadAbortedError": ConnectionLost,
    "WSMessageTypeError": BadAnswer,
    "WSServerHandshakeError": BadAnswer,
}
CLASSES = sorted(
    (kind for _, kind in inspect.getmembers(client_exceptions, inspect.isclass) if issubclass(kind, Exception)),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind.__module__ == client_exceptions.__name__])
def test_every_error_of_the_http_library_has_ours(kind: type[Exception]) -> None:
    arguments = next((given for base, given in ARGUMENTS.items() if issubclass(kind, base)), ("s3cret",))
    error = translate_error(kind(*arguments), Route("https://k", "http://p"))
    assert type(error) is EXPECTED[kind.__name__]
    assert error.where == "https://k through the proxy http://p"
    assert_hidden(error, "s3cret")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (BadStatusLine("s3cret"), BadAnswer),
        (ConnectionResetError(104, "reset"), ConnectionLost),
        (ssl.SSLError(1, "[SSL] s3cret"), ConnectionLost),
        (OSError("s3cret"), ConnectionLost),
    ],
)
def test_errors_from_below_the_http_library_have_ours_too(error: Exception, kind: type[KubeError]) -> None:
    mapped = translate_error(error, Route("https://k"))
    assert type(mapped) is kind
    assert mapped.where == "https://k"
