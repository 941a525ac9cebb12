"""Exports the metrics of one action to every configured sink: HTTP endpoint, file, Pushgateway."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.events import Level, Noticed, Tell
from windlass.errors import InvalidInput
from windlass.telemetry.metrics_server import served
from windlass.telemetry.pushgateway import Gateway, pushed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from windlass.telemetry.metrics import Metrics

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ways:
    """Where metrics are exported to; no sink is enabled by default."""

    port: int | None = None
    address: str = LOOPBACK
    file: Path | None = None
    gateway: Gateway | None = None
    environment: str = ""


@asynccontextmanager
async def emitting(metrics: Metrics, ways: Ways, tell: Tell) -> AsyncIterator[None]:
    """Export metrics while the action in the `async with` block runs and when it ends.

    An unusable port or file raises `InvalidInput` before the action starts; a failed export at its end is only a
    warning.
    """
    async with AsyncExitStack() as stack:
        if ways.port is not None:
            address, port = await stack.enter_async_context(served(metrics.text, ways.address, ways.port))
            tell(Noticed(Level.INFO, f"metrics are served at http://{_host(address)}:{port}/metrics"))
        if ways.file is not None:
            _check(metrics, ways.file)
        try:
            yield
        except BaseException as error:
            metrics.broke(error)
            raise
        finally:
            await _emit(metrics, ways, tell)


def _check(metrics: Metrics, path: Path) -> None:
    try:
        metrics.write(path)
    except OSError as error:
        raise InvalidInput(
            f"metrics cannot be written to {path}: {error.strerror}",
            where="--metrics-file",
            hint="its directory must exist and be writable",
        ) from None


async def _emit(metrics: Metrics, ways: Ways, tell: Tell) -> None:
    if ways.file is not None:
        try:
            metrics.write(ways.file)
        except OSError as error:
            tell(Noticed(Level.WARN, f"metrics were not written to {ways.file}: {error.strerror}"))
    if ways.gateway is not None and (wrong := await pushed(ways.gateway, metrics, ways.environment)):
        tell(Noticed(Level.WARN, f"metrics were not pushed: {wrong}"))


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
