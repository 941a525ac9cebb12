"""The four metrics of an action.

Labels are component names and fixed words only, never external text, so they need no redaction.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest, push_to_gateway
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from windlass import output_files
from windlass.errors import ExitCode, WindlassError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
JOB = "windlass"
BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 2700, 3600, 5400, 7200)
"""Seconds: from an empty plan up to two hours, the default time limit of a run."""


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
    """Metrics of one action, which starts when this object is created and ends with `finish` or `fail`.

    `health_words` are the values that the health of a component may have.
    """

    def __init__(self, action: str, now: Callable[[], datetime], health_words: Sequence[str]) -> None:
        self._action = action
        self._now = now
        self._health_words = health_words
        self._started = now()
        self._status = ActionStatus.RUNNING
        self._duration: timedelta | None = None
        self._health_by_component: dict[str, str] = {}
        self._errors: Counter[str] = Counter()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def set_component_health(self, component: str, health: str) -> None:
        """Set the health of a component to one of the `health_words`."""
        self._health_by_component[component] = health

    def count_error(self, kind: str) -> None:
        self._errors[kind] += 1

    def finish(self, status: str, duration: timedelta) -> None:
        """Record that the action ended; `status` is the value of an `ActionStatus`."""
        self._status, self._duration = ActionStatus(status), duration

    def fail(self, error: BaseException) -> None:
        """Record that the action ended with an error; does nothing after `finish`."""
        if self._status is ActionStatus.RUNNING:
            cause = _first_error(error)
            is_out_of_time = isinstance(cause, WindlassError) and cause.exit_code is ExitCode.TIMEOUT
            self.finish(ActionStatus.TIMEOUT if is_out_of_time else ActionStatus.FAILURE, self._now() - self._started)
            self.count_error(type(cause).__name__ if isinstance(cause, Exception) else "Interrupted")

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
        _one_hot(status, self._action, self._status, tuple(ActionStatus))
        yield status
        health = GaugeMetricFamily(
            "executor_component_health", "Per-component health: 1 for the one it has.", labels=("component", "health")
        )
        for name, current in sorted(self._health_by_component.items()):
            _one_hot(health, name, current, self._health_words)
        yield health
        errors = CounterMetricFamily("executor_errors_total", "Error count by type.", labels=("type",))
        for reason, number in sorted(self._errors.items()):
            errors.add_metric((reason,), number)
        yield errors

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def write(self, path: Path) -> None:
        output_files.write_file(path, self.text())

    def push_request(self, gateway: str, environment: str) -> PushRequest:
        """The request that replaces what was pushed for this action in this environment before."""
        requests: list[PushRequest] = []

        def capture(
            url: str, method: str, timeout: object, headers: Sequence[tuple[str, str]], data: bytes
        ) -> Callable[[], None]:
            del timeout  # the sender has its own timeout
            requests.append(PushRequest(method, url, dict(headers), data))
            return lambda: None

        group = {"action": self._action, **({"environment": environment} if environment else {})}
        push_to_gateway(gateway, JOB, self._registry, group, handler=capture)
        return requests[0]


def _first_error(error: BaseException) -> BaseException:
    """The first leaf of an exception group, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _one_hot(family: GaugeMetricFamily, name: str, current: str, values: Sequence[str]) -> None:
    for value in values:
        family.add_metric((name, str(value)), float(value == current))


def _buckets(seconds: float) -> list[tuple[str, float]]:
    """The cumulative buckets of a single observation."""
    return [*((str(float(limit)), float(seconds <= limit)) for limit in BUCKETS), ("+Inf", 1.0)]
