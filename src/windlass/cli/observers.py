"""Observers of a run, set up from the settings: the log on stderr or, on a terminal, the live view; and metrics."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.cli.event_receivers import EventLog, EventMetrics, RedactingReceiver
from windlass.cli.options import command_with_options
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.model.health import Health
from windlass.core.platform.reporting import redactable_text
from windlass.errors import WindlassError
from windlass.kube.clocks import Clock
from windlass.telemetry.event_fanout import EventFanout
from windlass.telemetry.logs import LogFormat, LogOptions, create_logger, forward_library_logs
from windlass.telemetry.metric_sinks import MetricSinks, export_metrics
from windlass.telemetry.metrics import RunMetrics
from windlass.telemetry.pushgateway import Pushgateway
from windlass.telemetry.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from windlass.cli.views.live import LiveView
    from windlass.core.platform.events import Event
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.reporting.reports import Report
    from windlass.settings.mounts import Mounts
    from windlass.settings.variables import SettingValue
    from windlass.telemetry.event_fanout import EventReceiver


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run with the settings of its observers. `platform` is for the live view; `None` for runs without one."""

    action: str
    values: Mapping[str, SettingValue]
    mounts: Mounts
    platform: Platform | None = None

    def setting_text(self, name: str) -> str:
        value = self.values[name].value
        return "" if value is None else str(value)


@asynccontextmanager
async def observe_run(run: ObservedRun, environ: Mapping[str, str]) -> AsyncIterator[EventFanout[Event, Report]]:
    """Start the observers and yield the fan-out that events are emitted to."""
    clock, secrets = Clock(), dict(_secrets(run))
    metrics, redact = RunMetrics(run.action, clock.now, tuple(Health)), Redactor(secrets.values())
    async with AsyncExitStack() as stack:
        if run.platform and _uses_live_view(run, environ):
            view = await stack.enter_async_context(_live_view(run, run.platform, environ))
            receivers: dict[str, EventReceiver[Event, Report]] = {"view": RedactingReceiver(view, redact)}
        else:
            receivers = {"logs": EventLog(create_logger(sys.stderr, _log_options(run), clock.now, redact))}
        emit: EventFanout[Event, Report] = EventFanout({**receivers, "metrics": EventMetrics(metrics)})
        for notice in run.mounts.notices:
            emit(LogLine(Level.WARN, notice))
        stack.enter_context(forward_library_logs(emit))
        await stack.enter_async_context(export_metrics(metrics, _metric_sinks(run, secrets), emit))
        try:
            yield emit
        except WindlassError as error:
            if "logs" in receivers:  # a log must be complete; on a terminal the error is printed once, by `main`
                emit(LogLine(Level.ERROR, str(error)))
            raise


def _uses_live_view(run: ObservedRun, environ: Mapping[str, str]) -> bool:
    """Whether stderr is a capable terminal and neither log format nor log level was set."""
    has_log_settings = not (run.values["log-format"].is_default and run.values["log-level"].is_default)
    return sys.stderr.isatty() and not has_log_settings and environ.get("TERM", "dumb") != "dumb"


def _live_view(run: ObservedRun, platform: Platform, environ: Mapping[str, str]) -> LiveView:
    from windlass.cli.views.live import LiveView  # noqa: PLC0415
    from windlass.cli.views.live_state import LiveState  # noqa: PLC0415 - loaded only for a terminal

    clock = Clock()
    title = f"{run.action} {run.setting_text('scope')} in {run.setting_text('environment')}"
    state = LiveState(title, clock.monotonic(), platform.expected_durations, platform.max_parallel)
    return LiveView(sys.stderr, clock, state, environ)


def _log_options(run: ObservedRun) -> LogOptions:
    _, trace, span, *_ = [*run.setting_text("traceparent").split("-"), "", "", ""]
    return LogOptions(
        run.action,
        Level(run.setting_text("log-level")),
        LogFormat(run.setting_text("log-format")),
        run.setting_text("trace-id") or trace,
        run.setting_text("span-id") or span,
    )


def _metric_sinks(run: ObservedRun, secrets: dict[str, str]) -> MetricSinks:
    port = run.values["metrics-port"].value
    file, gateway = run.setting_text("metrics-file"), run.setting_text("pushgateway")
    return MetricSinks(
        port=port if isinstance(port, int) else None,
        address=run.setting_text("metrics-address"),
        file=Path(file) if file else None,
        gateway=Pushgateway(gateway, secrets.get("pushgateway-auth", "")) if gateway else None,
        environment=run.setting_text("environment"),
    )


def redact_report(report: Report, run: ObservedRun) -> Report:
    """Redact secrets from texts of other programs, and complete recommended commands with the options of this run."""
    options = {name: value.text for name, value in run.values.items() if value.origin.startswith("--")}
    recommendations = tuple(
        replace(each, command=command_with_options(each.command, options)) for each in report.recommendations
    )
    return redactable_text.redact_report(
        replace(report, recommendations=recommendations), Redactor(dict(_secrets(run)).values())
    )


def _secrets(run: ObservedRun) -> Iterator[tuple[str, str]]:
    """Texts to redact, by name: the mounted secret files, and the kubeconfig given in KUBECONFIG_DATA."""
    for name, path in run.mounts.secrets.items():
        yield name, path.read_text(errors="replace")
    if isinstance(data := run.values["kubeconfig-data"].value, bytes):
        yield "kubeconfig-data", data.decode(errors="replace")
