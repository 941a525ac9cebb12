"""The transport against real servers on 127.0.0.1."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import socket
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import client_exceptions
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from tests.kube.certificate_authorities import authority
from tests.kube.leaks import assert_hidden
from tests.kube.loopback_servers import Seen, answer, listening, proxying, refusing_port, serving
from windlass import __version__
from windlass.errors import InvalidInput
from windlass.kube import http
from windlass.kube.api_errors import BadAnswer, ConnectionLost, KubeError, Unreachable
from windlass.kube.clocks import Clock
from windlass.kube.connections import (
    BasicLogin,
    ClientCertificate,
    Connection,
    ExecPlugin,
    Impersonation,
    Login,
    Pem,
    Proxy,
    Tls,
    Token,
    TokenFile,
)
from windlass.kube.http import HttpTransport, Route, error_for
from windlass.kube.identities import Identity
from windlass.kube.transports import ByteStream, Request, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

GET = Request("GET", "/version")
LOGIN = Token("s3cret", "f: token")
CA = Pem(authority().pem, "f: clusters[c].cluster.certificate-authority-data")
TRUST = Tls(CA)
MINE = authority().issue("me")
NEW = authority().issue("me, renewed")


def certificate(pair: Any = MINE) -> ClientCertificate:
    return ClientCertificate(Pem(pair.certificate, "f: crt"), Pem(pair.key, "f: key"))


@asynccontextmanager
async def transport(
    server: str,
    *,
    tls: Tls = TRUST,
    login: Login | None = LOGIN,
    environ: dict[str, str] | None = None,
    clock: Clock | None = None,
    **fields: Any,
) -> AsyncIterator[HttpTransport]:
    opened = HttpTransport(Connection(server, "f", tls=tls, login=login, **fields), environ=environ or {}, clock=clock)
    try:
        yield opened
    finally:
        await opened.close()


def always(said: bytes) -> Callable[[Seen], bytes]:
    return lambda _: said


async def fails(kind: type[KubeError], server: str, **fields: Any) -> KubeError:
    """The error, after the checks that each error must pass."""
    async with transport(server, **fields) as http:
        with pytest.raises(kind) as caught:
            await http.exchange(GET)
        assert http._pool is None or http._pool.busy == 0
    assert caught.value.where.startswith(server)
    assert_hidden(caught.value, "s3cret", MINE.key.split(b"\n")[1])
    return caught.value


def test_it_is_a_transport() -> None:
    opened: Transport = HttpTransport(Connection("https://k:6443", "f"), environ={})
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
    return http._lasting_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1)))


async def test_no_credentials_without_a_login() -> None:
    async with serving(always(answer())) as server, transport(server.url, login=None) as http:
        await http.exchange(GET)
    assert server.seen[0].all("Authorization") == []


async def test_basic_login() -> None:
    async with serving(always(answer())) as server, transport(server.url, login=BasicLogin("me", "s3cret")) as http:
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


# What breaks


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


# TLS


async def test_our_authority_is_trusted() -> None:
    context = authority().server_context("127.0.0.1")
    async with serving(always(answer()), context) as server, transport(server.url) as http:
        assert (await http.exchange(GET)).status == 200


async def test_the_environment_s_authority_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(authority().pem)
    environ = {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}
    context = authority().server_context("127.0.0.1")
    async with serving(always(answer()), context) as server, transport(server.url, tls=Tls(), environ=environ) as http:
        assert (await http.exchange(GET)).status == 200


async def test_insecure_trusts_everybody() -> None:
    context = authority("stranger").server_context("elsewhere")
    async with serving(always(answer()), context) as server, transport(server.url, tls=Tls(insecure=True)) as http:
        assert (await http.exchange(GET)).status == 200


async def test_a_server_of_another_authority() -> None:
    async with serving(always(answer()), authority("stranger").server_context("127.0.0.1")) as server:
        error = await fails(Unreachable, server.url)
        assert error.what == f"the server's certificate is not signed by the authority in {CA.where}"
        error = await fails(Unreachable, server.url, tls=Tls())
        assert error.what == "the server's certificate is not signed by an authority that this system trusts"
    assert server.seen == []


async def test_a_server_of_another_name() -> None:
    async with serving(always(answer()), authority().server_context("kube.example", "10.0.0.1")) as server:
        error = await fails(Unreachable, server.url)
        assert error.what == "the server's certificate is for another name"
        async with transport(server.url, tls=Tls(CA, server_name="kube.example")) as http:
            assert (await http.exchange(GET)).status == 200
        await fails(Unreachable, server.url, tls=Tls(CA, server_name="other.example"))


async def test_a_server_whose_certificate_has_expired() -> None:
    context = authority().server_context("127.0.0.1", until=datetime(2021, 1, 1, tzinfo=UTC))
    async with serving(always(answer()), context) as server:
        error = await fails(Unreachable, server.url)
    assert error.what == "the server's certificate has expired"


async def test_a_server_without_tls() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an unknown request")

    async with listening(plain) as port:
        error = await fails(Unreachable, f"https://127.0.0.1:{port}")
    assert error.what == "the server does not speak TLS"


async def test_a_client_certificate_is_shown() -> None:
    context = authority().server_context("127.0.0.1", clients=authority().pem)
    tls = Tls(CA, certificate())
    async with serving(always(answer()), context) as server, transport(server.url, tls=tls, login=None) as http:
        await http.exchange(GET)
    assert "me" in str(server.seen[0].peer)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shown", [None, authority("stranger").issue("me")], ids=["none", "a stranger's"])
async def test_a_client_certificate_that_the_server_does_not_take(version: ssl.TLSVersion, shown: Any) -> None:
    context = authority().server_context("127.0.0.1", clients=authority().pem)
    context.maximum_version = version

    def refuse() -> None:  # in a thread, as asyncio's own server would drop the connection before the alert is out
        connection, _ = listener.accept()
        secured = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with pytest.raises(ssl.SSLError):
            secured.do_handshake()
        with socket.socket(fileno=secured.detach()) as bare:
            bare.shutdown(socket.SHUT_WR)
            while bare.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(refuse))
            server = f"https://127.0.0.1:{listener.getsockname()[1]}"
            error = await fails(Unreachable, server, tls=Tls(CA, certificate(shown) if shown else None))
    assert error.what.startswith("the server refused the TLS connection")


async def test_a_server_that_hangs_up_in_the_handshake() -> None:
    async def hang_up(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(10)

    async with listening(hang_up) as port:
        error = await fails(Unreachable, f"https://127.0.0.1:{port}")
    assert error.what in ("the other side hung up", "connection reset by peer")


async def test_a_client_certificate_that_is_none() -> None:
    broken = ClientCertificate(Pem(b"s3cret", "f: crt"), Pem(b"s3cret", "f: key"))
    async with transport("https://127.0.0.1:1", tls=Tls(CA, broken)) as http:
        with pytest.raises(InvalidInput) as caught:
            await http.exchange(GET)
    assert caught.value.where == "f: crt"
    assert_hidden(caught.value, "s3cret")


# Credentials


def only(token: str) -> Callable[[Seen], bytes]:
    return lambda seen: (
        answer() if seen.all("Authorization") == [f"Bearer {token}"] else answer(b"", "401 Unauthorized")
    )


async def test_a_rotated_token_file_is_used_after_a_minute(tmp_path: Path) -> None:
    file, seconds = tmp_path / "token", [0.0]
    file.write_text("one")
    clock, login = Clock(monotonic=lambda: seconds[0]), TokenFile(file, "f")
    async with serving(always(answer())) as server, transport(server.url, login=login, clock=clock) as http:
        await http.exchange(GET)
        file.write_text("two")
        await http.exchange(GET)
        seconds[0] = 60.0
        await http.exchange(GET)
    assert [seen.all("Authorization")[0] for seen in server.seen] == ["Bearer one", "Bearer one", "Bearer two"]
    assert {seen.connection for seen in server.seen} == {1}


async def test_a_rejected_token_is_renewed_and_the_request_sent_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    async with serving(only("two")) as server, transport(server.url, login=TokenFile(file, "f")) as http:
        assert (await http.exchange(GET)).status == 401
        file.write_text("two")
        assert (await http.exchange(Request("POST", "/x", body=b"sent"))).status == 200
        file.write_text("three")
        async with http.stream(GET) as stream:
            assert stream.status == 200
    assert [seen.body for seen in server.seen] == [b"", b"sent", b"sent", b""]


async def test_a_stream_is_opened_again_with_a_renewed_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    async with serving(only("two")) as server, transport(server.url, login=TokenFile(file, "f")) as http:
        async with http.stream(GET) as stream:
            assert stream.status == 401
        file.write_text("two")
        async with http.stream(GET) as stream:
            assert stream.status == 200
            assert [chunk async for chunk in stream.chunks()] == [b"{}"]


async def test_a_fixed_token_is_not_tried_twice() -> None:
    async with serving(only("other")) as server, transport(server.url) as http:
        assert (await http.exchange(GET)).status == 401
    assert len(server.seen) == 1


def plugin(directory: Path, text: str) -> ExecPlugin:
    command = directory / "login"
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(0o755)
    return ExecPlugin(str(command), "client.authentication.k8s.io/v1", "f")


TELL = "cat {0}/answer && exec cat > /dev/null"
CREDENTIAL = '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{}"}}}}'


async def test_a_plugin_is_asked_again_after_a_rejection(tmp_path: Path) -> None:
    login = plugin(tmp_path, TELL.format(tmp_path))
    (tmp_path / "answer").write_text(CREDENTIAL.format("one"))
    environ = {"PATH": "/usr/bin:/bin"}
    async with serving(only("two")) as server, transport(server.url, login=login, environ=environ) as http:
        assert (await http.exchange(GET)).status == 401
        (tmp_path / "answer").write_text(CREDENTIAL.format("two"))
        assert (await http.exchange(GET)).status == 200
        (tmp_path / "answer").unlink()
        assert (await http.exchange(GET)).status == 200


async def test_a_plugin_that_fails_after_a_rejection(tmp_path: Path) -> None:
    login = plugin(tmp_path, TELL.format(tmp_path))
    (tmp_path / "answer").write_text(CREDENTIAL.format("s3cret"))
    environ = {"PATH": "/usr/bin:/bin"}
    async with serving(only("other")) as server, transport(server.url, login=login, environ=environ) as http:
        await http.exchange(GET)
        (tmp_path / "answer").unlink()
        with pytest.raises(Unreachable, match="failed with exit code 1") as caught:
            await http.exchange(GET)
    assert caught.value.where == "exec plugin login (kubeconfig f)"
    assert_hidden(caught.value, "s3cret")


class Changing:
    """Credentials that a test changes."""

    def __init__(self, identity: Identity) -> None:
        self.now = identity

    async def identity(self) -> Identity:
        return self.now

    async def renew(self, rejected: Identity) -> bool:
        return self.now is not rejected


async def test_another_client_certificate_needs_new_connections_and_disturbs_nobody() -> None:
    def watch_or_answer(seen: Seen) -> bytes:
        if "watch" in seen.line:
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
        return answer()

    context = authority().server_context("127.0.0.1", clients=authority().pem)
    async with serving(watch_or_answer, context) as server, transport(server.url) as http:
        credentials = Changing(Identity("", certificate(MINE)))
        http._credentials = credentials
        async with http.stream(Request("GET", "/watch")) as stream:
            await http.exchange(GET)
            credentials.now = Identity("", certificate(NEW))
            await http.exchange(GET)
            assert await anext(stream.chunks()) == b"one"
            assert len(http._retired) == 1
        assert len(http._retired) == 0
        credentials.now = Identity("", certificate(NEW))
        await http.exchange(GET)
        credentials.now = Identity("", certificate(MINE))
        await http.exchange(GET)
        async with http.stream(Request("GET", "/watch")):
            credentials.now = Identity("", certificate(NEW))
            await http.exchange(GET)
            await http.close()
    names = ["renewed" if "renewed" in str(seen.peer) else "first" for seen in server.seen]
    assert names == ["first", "first", "renewed", "renewed", "first", "first", "renewed"]
    assert server.seen[2].connection == server.seen[3].connection


# Proxies


async def test_a_proxy_of_the_kubeconfig_with_a_password() -> None:
    context = authority().server_context("127.0.0.1")
    async with serving(always(answer()), context) as server, proxying(server.port, "Basic bWU6czNjcmV0") as proxy:
        login = Proxy(proxy.url, "me:s3cret")
        async with transport(server.url, proxy=login, environ={"NO_PROXY": "*"}) as http:
            assert (await http.exchange(GET)).status == 200
    assert proxy.seen[0].line == f"CONNECT 127.0.0.1:{server.port} HTTP/1.1"
    assert proxy.seen[0].all("Authorization") == []
    assert server.seen[0].all("Proxy-Authorization") == []
    assert server.seen[0].all("Authorization") == ["Bearer s3cret"]


async def test_a_proxy_of_the_environment_and_a_server_name() -> None:
    context = authority().server_context("inner.example")
    async with serving(always(answer()), context) as server, proxying(server.port) as proxy:
        tls = Tls(CA, server_name="inner.example")
        async with transport("https://kube.invalid:6443", tls=tls, environ={"HTTPS_PROXY": proxy.url}) as http:
            assert (await http.exchange(GET)).status == 200
    assert proxy.seen[0].line == "CONNECT kube.invalid:6443 HTTP/1.1"


async def test_loopback_is_reached_without_the_environment_s_proxy() -> None:
    environ = {"HTTP_PROXY": "http://127.0.0.1:1"}
    async with serving(always(answer())) as server, transport(server.url, environ=environ) as http:
        assert (await http.exchange(GET)).status == 200


async def test_plain_http_through_a_proxy_with_a_password() -> None:
    async with proxying(1, "Basic bWU6czNjcmV0") as proxy:
        environ = {"HTTP_PROXY": proxy.url.replace("://", "://me:s3cret@")}
        async with transport("http://kube.invalid", environ=environ) as http:
            assert (await http.exchange(GET)).body == b"from the proxy"
    assert proxy.seen[0].line == "GET http://kube.invalid/version HTTP/1.1"


async def test_a_proxy_that_wants_a_password() -> None:
    async with proxying(1, "Basic bWU6czNjcmV0") as proxy:
        for login in (Proxy(proxy.url), Proxy(proxy.url, "me:wr0ng")):
            error = await fails(Unreachable, "https://kube.invalid:6443", proxy=login)
            assert error.what == "the proxy refused: HTTP 407"
            assert error.where == f"https://kube.invalid:6443 through the proxy {proxy.url}"
            assert error.hint == "give user and password in the proxy's URL"
            assert_hidden(error, "wr0ng")


async def test_a_proxy_that_is_not_there() -> None:
    for port in refusing_port():
        error = await fails(Unreachable, "https://kube.invalid", proxy=Proxy(f"http://127.0.0.1:{port}", "me:s3cret"))
        assert error.what == "the proxy cannot be reached: connection refused"


async def test_a_server_behind_a_proxy_must_be_trusted_too() -> None:
    context = authority("stranger").server_context("kube.invalid")
    async with serving(always(answer()), context) as server, proxying(server.port) as proxy:
        error = await fails(Unreachable, "https://kube.invalid", proxy=Proxy(proxy.url))
    assert error.what.startswith("the server's certificate is not signed by")


def test_a_proxy_that_cannot_be_used_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match="socks5"):
        HttpTransport(Connection("https://k", "f"), environ={"HTTPS_PROXY": "socks5://p"})


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
    error = error_for(kind(*arguments), Route("https://k", "http://p"))
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
    mapped = error_for(error, Route("https://k"))
    assert type(mapped) is kind
    assert mapped.where == "https://k"
