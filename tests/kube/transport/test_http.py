"""The transport against real servers on 127.0.0.1."""

from __future__ import annotations

import gzip
import socket
import zlib
from typing import TYPE_CHECKING

import pytest

from tests.kube.http_clients import GET, always, fails, transport
from tests.kube.loopback_servers import Seen, answer, serving
from windlass import __version__
from windlass.kube.api_errors import BadAnswer, ConnectionLost
from windlass.kube.auth.connections import (
    BasicAuth,
    Connection,
    Impersonation,
)
from windlass.kube.transport import http
from windlass.kube.transport.calls import Call, CallSender
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.transports import ByteStream, Request, Transport, read_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def test_it_is_a_transport() -> None:
    opened: Transport = HttpTransport(Connection("https://k:6443", "f"))
    assert opened.server == "https://k:6443"


async def test_one_exchange() -> None:
    request = Request("PATCH", "/api/v1/x%2Fy:z?a=%2B1&b=%20", (("Content-Type", "text/x"),), b"sent")
    said = answer(b"body", "201 Created", "Retry-After: 7")
    async with serving(always(said)) as server, transport(server.url + "/prefix") as http:
        response = await http.exchange(request)
    assert (response.status, response.body, response.headers["Retry-After"]) == (201, b"body", "7")
    seen = server.seen[0]
    assert seen.line == "PATCH /prefix/api/v1/x%2Fy:z?a=%2B1&b=%20 HTTP/1.1"
    assert seen.body == b"sent"
    assert seen.all("Authorization") == ["Bearer s3cret"]
    assert seen.all("Content-Type") == ["text/x"]
    assert seen.all("User-Agent") == [f"windlass/{__version__}"]
    assert seen.all("Accept-Encoding") == ["gzip"]


async def test_connections_are_kept_and_ask_the_system_whether_the_other_side_lives() -> None:
    async with serving(always(answer())) as server, transport(server.url) as http:
        for _ in range(3):
            await http.exchange(GET)
    assert [seen.connection for seen in server.seen] == [1, 1, 1]
    with http_socket() as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


def http_socket() -> socket.socket:
    return http._keepalive_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1)))


async def test_no_credentials_without_a_login() -> None:
    async with serving(always(answer())) as server, transport(server.url, login=None) as http:
        await http.exchange(GET)
    assert server.seen[0].all("Authorization") == []


async def test_basic_login() -> None:
    async with serving(always(answer())) as server, transport(server.url, login=BasicAuth("me", "s3cret")) as http:
        await http.exchange(GET)
    assert server.seen[0].all("Authorization") == ["Basic bWU6czNjcmV0"]


async def test_impersonation() -> None:
    extra = (("Scopes", ("x", "y")), ("acme.com/Project%", ("z",)))
    her = Impersonation("her", "7", ("a", "b"), extra)
    async with serving(always(answer())) as server, transport(server.url, impersonation=her) as http:
        await http.exchange(GET)
    seen = server.seen[0]
    assert seen.all("Impersonate-User") == ["her"]
    assert seen.all("Impersonate-Uid") == ["7"]
    assert seen.all("Impersonate-Group") == ["a", "b"]
    assert seen.all("Impersonate-Extra-scopes") == ["x", "y"]
    assert seen.all("Impersonate-Extra-acme.com%2Fproject%25") == ["z"]


async def test_only_the_user_is_impersonated() -> None:
    async with serving(always(answer())) as server, transport(server.url, impersonation=Impersonation("her")) as http:
        await http.exchange(GET)
    assert [name for name, _ in server.seen[0].fields if name.startswith("Impersonate")] == ["Impersonate-User"]


async def test_gzip_is_unpacked() -> None:
    packed = answer(gzip.compress(b"long" * 1000), "200 OK", "Content-Encoding: gzip")
    async with serving(always(packed)) as server, transport(server.url) as http:
        assert (await http.exchange(GET)).body == b"long" * 1000


async def test_a_small_answer_that_unpacks_to_a_large_one_is_refused() -> None:
    """Three hundred kilobytes of gzip are 257 MiB: they are never all in memory."""
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join([packer.compress(bytes(1 << 20)) for _ in range(257)]) + packer.flush()
    assert len(packed) < 1 << 19
    for status in ("200 OK", "500 Error"):
        bomb = answer(packed, status, "Content-Encoding: gzip")
        async with serving(always(bomb)) as server, transport(server.url) as http:
            with pytest.raises(BadAnswer, match="larger than 256 MiB") as caught:
                await CallSender(http).send(Call("get", "version", GET))
        assert caught.value.where == f"get version at {server.url}/version"


@pytest.mark.parametrize("sizes", [(10,), (4, 6), (0,)])
async def test_a_body_up_to_the_limit_is_read(sizes: tuple[int, ...]) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for size in sizes:
            yield b"x" * size

    assert await read_body(chunks(), limit=10) == b"x" * sum(sizes)
    with pytest.raises(BadAnswer, match="larger than"):
        await read_body(chunks(), limit=sum(sizes) - 1)


async def test_broken_gzip_is_a_broken_answer() -> None:
    async with serving(always(answer(b"no gzip", "200 OK", "Content-Encoding: gzip"))) as server:
        await fails(ConnectionLost, server.url)


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    async with serving(always(answer())) as elsewhere:
        there = f"Location: {elsewhere.url}/x"
        async with (
            serving(always(answer(b"", "307 Temporary Redirect", there))) as server,
            transport(server.url) as http,
        ):
            assert (await http.exchange(GET)).status == 307
    assert elsewhere.seen == []


async def test_cookies_are_not_kept() -> None:
    async with serving(always(answer(b"", "200 OK", "Set-Cookie: a=b"))) as server, transport(server.url) as http:
        await http.exchange(GET)
        await http.exchange(GET)
    assert server.seen[1].all("Cookie") == []


# Streams


async def test_a_stream_comes_in_pieces_and_ends() -> None:
    said = b"HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    async with serving(always(said)) as server, transport(server.url) as http:
        async with http.stream(GET) as stream:
            typed: ByteStream = stream
            assert (typed.status, typed.headers["X-A"]) == (200, "b")
            assert b"".join([chunk async for chunk in stream.chunks()]) == b"onetwo"
        async with http.stream(GET) as stream:
            pass
    assert server.seen[1].connection == 1


async def test_a_stream_that_is_left_gives_up_its_connection_but_not_the_others() -> None:
    def endless(seen: Seen) -> bytes:
        if "watch" in seen.line:
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
        return answer()

    async with serving(endless) as server, transport(server.url) as http:
        async with http.stream(Request("GET", "/watch")) as stream:
            assert await anext(stream.chunks()) == b"one"
            assert (await http.exchange(GET)).status == 200
        assert (await http.exchange(GET)).status == 200
    assert [seen.connection for seen in server.seen] == [1, 2, 2]


async def test_an_error_of_the_reader_passes_through_a_stream() -> None:
    async with serving(always(answer())) as server, transport(server.url) as http:
        with pytest.raises(OSError, match="mine"):
            async with http.stream(GET):
                raise OSError("mine")


CUT = [
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nshort", id="short of its length"),
    pytest.param(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nshort\r\n",
        id="without last chunk",
    ),
]


@pytest.mark.parametrize("said", CUT)
async def test_a_body_that_ends_before_its_time_is_a_lost_connection(said: bytes) -> None:
    async with serving(always(said)) as server:
        error = await fails(ConnectionLost, server.url)
        assert "broke before the answer was complete" in error.what
        async with transport(server.url) as http, http.stream(GET) as stream:
            with pytest.raises(ConnectionLost) as caught:
                [chunk async for chunk in stream.chunks()]
        assert caught.value.where == server.url
