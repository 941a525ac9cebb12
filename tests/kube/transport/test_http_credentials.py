"""Credentials that change while requests are under way."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kube.certificate_authorities import authority
from tests.kube.leaks import assert_hidden
from tests.kube.loopback_servers import Seen, answer, proxying, serving
from tests.secret_forms import written_forms
from windlass.errors import InvalidInput
from windlass.kube.api_errors import Unreachable
from windlass.kube.auth.auth_headers import ClientIdentity
from windlass.kube.auth.connections import (
    BasicAuth,
    Connection,
    ExecPlugin,
    Proxy,
    Tls,
    Token,
    TokenFile,
)
from windlass.kube.clocks import Clock
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.kube.auth.connections import AuthMethod

from tests.kube.http_clients import CA, GET, MINE, NEW, always, certificate, transport


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


SECRET = "s3cret<&>/%20"
FIXED: dict[str, tuple[AuthMethod, list[str]]] = {
    "token": (Token(SECRET, "f"), [SECRET]),
    "password": (BasicAuth("me", SECRET), [SECRET, base64.b64encode(f"me:{SECRET}".encode()).decode()]),
}


@pytest.mark.parametrize("kind", FIXED)
async def test_the_redactor_learns_fixed_credentials(kind: str) -> None:
    login, secrets = FIXED[kind]
    async with serving(always(answer())) as server, transport(server.url, login=login) as http:
        await http.exchange(GET)
    for form in written_forms(secrets):
        assert http.redactor(f"it was {form} there") == "it was [redacted] there"


async def test_the_redactor_learns_each_token_of_a_file_and_of_a_plugin(tmp_path: Path) -> None:
    for login in (TokenFile(tmp_path / "answer", "f"), plugin(tmp_path, TELL.format(tmp_path))):
        wrap = str if isinstance(login, TokenFile) else CREDENTIAL.format
        (tmp_path / "answer").write_text(wrap("token-one"))
        environ = {"PATH": "/usr/bin:/bin"}
        async with serving(only("token-two")) as server, transport(server.url, login=login, environ=environ) as http:
            await http.exchange(GET)
            (tmp_path / "answer").write_text(wrap("token-two"))
            assert (await http.exchange(GET)).status == 200
        assert http.redactor("not token-one but token-two") == "not [redacted] but [redacted]"


async def test_the_redactor_learns_the_client_key_and_the_password_of_a_proxy() -> None:
    context = authority().server_context("127.0.0.1", clients=authority().pem)
    tls = Tls(CA, certificate(MINE))
    async with serving(always(answer()), context) as server, proxying(server.port) as proxy:
        via = Proxy(proxy.url, userinfo="me:hunter%2F2")
        async with transport(server.url, login=None, tls=tls, proxy=via) as http:
            await http.exchange(GET)
    for secret in ("hunter/2", "hunter%2F2", base64.b64encode(MINE.key).decode(), *MINE.key.decode().splitlines()[1:3]):
        assert http.redactor(f"it was {secret} there") == "it was [redacted] there"


@pytest.mark.parametrize("login", [Token("s3cret", "f"), BasicAuth("me", "s3cret"), TokenFile(Path("t"), "f")])
@pytest.mark.parametrize(
    ("server", "via"),
    [("http://kube.test", None), ("http://10.0.0.1:8080", None), ("http://127.0.0.1", Proxy("http://proxy.test"))],
)
def test_credentials_are_not_sent_without_tls(login: AuthMethod, server: str, via: Proxy | None) -> None:
    with pytest.raises(InvalidInput, match=r"would travel to http://.* without encryption") as caught:
        HttpTransport(Connection(server, "f", auth=login, proxy=via))
    assert_hidden(caught.value, "s3cret")


@pytest.mark.parametrize(
    ("server", "login"),
    [
        ("http://kube.test", None),
        ("https://kube.test", Token("s3cret", "f")),
        *((f"http://{host}:8080", Token("s3cret", "f")) for host in ("localhost", "127.0.0.1", "127.8.9.1", "[::1]")),
    ],
)
def test_credentials_are_sent_with_tls_and_within_this_machine(server: str, login: AuthMethod | None) -> None:
    assert HttpTransport(Connection(server, "f", auth=login)).server == server


class Changing:
    """Credentials that a test changes."""

    def __init__(self, identity: ClientIdentity) -> None:
        self.now = identity

    async def identity(self) -> ClientIdentity:
        return self.now

    async def renew(self, rejected: ClientIdentity) -> bool:
        return self.now is not rejected


async def test_another_client_certificate_needs_new_connections_and_disturbs_nobody() -> None:
    def watch_or_answer(seen: Seen) -> bytes:
        if "watch" in seen.line:
            return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
        return answer()

    context = authority().server_context("127.0.0.1", clients=authority().pem)
    async with serving(watch_or_answer, context) as server, transport(server.url) as http:
        credentials = Changing(ClientIdentity("", certificate(MINE)))
        http._credentials = credentials
        async with http.stream(Request("GET", "/watch")) as stream:
            await http.exchange(GET)
            credentials.now = ClientIdentity("", certificate(NEW))
            await http.exchange(GET)
            assert await anext(stream.chunks()) == b"one"
            assert len(http._retired) == 1
        assert len(http._retired) == 0
        credentials.now = ClientIdentity("", certificate(NEW))
        await http.exchange(GET)
        credentials.now = ClientIdentity("", certificate(MINE))
        await http.exchange(GET)
        async with http.stream(Request("GET", "/watch")):
            credentials.now = ClientIdentity("", certificate(NEW))
            await http.exchange(GET)
            await http.close()
    names = ["renewed" if "renewed" in str(seen.peer) else "first" for seen in server.seen]
    assert names == ["first", "first", "renewed", "renewed", "first", "first", "renewed"]
    assert server.seen[2].connection == server.seen[3].connection
