"""Pushes metrics to a Pushgateway with one request; problems are returned as text, not raised."""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from windlass.errors import InvalidInput
from windlass.kube.auth.proxies import is_loopback

if TYPE_CHECKING:
    from windlass.telemetry.metrics import PushRequest, RunMetrics

PUSH_TIMEOUT = 2.0  # seconds for the whole exchange: a gateway that hangs must not delay the end of a run


class _NotHttp(Exception):
    """The server's response is not HTTP."""


@dataclass(frozen=True, slots=True)
class Pushgateway:
    url: str
    credentials: str = field(default="", repr=False)
    """`user:password`."""
    timeout: float = PUSH_TIMEOUT

    def __post_init__(self) -> None:
        url = urlsplit(self.url)
        if self.credentials and url.scheme != "https" and not is_loopback(url.hostname or ""):
            raise InvalidInput(
                "the credentials of the Pushgateway would travel without encryption",
                where="--pushgateway",
                hint="use https://, or do not mount pushgateway-auth",
            )


async def push_metrics(gateway: Pushgateway, metrics: RunMetrics, environment: str) -> str:
    """Push the metrics; returns the problem, or an empty string if the gateway accepted them."""
    target = f"the Pushgateway at {urlsplit(gateway.url).netloc.rpartition('@')[2]}"
    try:
        async with asyncio.timeout(gateway.timeout):
            status = await _send_request(metrics.push_request(gateway.url, environment), gateway.credentials)
    except TimeoutError:
        return f"{target} did not answer within {gateway.timeout:g} s"
    except (OSError, UnicodeError) as error:  # UnicodeError: the host name is not valid
        return f"{target} cannot be reached: {getattr(error, 'strerror', None) or error}"
    except (_NotHttp, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return f"{target} did not answer in HTTP"
    return "" if 200 <= status < 300 else f"{target} refused the metrics: it answered {status}"


async def _send_request(request: PushRequest, credentials: str) -> int:
    url = urlsplit(request.url)
    is_secure = url.scheme == "https"
    headers = {"Host": url.netloc.rpartition("@")[2], "Connection": "close", "Content-Length": str(len(request.body))}
    if credentials:
        headers["Authorization"] = f"Basic {base64.b64encode(credentials.strip().encode()).decode()}"
    lines = [f"{request.method} {url.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {**headers, **request.headers}.items()]
    reader, writer = await asyncio.open_connection(
        url.hostname, url.port or (443 if is_secure else 80), ssl=ssl.create_default_context() if is_secure else None
    )
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + request.body)
        await writer.drain()
        return _parse_status(await reader.readuntil(b"\r\n"))
    finally:
        writer.transport.abort()


def _parse_status(line: bytes) -> int:
    protocol, _, rest = line.decode("latin-1").partition(" ")
    if not protocol.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise _NotHttp
    return int(rest[:3])
