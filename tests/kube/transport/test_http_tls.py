"""Trust in both directions, against real servers, and through proxies."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.certificate_authorities import authority
from tests.kube.leaks import assert_hidden
from tests.kube.loopback_servers import answer, listening, proxying, refusing_port, serving
from windlass.errors import InvalidInput
from windlass.kube.api_errors import Unreachable
from windlass.kube.auth.connections import (
    ClientCertificate,
    Connection,
    Pem,
    Proxy,
    Tls,
)
from windlass.kube.transport.http import HttpTransport

if TYPE_CHECKING:
    from pathlib import Path

from tests.kube.http_clients import CA, GET, always, certificate, fails, transport


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
        async with transport("http://kube.invalid", login=None, environ=environ) as http:
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
        HttpTransport(Connection("https://k", "f", environ={"HTTPS_PROXY": "socks5://p"}))
