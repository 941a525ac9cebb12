"""Observers of a run, set up from the settings: the log on stderr or, on a terminal, the live view; and metrics."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.cli.options import pasteable
from windlass.core.platform.events import Level, Noticed
from windlass.core.platform.reporting import redactable_text
from windlass.errors import WindlassError
from windlass.kube.clocks import Clock
from windlass.telemetry.event_fanout import Redacting, Telling
from windlass.telemetry.logs import EventLog, LogForm, LogOptions, library_logs, logger
from windlass.telemetry.metric_sinks import Ways, emitting
from windlass.telemetry.metrics import Metrics
from windlass.telemetry.pushgateway import Gateway
from windlass.telemetry.redaction import Redactions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from windlass.cli.views.live import LiveView
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.reporting.reports import Report
    from windlass.settings.mounts import Mounts
    from windlass.settings.variables import Value
    from windlass.telemetry.event_fanout import Receiver


@dataclass(frozen=True, slots=True)
class Followed:
    """A run with the settings of its observers. `platform` is for the live view; `None` for runs without one."""

    action: str
    values: Mapping[str, Value]
    mounts: Mounts
    platform: Platform | None = None

    def text(self, name: str) -> str:
        value = self.values[name].value
        return "" if value is None else str(value)


@asynccontextmanager
async def following(run: Followed, environ: Mapping[str, str]) -> AsyncIterator[Telling]:
    """Start the observers and yield the fan-out that events are emitted to."""
    clock, secrets = Clock(), dict(_secrets(run))
    metrics, redact = Metrics(run.action, clock.now), Redactions(secrets.values())
    async with AsyncExitStack() as stack:
        if run.platform and _is_watched(run, environ):
            view = await stack.enter_async_context(_view(run, run.platform, environ))
            receivers: dict[str, Receiver] = {"view": Redacting(view, redact)}
        else:
            log = logger(sys.stderr, _log_options(run), clock.now, redact)
            receivers = {"logs": EventLog(log)}
        tell = Telling({**receivers, "metrics": metrics})
        for notice in run.mounts.notices:
            tell(Noticed(Level.WARN, notice))
        stack.enter_context(library_logs(tell))
        await stack.enter_async_context(emitting(metrics, _ways(run, secrets), tell))
        try:
            yield tell
        except WindlassError as error:
            if "logs" in receivers:  # a log must be complete; on a terminal the error is printed once, by `main`
                tell(Noticed(Level.ERROR, str(error)))
            raise


def _is_watched(run: Followed, environ: Mapping[str, str]) -> bool:
    """Whether stderr is a capable terminal and neither log format nor log level was set."""
    asked = not (run.values["log-format"].is_default and run.values["log-level"].is_default)
    return sys.stderr.isatty() and not asked and environ.get("TERM", "dumb") != "dumb"


def _view(run: Followed, platform: Platform, environ: Mapping[str, str]) -> LiveView:
    from windlass.cli.views.live import LiveView  # noqa: PLC0415
    from windlass.cli.views.live_state import State  # noqa: PLC0415 - loaded only for a terminal

    clock = Clock()
    title = f"{run.action} {run.text('scope')} in {run.text('environment')}"
    state = State(title, clock.monotonic(), platform.expected, platform.max_parallel)
    return LiveView(sys.stderr, clock, state, environ)


def _log_options(run: Followed) -> LogOptions:
    _, trace, span, *_ = [*run.text("traceparent").split("-"), "", "", ""]
    return LogOptions(
        run.action,
        Level(run.text("log-level")),
        LogForm(run.text("log-format")),
        run.text("trace-id") or trace,
        run.text("span-id") or span,
    )


def _ways(run: Followed, secrets: dict[str, str]) -> Ways:
    port = run.values["metrics-port"].value
    file, gateway = run.text("metrics-file"), run.text("pushgateway")
    return Ways(
        port=port if isinstance(port, int) else None,
        address=run.text("metrics-address"),
        file=Path(file) if file else None,
        gateway=Gateway(gateway, secrets.get("pushgateway-auth", "")) if gateway else None,
        environment=run.text("environment"),
    )


def shown(report: Report, run: Followed) -> Report:
    """Redact secrets from texts of other programs, and complete recommended commands with the options of this run."""
    given = {name: value.text for name, value in run.values.items() if value.origin.startswith("--")}
    advice = tuple(replace(each, command=pasteable(each.command, given)) for each in report.recommendations)
    return redactable_text.changed(replace(report, recommendations=advice), Redactions(dict(_secrets(run)).values()))


def _secrets(run: Followed) -> Iterator[tuple[str, str]]:
    """Texts to redact, by name: the mounted secret files, and the kubeconfig given in KUBECONFIG_DATA."""
    for name, path in run.mounts.secrets.items():
        yield name, path.read_text(errors="replace")
    if isinstance(data := run.values["kubeconfig-data"].value, bytes):
        yield "kubeconfig-data", data.decode(errors="replace")
