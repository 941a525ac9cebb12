"""The transport as the tests of it open it, and what each of its errors must pass."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.certificate_authorities import authority
from tests.kube.leaks import assert_hidden
from windlass.kube.auth.connections import (
    AuthMethod,
    ClientCertificate,
    Connection,
    Pem,
    Tls,
    Token,
)
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.kube.loopback_servers import Seen
    from windlass.kube.api_errors import KubeError
    from windlass.kube.clocks import Clock

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
    login: AuthMethod | None = LOGIN,
    environ: dict[str, str] | None = None,
    clock: Clock | None = None,
    **fields: Any,
) -> AsyncIterator[HttpTransport]:
    connection = Connection(server, "f", tls=tls, auth=login, environ=environ or {}, **fields)
    opened = HttpTransport(connection, clock=clock)
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
