"""Who follows a run: the log on stderr, the metrics, and on a terminal a live view. Composed from the settings."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.core.platform.events import Level, Noticed
from windlass.kube.clocks import Clock
from windlass.telemetry.emitting import Ways, emitting
from windlass.telemetry.following import Telling
from windlass.telemetry.logs import EventLog, LogForm, LogOptions, library_logs, logger
from windlass.telemetry.metrics import Metrics
from windlass.telemetry.pushing import Gateway
from windlass.telemetry.redactions import Redactions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from windlass.settings.loading import Settings


@asynccontextmanager
async def followed(settings: Settings, action: str) -> AsyncIterator[Telling]:
    clock, secrets = Clock(), dict(_secrets(settings))
    metrics = Metrics(action, clock.now)
    log = EventLog(logger(sys.stderr, _log_options(settings, action), clock.now, Redactions(secrets.values())))
    tell = Telling({"logs": log, "metrics": metrics})
    for notice in settings.mounts.notices:
        tell(Noticed(Level.WARN, notice))
    with library_logs(tell):
        async with emitting(metrics, _ways(settings, secrets), tell):
            yield tell


def _text(settings: Settings, name: str) -> str:
    value = settings.values[name].value
    return "" if value is None else str(value)


def _log_options(settings: Settings, action: str) -> LogOptions:
    _, trace, span, *_ = [*_text(settings, "traceparent").split("-"), "", "", ""]
    return LogOptions(
        action,
        Level(_text(settings, "log-level")),
        LogForm(_text(settings, "log-format")),
        _text(settings, "trace-id") or trace,
        _text(settings, "span-id") or span,
    )


def _ways(settings: Settings, secrets: dict[str, str]) -> Ways:
    port = settings.values["metrics-port"].value
    file, gateway = _text(settings, "metrics-file"), _text(settings, "pushgateway")
    return Ways(
        port=port if isinstance(port, int) else None,
        address=_text(settings, "metrics-address"),
        file=Path(file) if file else None,
        gateway=Gateway(gateway, secrets.get("pushgateway-auth", "")) if gateway else None,
        environment=_text(settings, "environment"),
    )


def _secrets(settings: Settings) -> Iterator[tuple[str, str]]:
    """What must never be seen, by name: the mounted files, and a kubeconfig that came in a variable."""
    for name, path in settings.mounts.secrets.items():
        yield name, path.read_text(errors="replace")
    if isinstance(data := settings.values["kubeconfig-data"].value, bytes):
        yield "kubeconfig-data", data.decode(errors="replace")
