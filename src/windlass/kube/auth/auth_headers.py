"""What one request shows the server to say who we are, and the checks that make it fit for a header."""

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
class Identity:
    authorization: str = field(default="", repr=False)
    """The header's value; empty: none is sent."""
    certificate: ClientCertificate | None = None


class Credentials(Protocol):
    """Where identities come from."""

    async def identity(self) -> Identity:
        """The one to use now; the same object until it changes."""
        ...

    async def renew(self, rejected: Identity) -> bool:
        """After a 401: whether there is now another identity than the rejected one."""
        ...


def bearer(token: str, where: str) -> str:
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise InvalidInput("not a token: it is empty, or has characters that no header may have", where=where)
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
