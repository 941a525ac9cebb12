"""Credentials for a connection: fixed, from a rotated token file, or from an exec plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.errors import InvalidInput
from windlass.kube.auth.auth_headers import Credentials, Identity, basic, bearer
from windlass.kube.auth.connections import BasicLogin, ExecPlugin, Token, TokenFile
from windlass.kube.auth.exec_plugins import PluginCredentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.kube.auth.connections import ClientCertificate, Connection
    from windlass.kube.clocks import Clock

REREAD_SECONDS = 60.0  # the same as client-go; the kubelet rotates a token long before it expires


def credentials_for(connection: Connection, environ: Mapping[str, str], clock: Clock) -> Credentials:
    certificate = connection.tls.client
    match connection.login:
        case Token(value, where):
            return FixedCredentials(Identity(bearer(value, where), certificate))
        case BasicLogin(username, password):
            return FixedCredentials(Identity(basic(username, password), certificate))
        case TokenFile() as file:
            return TokenFileCredentials(file, certificate, clock)
        case ExecPlugin() as plugin:
            return PluginCredentials(plugin, connection, environ, clock)
        case None:
            return FixedCredentials(Identity(certificate=certificate))


class FixedCredentials:
    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def identity(self) -> Identity:
        return self._identity

    async def renew(self, _rejected: Identity) -> bool:
        return False


class TokenFileCredentials:
    """Rereads the file every minute and after a 401; if reading fails, the previous token stays in use."""

    def __init__(self, file: TokenFile, certificate: ClientCertificate | None, clock: Clock) -> None:
        self._file = file
        self._certificate = certificate
        self._clock = clock
        self._identity: Identity | None = None
        self._read_again_at = 0.0

    async def identity(self) -> Identity:
        if self._identity is None or self._clock.monotonic() >= self._read_again_at:
            return self._read()
        return self._identity

    async def renew(self, rejected: Identity) -> bool:
        return self._read() != rejected

    def _read(self) -> Identity:
        self._read_again_at = self._clock.monotonic() + REREAD_SECONDS
        try:
            new = Identity(bearer(self._file.path.read_text("utf-8"), self._file.where), self._certificate)
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
