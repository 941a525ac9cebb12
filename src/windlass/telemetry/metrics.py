"""The four metrics of an action.

Labels are names from the platform and fixed words only, never external text, so they need no redaction.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest, push_to_gateway, write_to_textfile
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from windlass.core.platform.events import Event, NodeFinished, NodeWaiting
from windlass.core.platform.gates import Failed
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.errors import ExitCode, WindlassError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from windlass.core.platform.reporting.reports import Report

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
JOB = "windlass"
BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 2700, 3600, 5400, 7200)
"""Seconds: from an empty plan up to two hours, the default time limit of a run."""
_HEALTH_BY_NAME = {str(health): health for health in Health}


class ActionStatus(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class PushRequest:
    """The HTTP request for a Pushgateway."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class RunMetrics(Collector):
    """Metrics of one action, which starts when this object is created and ends with `finish` or `fail`."""

    def __init__(self, action: str, now: Callable[[], datetime]) -> None:
        self._action = action
        self._now = now
        self._started = now()
        self._status = ActionStatus.RUNNING
        self._duration: timedelta | None = None
        self._health_by_component: dict[str, Health] = {}
        self._errors: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def emit(self, event: Event) -> None:
        if isinstance(event, NodeWaiting) and event.reason in _HEALTH_BY_NAME:
            self._health_by_component[event.name] = _HEALTH_BY_NAME[event.reason]
        elif isinstance(event, NodeFinished):
            self._record_outcome(event.outcome)

    def _record_outcome(self, outcome: Outcome) -> None:
        decision = outcome.decision
        if decision is not None and decision.evidence is not None:
            self._health_by_component[outcome.name] = decision.evidence.health
        if outcome.result is Result.FAILED:
            self._count_failure(outcome.name, str(decision.reason) if isinstance(decision, Failed) else "Failed")

    def _count_failure(self, name: str, reason: str) -> None:
        """Count the first failure of each component only: the report repeats what the events contained."""
        if name not in self._failed:
            self._failed.add(name)
            self._errors[reason] += 1

    def finish(self, report: Report) -> None:
        self._set_result(ActionStatus(report.summary.verdict), report.summary.duration)
        for component in report.components:
            self._health_by_component[component.name] = component.health
        for failure in report.failures:
            self._count_failure(failure.name, failure.reason)

    def fail(self, error: BaseException) -> None:
        """Record that the action ended with an error; does nothing after `finish`."""
        if self._status is ActionStatus.RUNNING:
            cause = _first_error(error)
            is_out_of_time = isinstance(cause, WindlassError) and cause.exit_code is ExitCode.TIMEOUT
            self._set_result(
                ActionStatus.TIMEOUT if is_out_of_time else ActionStatus.FAILURE, self._now() - self._started
            )
            self._errors[type(cause).__name__ if isinstance(cause, Exception) else "Interrupted"] += 1

    def _set_result(self, status: ActionStatus, duration: timedelta) -> None:
        self._status, self._duration = status, duration

    def collect(self) -> Iterator[Metric]:
        duration = HistogramMetricFamily(
            "executor_action_duration_seconds", "Action execution time.", labels=("action", "status")
        )
        if self._duration is not None:
            seconds = self._duration.total_seconds()
            duration.add_metric((self._action, str(self._status)), _buckets(seconds), seconds)
        yield duration
        status = GaugeMetricFamily(
            "executor_action_status", "Current action status: 1 for the one it has.", labels=("action", "status")
        )
        _one_hot(status, self._action, self._status, list(ActionStatus))
        yield status
        health = GaugeMetricFamily(
            "executor_component_health", "Per-component health: 1 for the one it has.", labels=("component", "health")
        )
        for name, current in sorted(self._health_by_component.items()):
            _one_hot(health, name, current, list(Health))
        yield health
        errors = CounterMetricFamily("executor_errors_total", "Error count by type.", labels=("type",))
        for reason, number in sorted(self._errors.items()):
            errors.add_metric((reason,), number)
        yield errors

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def write(self, path: Path) -> None:
        """Write the file atomically: to a temporary file next to it, which is then renamed."""
        write_to_textfile(str(path), self._registry)

    def push_request(self, gateway: str, environment: str) -> PushRequest:
        """The request that replaces what was pushed for this environment before."""
        requests: list[PushRequest] = []

        def capture(
            url: str, method: str, timeout: object, headers: Sequence[tuple[str, str]], data: bytes
        ) -> Callable[[], None]:
            del timeout  # the sender has its own timeout
            requests.append(PushRequest(method, url, dict(headers), data))
            return lambda: None

        group = {"environment": environment} if environment else {}
        push_to_gateway(gateway, JOB, self._registry, group, handler=capture)
        return requests[0]


def _first_error(error: BaseException) -> BaseException:
    """The first leaf of an exception group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _one_hot(family: GaugeMetricFamily, name: str, current: StrEnum, values: Sequence[StrEnum]) -> None:
    for value in values:
        family.add_metric((name, str(value)), 1 if value is current else 0)


def _buckets(seconds: float) -> list[tuple[str, float]]:
    """The cumulative buckets of a single observation."""
    limits = itertools.chain(BUCKETS, [float("inf")])
    return [("+Inf" if limit == float("inf") else str(float(limit)), float(seconds <= limit)) for limit in limits]
