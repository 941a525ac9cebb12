"""Receivers for the events and the report of a platform run: log, metrics, and redaction for other receivers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windlass.core.platform.events import NodeFinished, NodeWaiting, PhaseStarted
from windlass.core.platform.gate_values import Failed
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.reporting import redactable_text, run_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from windlass.core.log_lines import LogLine, WriteLine
    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Report
    from windlass.telemetry.event_fanout import EventReceiver
    from windlass.telemetry.metrics import RunMetrics


class EventLog:
    """Writes events and the report as log lines, each with the current phase."""

    def __init__(self, write_line: WriteLine, *, has_report: bool = True) -> None:
        """`has_report`: whether the log ends with the verdict. A terminal shows the report itself."""
        self._write_line = write_line
        self._has_report = has_report
        self._phase = ""

    def emit(self, event: Event) -> None:
        if isinstance(event, PhaseStarted):
            self._phase = str(event.phase)
        self._write_lines(run_log.event_lines(event))

    def finish(self, report: Report) -> None:
        if self._has_report:
            self._write_lines(run_log.report_lines(report))

    def _write_lines(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self._write_line(replace(line, phase=self._phase))


class EventMetrics:
    """Updates the metrics of the run; the report overrides the health from earlier events."""

    def __init__(self, metrics: RunMetrics) -> None:
        self._metrics = metrics
        self._failed: set[str] = set()

    def emit(self, event: Event) -> None:
        match event:
            case NodeWaiting(name, reason) if reason in set(Health):  # other reasons are not health statuses
                self._metrics.set_component_health(name, reason)
            case NodeFinished(Outcome(name, result, decision)):
                if decision is not None and decision.evidence is not None:
                    self._metrics.set_component_health(name, decision.evidence.health)
                if result is Result.FAILED:
                    self._count_failure(name, decision.reason if isinstance(decision, Failed) else "Failed")

    def finish(self, report: Report) -> None:
        self._metrics.finish(report.summary.verdict, report.summary.duration)
        for component in report.components:
            self._metrics.set_component_health(component.name, component.health)
        for failure in report.failures:
            self._count_failure(failure.name, failure.reason)

    def _count_failure(self, name: str, reason: str) -> None:
        """Count the first failure of each component only: the report repeats what the events contained."""
        if name not in self._failed:
            self._failed.add(name)
            self._metrics.count_error(reason)


class RedactingReceiver:
    """Redacts events and reports before it passes them on. `EventLog` needs no such wrapper: its logger redacts."""

    def __init__(self, receiver: EventReceiver[Event, Report], redact: Callable[[str], str]) -> None:
        self._receiver = receiver
        self._redact = redact

    def emit(self, event: Event) -> None:
        self._receiver.emit(redactable_text.redact_event(event, self._redact))

    def finish(self, report: Report) -> None:
        self._receiver.finish(redactable_text.redact_report(report, self._redact))
