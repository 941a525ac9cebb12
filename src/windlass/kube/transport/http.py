"""The HTTP transport: the only client module that uses aiohttp. It translates aiohttp's errors to `KubeError`."""

from __future__ import annotations

import errno
import io
import socket
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import aiohttp
from aiohttp.client_exceptions import UploadAbortedError
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from windlass import __version__
from windlass.errors import InvalidInput
from windlass.kube.api_errors import BadAnswer, ConnectionLost, KubeError, Unreachable
from windlass.kube.auth import proxies
from windlass.kube.auth.credentials import credentials_for
from windlass.kube.clocks import Clock
from windlass.kube.transport import certificates
from windlass.kube.transport.transports import Response, read_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from windlass.kube.auth.auth_headers import ClientIdentity
    from windlass.kube.auth.connections import ClientCertificate, Connection, Impersonation, Proxy
    from windlass.kube.redactions import Redactor
    from windlass.kube.transport.transports import Request

CONNECT_SECONDS = 10.0  # for TCP and TLS; the caller limits the time for the response
IDLE_SECONDS = 60.0  # less than the 90 s or more after which servers and load balancers drop an idle connection
READ_BUFFER_BYTES = 256 << 10  # a watch in a busy cluster delivers large chunks
LARGE_BODY_BYTES = 1 << 20  # our bodies are far smaller, and no API server accepts more than 3 MiB
TCP_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))  # detects a dead peer in 90 s

_Headers = tuple[tuple[str, str], ...]
_AIOHTTP_ERRORS = (aiohttp.ClientError, HttpProcessingError, OSError)


class HttpTransport:
    """Transport to one API server. Opens no connection before the first request."""

    def __init__(self, connection: Connection, *, clock: Clock | None = None) -> None:
        proxy = proxies.proxy_for(connection.server, connection.environ, connection.proxy)
        _refuse_cleartext_credentials(connection, proxy)
        ca_bundle = connection.tls.ca_bundle
        self._connection = connection
        self._credentials = credentials_for(connection, clock or Clock())
        self._route = Route(connection.server, proxy.url if proxy else "", ca_bundle.where if ca_bundle else "")
        self._add_secrets(proxies.proxy_secrets(proxy) if proxy else ())
        self._base_headers, self._request_options = _shared_headers_and_options(connection, proxy)
        self._identity: ClientIdentity | None = None
        self._headers = CIMultiDict(self._base_headers)
        self._pool: _ConnectionPool | None = None
        self._retired: set[_ConnectionPool] = set()
        self._closed = False

    @property
    def server(self) -> str:
        return self._connection.server

    @property
    def redactor(self) -> Redactor:
        return self._connection.redactor

    def _add_secrets(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            self.redactor.add(secret)

    async def exchange(self, request: Request) -> Response:
        stream = await self._open(request)
        try:
            return Response(stream.status, stream.headers, await read_body(stream.chunks()))
        finally:
            await self._close_stream(stream)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[HttpStream]:
        stream = await self._open(request)
        try:
            yield stream
        finally:
            await self._close_stream(stream)

    async def close(self) -> None:
        """Close all connections; requests in flight fail with `ConnectionLost`."""
        pools = [*self._retired, *([self._pool] if self._pool else [])]
        self._closed, self._identity, self._pool = True, None, None
        self._retired.clear()
        for pool in pools:
            await pool.session.close()

    async def _open(self, request: Request) -> HttpStream:
        identity = await self._credentials.identity()
        stream = await self._send(request, identity)
        if stream.status != 401:
            return stream
        renewed = False
        try:
            renewed = await self._credentials.renew(identity)
        except BaseException:
            await self._close_stream(stream)
            raise
        if not renewed:
            return stream
        await self._close_stream(stream)
        return await self._send(request, await self._credentials.identity())

    async def _send(self, request: Request, identity: ClientIdentity) -> HttpStream:
        if identity is not self._identity:
            await self._use_identity(identity)
        pool = self._pool
        assert pool is not None
        headers = self._headers.copy()
        headers.extend(request.headers)
        pool.busy += 1
        try:
            response = await pool.session.request(
                request.method,
                URL(self._connection.server + request.target, encoded=True),
                headers=headers,
                data=_payload(request.body),
                **self._request_options,
            )
        except BaseException as error:
            await self._release(pool)
            if isinstance(error, _AIOHTTP_ERRORS):
                raise translate_error(error, self._route) from None
            raise
        return HttpStream(response, pool, self._route)

    async def _close_stream(self, stream: HttpStream) -> None:
        stream.close()
        await self._release(stream.pool)

    async def _release(self, pool: _ConnectionPool) -> None:
        pool.busy -= 1
        if pool is not self._pool and not pool.busy:
            self._retired.discard(pool)
            await pool.session.close()

    async def _use_identity(self, identity: ClientIdentity) -> None:
        """Replace the headers and, if the client certificate differs, the pool.

        Requests in flight keep their connections.
        """
        if self._closed:
            raise RuntimeError("this transport is closed")
        self._add_secrets(identity.secrets)
        old = self._pool
        if old is None or old.certificate != identity.certificate:
            self._pool = self._create_pool(identity.certificate)
        self._headers = CIMultiDict(self._base_headers)
        if identity.authorization:
            self._headers["Authorization"] = identity.authorization
        self._identity = identity
        if old is not None and old is not self._pool:
            if old.busy:
                self._retired.add(old)
            else:
                await old.session.close()

    def _create_pool(self, certificate: ClientCertificate | None) -> _ConnectionPool:
        # Without TLS no context is created: loading the CAs of the system is slow.
        connection = self._connection
        uses_tls = connection.server.startswith("https:")
        connector = aiohttp.TCPConnector(
            limit=0,  # the TokenBucket already protects the server
            ssl=certificates.create_ssl_context(connection.tls, certificate, connection.environ) if uses_tls else True,
            keepalive_timeout=IDLE_SECONDS,
            enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,  # aiohttp warns if this is set where Python does not need it
            socket_factory=_keepalive_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            read_bufsize=READ_BUFFER_BYTES,
        )
        session._retry_connection = False  # noqa: SLF001 - otherwise aiohttp resends PUT and DELETE on its own
        return _ConnectionPool(session, certificate)


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """Large bodies as a file object: aiohttp warns if it has to send large `bytes` in one piece."""
    return io.BytesIO(body) if body is not None and len(body) > LARGE_BODY_BYTES else body


class HttpStream:
    """A response whose headers have arrived. After reading to the end, its connection can serve another request."""

    __slots__ = ("_response", "_route", "headers", "pool", "status")

    def __init__(self, response: aiohttp.ClientResponse, pool: _ConnectionPool, route: Route) -> None:
        self._response = response
        self._route = route
        self.pool = pool
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _AIOHTTP_ERRORS as error:
            raise translate_error(error, self._route) from None

    def close(self) -> None:
        self._response.close()


class _ConnectionPool:
    """Connections that use one client certificate; `busy` counts the requests in flight."""

    __slots__ = ("busy", "certificate", "session")

    def __init__(self, session: aiohttp.ClientSession, certificate: ClientCertificate | None) -> None:
        self.session = session
        self.certificate = certificate
        self.busy = 0


@dataclass(frozen=True, slots=True)
class Route:
    """What error messages say about the connection to the server; contains no credentials."""

    server: str
    proxy: str = ""
    ca_source: str = ""

    @property
    def where(self) -> str:
        return f"{self.server} through the proxy {self.proxy}" if self.proxy else self.server

    @property
    def trust_description(self) -> str:
        return f"the authority in {self.ca_source}" if self.ca_source else "an authority that this system trusts"


def translate_error(error: Exception, route: Route) -> KubeError:
    """Translate an aiohttp error. Raise the result `from None`: aiohttp's errors hold the request's credentials."""
    match error:
        case aiohttp.ClientHttpProxyError():
            hint = "give user and password in the proxy's URL" if error.status == 407 else ""
            what = f"the proxy refused: HTTP {error.status}"
            return Unreachable(what, where=route.where, hint=hint, temporary=error.status != 407)
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            what, hint = _explain_connect_error(error, route)
            return Unreachable(
                what, where=route.where, hint=hint, temporary=not isinstance(error, aiohttp.ClientSSLError)
            )
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | aiohttp.ServerFingerprintMismatch():
            what = f"no request can be sent there ({type(error).__name__})"
            return Unreachable(what, where=route.where, temporary=False)
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError() | UploadAbortedError() | OSError():
            return _disconnect_error(error, route)
        case _:
            return BadAnswer(f"an answer that is not HTTP as we know it ({_error_summary(error)})", where=route.where)


def _explain_connect_error(error: Exception, route: Route) -> tuple[str, str]:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    match error:
        case aiohttp.ConnectionTimeoutError():
            return f"no connection within {CONNECT_SECONDS:g} s", "is the address right, and no firewall in the way?"
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host} cannot be resolved", "is it right, and is DNS working?"
        case aiohttp.ClientSSLError() if isinstance(cause, ssl.SSLError):
            return certificates.explain_tls_error(cause, route.trust_description)
    reason = "connection refused" if getattr(cause, "errno", 0) == errno.ECONNREFUSED else _error_summary(cause)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy cannot be reached: {reason}", "is this its address?"
    return reason, "is the server running, and is this its address?"


def _disconnect_error(error: Exception, route: Route) -> KubeError:
    cause = error.__cause__
    reason = (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
    if isinstance(cause, ssl.SSLError) and "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        # In TLS 1.3 this alert arrives in place of the response: the server did not process the request.
        what, hint = certificates.explain_tls_error(cause, route.trust_description)
        return Unreachable(what, where=route.where, hint=hint, temporary=False)
    return ConnectionLost(
        f"the connection broke before the answer was complete ({_error_summary(error)})", where=route.where
    )


def _error_summary(error: BaseException) -> str:
    """The operating system's message or the class name; the error's own text may quote secrets."""
    if isinstance(error, OSError) and error.errno and error.strerror:
        return error.strerror.lower()
    return "the other side hung up" if isinstance(error, ConnectionError) else type(error).__name__


def _refuse_cleartext_credentials(connection: Connection, proxy: Proxy | None) -> None:
    """Refuse to send an Authorization header without TLS, except within this machine.

    kubectl drops the credentials instead; the server's answer to an anonymous request would not tell why.
    """
    is_local = all(proxies.is_loopback(urlsplit(url).hostname or "") for url in (connection.server, *_urls(proxy)))
    if connection.auth is not None and connection.server.startswith("http:") and not is_local:
        raise InvalidInput(
            f"the credentials would travel to {connection.server} without encryption",
            where=connection.where,
            hint="use https://, or remove the credentials of the user if this server needs none",
        )


def _urls(proxy: Proxy | None) -> tuple[str, ...]:
    return (proxy.url,) if proxy else ()


def _shared_headers_and_options(connection: Connection, proxy: Proxy | None) -> tuple[_Headers, dict[str, Any]]:
    """Headers and aiohttp options that all requests share."""
    headers: _Headers = (("User-Agent", f"windlass/{__version__}"), ("Accept-Encoding", "gzip"))
    options: dict[str, Any] = {"allow_redirects": False}  # credentials must not be sent to another host
    if connection.impersonation is not None:
        headers += _impersonation_headers(connection.impersonation)
    if connection.tls.server_name:
        options["server_hostname"] = connection.tls.server_name
    if proxy is not None:
        options["proxy"] = URL(proxy.url)
        proxy_auth = (("Proxy-Authorization", proxies.proxy_authorization(proxy)),) if proxy.userinfo else ()
        if connection.server.startswith("https:"):
            options["proxy_headers"] = proxy_auth  # sent with CONNECT, so only the proxy sees it
        else:
            headers += proxy_auth
    return headers, options


def _impersonation_headers(impersonation: Impersonation) -> _Headers:
    headers = [("Impersonate-User", impersonation.user)]
    if impersonation.uid:
        headers.append(("Impersonate-Uid", impersonation.uid))
    headers += [("Impersonate-Group", group) for group in impersonation.groups]
    for key, values in impersonation.extra:
        name = "Impersonate-Extra-" + quote(key.lower(), safe="!#$&'*+-.^_`|~")  # what a header name may contain
        headers += [(name, value) for value in values]
    return tuple(headers)


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket with TCP keepalive: detects a peer that vanished without closing, which an idle watch cannot notice."""
    family, kind, protocol = address[:3]
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in TCP_KEEPALIVE:
        if hasattr(socket, name):  # not every platform has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return sock
