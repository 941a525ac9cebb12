"""Who follows a run: the log on stderr, the metrics, and on a terminal a live view. Composed from the settings."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
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
    from collections.abc import AsyncIterator, Iterator, Mapping

    from windlass.cli.live_views import LiveView
    from windlass.settings.loading import Settings
    from windlass.telemetry.following import Receiver


@asynccontextmanager
async def followed(settings: Settings, action: str, environ: Mapping[str, str]) -> AsyncIterator[Telling]:
    clock, secrets = Clock(), dict(_secrets(settings))
    metrics = Metrics(action, clock.now)
    async with AsyncExitStack() as stack:
        if _is_watched(settings, environ):
            receivers: dict[str, Receiver] = {"view": await stack.enter_async_context(_view(settings, action, environ))}
        else:
            log = logger(sys.stderr, _log_options(settings, action), clock.now, Redactions(secrets.values()))
            receivers = {"logs": EventLog(log)}
        tell = Telling({**receivers, "metrics": metrics})
        for notice in settings.mounts.notices:
            tell(Noticed(Level.WARN, notice))
        stack.enter_context(library_logs(tell))
        await stack.enter_async_context(emitting(metrics, _ways(settings, secrets), tell))
        yield tell


def _is_watched(settings: Settings, environ: Mapping[str, str]) -> bool:
    """By somebody at a terminal who did not ask for a log."""
    asked = not (settings.values["log-format"].is_default and settings.values["log-level"].is_default)
    return sys.stderr.isatty() and not asked and environ.get("TERM", "dumb") != "dumb"


def _view(settings: Settings, action: str, environ: Mapping[str, str]) -> LiveView:
    from windlass.cli.live_states import State  # noqa: PLC0415 - only where there is a terminal
    from windlass.cli.live_views import LiveView  # noqa: PLC0415

    clock, platform = Clock(), settings.assembled.platform
    title = f"{action} {settings.scope} in {_text(settings, 'environment')}"
    state = State(title, clock.monotonic(), platform.expected, platform.max_parallel)
    return LiveView(sys.stderr, clock, state, environ)


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
