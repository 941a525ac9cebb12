"""Exports the metrics of one action to every configured sink: HTTP endpoint, file, Pushgateway."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.log_lines import Level, LogLine, WriteLine
from windlass.errors import InvalidInput
from windlass.telemetry.metrics_server import serve_metrics
from windlass.telemetry.pushgateway import Pushgateway, push_metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from windlass.telemetry.metrics import RunMetrics

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class MetricSinks:
    """Where metrics are exported to; no sink is enabled by default."""

    port: int | None = None
    address: str = LOOPBACK
    file: Path | None = None
    gateway: Pushgateway | None = None
    environment: str = ""


@asynccontextmanager
async def export_metrics(metrics: RunMetrics, sinks: MetricSinks, write_line: WriteLine) -> AsyncIterator[None]:
    """Export metrics while the action in the `async with` block runs and when it ends.

    An unusable port or file raises `InvalidInput` before the action starts; a failed export at its end is only a
    warning.
    """
    async with AsyncExitStack() as stack:
        if sinks.port is not None:
            address, port = await stack.enter_async_context(serve_metrics(metrics.text, sinks.address, sinks.port))
            write_line(LogLine(Level.INFO, f"metrics are served at http://{_host(address)}:{port}/metrics"))
        if sinks.file is not None:
            _check_file(metrics, sinks.file)
        try:
            yield
        except BaseException as error:
            metrics.fail(error)
            raise
        finally:
            await _write_and_push(metrics, sinks, write_line)


def _check_file(metrics: RunMetrics, path: Path) -> None:
    try:
        metrics.write(path)
    except OSError as error:
        raise InvalidInput(
            f"metrics cannot be written to {path}: {error.strerror}",
            where="--metrics-file",
            hint="its directory must exist and be writable",
        ) from None


async def _write_and_push(metrics: RunMetrics, sinks: MetricSinks, write_line: WriteLine) -> None:
    if sinks.file is not None:
        try:
            metrics.write(sinks.file)
        except OSError as error:
            write_line(LogLine(Level.WARN, f"metrics were not written to {sinks.file}: {error.strerror}"))
    if sinks.gateway is not None and (problem := await push_metrics(sinks.gateway, metrics, sinks.environment)):
        write_line(LogLine(Level.WARN, f"metrics were not pushed: {problem}"))


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
