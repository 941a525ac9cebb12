"""Refusal of requests that a web browser sends for a page of another site.

A browser sends such requests to loopback too. It adds no token to them, so they are anonymous; these checks hold even
if a page had one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.wire.api_status import StatusError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST_NAMES = ("127.0.0.1", "localhost", "[::1]")


def reject_foreign_pages(headers: Mapping[str, str], port: int) -> None:
    """Raise a 403 for a Host that is not this server's, a foreign Origin, or a request that a foreign page caused.

    The Host of a request shows DNS rebinding: a page whose own host name was made to resolve to 127.0.0.1.
    """
    hosts = {f"{name}:{port}" for name in HOST_NAMES}
    origins = {f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts}
    accepted_values = {"Host": hosts, "Origin": {"", *origins}, "Sec-Fetch-Site": {"", "none", "same-origin"}}
    for name, accepted in accepted_values.items():
        if (value := headers.get(name, "")).lower() not in accepted:
            raise StatusError(403, "Forbidden", f"forbidden: {name} {value!r} is not of this server", {})
