"""Observers of a run, set up from the settings: the log on stderr or, on a terminal, the live view; and metrics."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.cli.event_receivers import EventLog, EventMetrics, RedactingReceiver
from windlass.cli.options import command_with_options
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.model.health import Health
from windlass.core.platform.reporting import redactable_text
from windlass.core.platform.reporting.recommendations import RunProblem
from windlass.errors import WindlassError
from windlass.kube.bounded_files import read_file
from windlass.kube.clocks import Clock
from windlass.telemetry.event_fanout import EventFanout
from windlass.telemetry.library_logs import forward_library_logs
from windlass.telemetry.logs import LogFormat, LogOptions, create_logger
from windlass.telemetry.metric_sinks import MetricSinks, export_metrics
from windlass.telemetry.metrics import RunMetrics
from windlass.telemetry.pushgateway import Pushgateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from windlass.cli.views.live import LiveView
    from windlass.core.platform.events import Event
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.reporting.recommendations import Recommendation
    from windlass.core.platform.reporting.reports import Report
    from windlass.kube.client.readers import KubeReader
    from windlass.settings.settings import ClusterSettings
    from windlass.telemetry.event_fanout import EventReceiver


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """A run with the settings of its observers. Platform and scope are for the live view; `None` without one."""

    action: str
    settings: ClusterSettings
    platform: Platform | None = None
    scope: Scope | None = None
    environment: str = ""
    """Name of the environment, for the title of the live view."""


@asynccontextmanager
async def observe_run(run: ObservedRun) -> AsyncIterator[EventFanout[Event, Report]]:
    """Start the observers and yield the fan-out that events are emitted to."""
    clock, redact, secrets = Clock(), run.settings.credentials.redactor, _mounted_secrets(run)
    for secret in secrets.values():
        redact.add(secret)
    metrics = RunMetrics(run.action, clock.steady_time(clock.now()), tuple(Health))
    async with AsyncExitStack() as stack:
        if run.platform and _uses_live_view(run.settings):
            view = await stack.enter_async_context(_live_view(run, run.platform))
            receivers: dict[str, EventReceiver[Event, Report]] = {"view": RedactingReceiver(view, redact.printable)}
        else:
            write_line = create_logger(sys.stderr, _log_options(run), clock.now, redact.printable)
            receivers = {"logs": EventLog(write_line, has_report=not _is_short_log(run.settings))}
        emit: EventFanout[Event, Report] = EventFanout({**receivers, "metrics": EventMetrics(metrics)})
        for notice in run.settings.mounts.notices:
            emit(LogLine(Level.WARN, notice))
        stack.enter_context(forward_library_logs(emit, clock.monotonic))
        await stack.enter_async_context(export_metrics(metrics, _metric_sinks(run, secrets), emit))
        try:
            yield emit
        except WindlassError as error:
            if "logs" in receivers:  # a log must be complete; on a terminal the error is printed once, by `main`
                emit(LogLine(Level.ERROR, str(error)))
            raise


def _uses_live_view(settings: ClusterSettings) -> bool:
    """Whether stderr is a capable terminal and neither log format nor log level was set."""
    return sys.stderr.isatty() and not settings.telemetry.is_log_configured and not settings.terminal.is_dumb


def _is_short_log(settings: ClusterSettings) -> bool:
    """Whether the log is for a person who did not ask for it: it must not scroll the report off the screen."""
    return sys.stderr.isatty() and not settings.telemetry.is_log_configured


def _live_view(run: ObservedRun, platform: Platform) -> LiveView:
    from windlass.cli.views.live import LiveView  # noqa: PLC0415
    from windlass.cli.views.live_state import LiveState  # noqa: PLC0415 - loaded only for a terminal

    clock = Clock()
    title = f"{run.action} {run.scope} in {run.environment}"
    state = LiveState(title, clock.monotonic(), platform.expected_durations, platform.max_parallel)
    return LiveView(sys.stderr, clock, state, run.settings.terminal.variables)


def _log_options(run: ObservedRun) -> LogOptions:
    telemetry = run.settings.telemetry
    log_format, level = LogFormat(telemetry.log_format), telemetry.log_level
    if _is_short_log(run.settings):
        level = Level.WARN
    return LogOptions(run.action, level, log_format, telemetry.trace_id, telemetry.span_id)


def _metric_sinks(run: ObservedRun, secrets: dict[str, str]) -> MetricSinks:
    telemetry = run.settings.telemetry
    gateway = telemetry.pushgateway
    return MetricSinks(
        port=telemetry.metrics_port,
        address=telemetry.metrics_address,
        file=telemetry.metrics_file,
        gateway=Pushgateway(gateway, secrets.get("pushgateway-auth", "")) if gateway else None,
        environment=run.settings.environment,
    )


def warn_about_connection(reader: KubeReader, emit: EventFanout[Event, Report]) -> None:
    """Log what the user must know about the connection; `complete_report` repeats it."""
    for notice in reader.notices:
        emit(LogLine(Level.WARN, notice))


def complete_report(report: Report, run: ObservedRun, reader: KubeReader) -> Report:
    """Redact secrets, add the notices of the connection, complete recommended commands with the options of this run."""
    recommendations = tuple(
        replace(each, command=command_with_options(each.command, _repeated_options(run, each)))
        for each in report.recommendations
    )
    notices = (*reader.notices, *report.notices)
    complete = replace(report, recommendations=recommendations, notices=notices)
    return redactable_text.redact_report(complete, run.settings.credentials.redactor.printable)


def _repeated_options(run: ObservedRun, recommendation: Recommendation) -> Mapping[str, str]:
    """The options of this run; without the time limit if that was too short."""
    options = run.settings.given_options
    if recommendation.detected != RunProblem.TIMED_OUT:
        return options
    return {name: value for name, value in options.items() if name != "timeout"}


def _mounted_secrets(run: ObservedRun) -> dict[str, str]:
    return {name: read_file(path).decode(errors="replace") for name, path in run.settings.mounts.secrets.items()}
