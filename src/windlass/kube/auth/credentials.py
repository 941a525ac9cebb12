"""Credentials for a connection: fixed, from a rotated token file, or from an exec plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.errors import InvalidInput
from windlass.kube.auth.auth_headers import ClientIdentity, Credentials, basic_header, bearer_header
from windlass.kube.auth.connections import BasicAuth, ExecPlugin, Token, TokenFile
from windlass.kube.auth.exec_plugins import ExecPluginCredentials
from windlass.kube.bounded_files import read_file

if TYPE_CHECKING:
    from windlass.kube.auth.connections import ClientCertificate, Connection
    from windlass.kube.clocks import Clock

TOKEN_REREAD_SECONDS = 60.0  # the same as client-go; the kubelet rotates a token long before it expires


def credentials_for(connection: Connection, clock: Clock) -> Credentials:
    certificate = connection.tls.client_certificate
    match connection.auth:
        case Token(value, where):
            return FixedCredentials(ClientIdentity(bearer_header(value, where), certificate))
        case BasicAuth(username, password):
            return FixedCredentials(ClientIdentity(basic_header(username, password), certificate))
        case TokenFile() as file:
            return TokenFileCredentials(file, certificate, clock)
        case ExecPlugin() as plugin:
            return ExecPluginCredentials(plugin, connection, clock)
        case None:
            return FixedCredentials(ClientIdentity(certificate=certificate))


class FixedCredentials:
    def __init__(self, identity: ClientIdentity) -> None:
        self._identity = identity

    async def identity(self) -> ClientIdentity:
        return self._identity

    async def renew(self, _rejected: ClientIdentity) -> bool:
        return False


class TokenFileCredentials:
    """Rereads the file every minute and after a 401; if reading fails, the previous token stays in use."""

    def __init__(self, file: TokenFile, certificate: ClientCertificate | None, clock: Clock) -> None:
        self._file = file
        self._certificate = certificate
        self._clock = clock
        self._identity: ClientIdentity | None = None
        self._next_read = 0.0

    async def identity(self) -> ClientIdentity:
        if self._identity is None or self._clock.monotonic() >= self._next_read:
            return self._read_token()
        return self._identity

    async def renew(self, rejected: ClientIdentity) -> bool:
        return self._read_token() != rejected

    def _read_token(self) -> ClientIdentity:
        self._next_read = self._clock.monotonic() + TOKEN_REREAD_SECONDS
        try:
            token = read_file(self._file.path).decode()
            new = ClientIdentity(bearer_header(token, self._file.where), self._certificate)
        except (OSError, UnicodeError, InvalidInput) as error:
            if self._identity is not None:
                return self._identity
            if isinstance(error, InvalidInput):
                raise
            reason = error.strerror if isinstance(error, OSError) else "not text"
            raise InvalidInput(f"cannot read {self._file.path}: {reason}", where=self._file.where) from None
        if new != self._identity:
            self._identity = new
        return self._identity
