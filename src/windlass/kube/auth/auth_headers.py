"""The identity that a request presents, and the values of Authorization headers."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from windlass.kube.auth.connections import ClientCertificate

_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The Authorization header and the client certificate of a request."""

    authorization: str = field(default="", repr=False)
    """Value of the Authorization header; empty if none is sent."""
    certificate: ClientCertificate | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: the token, or the password alone and with its user, and the private key."""
        scheme, _, credential = self.authorization.partition(" ")
        password = base64.b64decode(credential).decode().partition(":")[2] if scheme == "Basic" else ""
        key = self.certificate.key.content.decode("utf-8", "replace") if self.certificate else ""
        return (credential, password, key)


class Credentials(Protocol):
    """A source of identities."""

    async def identity(self) -> ClientIdentity:
        """The identity to use now. The same object is returned until the identity changes."""
        ...

    async def renew(self, rejected: ClientIdentity) -> bool:
        """Try to replace an identity that got a 401; return whether the current identity differs from it."""
        ...


def bearer_header(token: str, where: str) -> str:
    """The header value for a token. Raises `InvalidInput` at `where` if a header cannot carry it."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise InvalidInput("not a token: it is empty, or has characters that no header may have", where=where)
    return f"Bearer {token}"


def basic_header(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
