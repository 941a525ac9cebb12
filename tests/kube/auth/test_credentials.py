"""Where identities come from, except plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kube.leaks import assert_hidden
from windlass.errors import InvalidInput
from windlass.kube.auth.auth_headers import ClientIdentity, Credentials
from windlass.kube.auth.connections import (
    AuthMethod,
    BasicAuth,
    ClientCertificate,
    Connection,
    Pem,
    Tls,
    Token,
    TokenFile,
)
from windlass.kube.auth.credentials import credentials_for
from windlass.kube.clocks import Clock

if TYPE_CHECKING:
    from pathlib import Path

CERTIFICATE = ClientCertificate(Pem(b"chain", "f"), Pem(b"s3cret", "f"))


class Hand:
    """A clock moved by hand."""

    seconds = 1000.0

    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.seconds)


def credentials(login: AuthMethod | None, hand: Hand | None = None) -> Credentials:
    connection = Connection("https://k", "f", tls=Tls(client_certificate=CERTIFICATE), auth=login)
    return credentials_for(connection, (hand or Hand()).clock())


@pytest.mark.parametrize(
    ("login", "authorization"),
    [
        (None, ""),
        (Token("s3cret", "f"), "Bearer s3cret"),
        (Token(" s3cret\n", "f"), "Bearer s3cret"),
        (BasicAuth("me", "s3cret"), "Basic bWU6czNjcmV0"),
        (BasicAuth("mé", ""), "Basic bcOpOg=="),
    ],
)
async def test_what_is_fixed_is_shown_with_the_certificate_and_cannot_be_renewed(
    login: AuthMethod | None, authorization: str
) -> None:
    source = credentials(login)
    identity = await source.identity()
    assert identity == ClientIdentity(authorization, CERTIFICATE)
    assert await source.identity() is identity
    assert not await source.renew(identity)
    assert_hidden(identity, "s3cret", "bWU6czNjcmV0")


@pytest.mark.parametrize("token", ["", " \n", "s3cret\nX-Header: 1", "s3cret two", "s3crét"])
def test_a_token_must_fit_into_a_header(token: str) -> None:
    with pytest.raises(InvalidInput, match="not a token") as caught:
        credentials(Token(token, "f: token"))
    assert caught.value.where == "f: token"
    assert_hidden(caught.value, "s3cr")


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    file, hand = tmp_path / "token", Hand()
    file.write_text("one\n")
    source = credentials(TokenFile(file, "f: tokenFile"), hand)
    first = await source.identity()
    assert first == ClientIdentity("Bearer one", CERTIFICATE)
    file.write_text("two\n")
    hand.seconds += 59
    assert await source.identity() is first
    hand.seconds += 1
    second = await source.identity()
    assert second.authorization == "Bearer two"
    hand.seconds += 60
    assert await source.identity() is second


async def test_a_token_file_is_read_again_after_a_rejection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    source = credentials(TokenFile(file, "f: tokenFile"))
    first = await source.identity()
    assert not await source.renew(first)
    file.write_text("two")
    assert await source.renew(first)
    assert (await source.identity()).authorization == "Bearer two"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
async def test_the_last_token_stands_while_the_file_is_being_replaced(tmp_path: Path, content: bytes | None) -> None:
    file, hand = tmp_path / "token", Hand()
    file.write_text("one")
    source = credentials(TokenFile(file, "f: tokenFile"), hand)
    first = await source.identity()
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    hand.seconds += 61
    assert await source.identity() is first
    assert not await source.renew(first)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "cannot read {file}: No such file or directory"),
        (b"\xff", "cannot read {file}: not text"),
        (b"", "not a token"),
    ],
)
async def test_a_token_file_must_be_there_at_the_start(tmp_path: Path, content: bytes | None, what: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        await credentials(TokenFile(file, "f: tokenFile")).identity()
    assert caught.value.what.startswith(what.format(file=file))
    assert caught.value.where == "f: tokenFile"
