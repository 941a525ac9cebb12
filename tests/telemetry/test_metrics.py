"""Names, labels and values as Prometheus reads them."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.builders import NOW, at
from windlass.errors import ExitCode, InvalidInput, WindlassError
from windlass.telemetry.metrics import BUCKETS, ActionStatus, RunMetrics

if TYPE_CHECKING:
    from pathlib import Path

HEALTH_WORDS = ("Healthy", "Progressing", "Degraded")
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class TooLate(WindlassError):
    exit_code = ExitCode.TIMEOUT


def samples(metrics: RunMetrics) -> Samples:
    families = list(text_string_to_metric_families(metrics.text().decode()))
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def running() -> RunMetrics:
    return RunMetrics("deploy", lambda: NOW, HEALTH_WORDS)


def hot(metrics: RunMetrics, name: str) -> dict[str, str]:
    """By action or component: the one status or health that it has. Exactly one is 1 and the others are 0."""
    found: dict[str, list[str]] = {}
    values: dict[str, list[float]] = {}
    for (metric, labels), value in samples(metrics).items():
        if metric == name:
            (_, owner), (_, word) = labels
            values.setdefault(owner, []).append(value)
            found.setdefault(owner, []).extend([word] if value == 1 else [])
    for owner, all_values in values.items():
        assert sorted(all_values) == [0.0] * (len(all_values) - 1) + [1.0], owner
    return {owner: word for owner, [word] in found.items()}


def errors(metrics: RunMetrics) -> dict[str, float]:
    return {
        labels[0][1]: value for (name, labels), value in samples(metrics).items() if name == "executor_errors_total"
    }


def test_the_four_metrics_their_types_and_labels_and_nothing_else() -> None:
    metrics = running()
    metrics.set_component_health("ceph", "Healthy")
    metrics.count_error("Degraded")
    metrics.finish("partial", timedelta(seconds=90))
    families = list(text_string_to_metric_families(metrics.text().decode()))
    assert {(family.name, family.type) for family in families} == {
        ("executor_action_duration_seconds", "histogram"),
        ("executor_action_status", "gauge"),
        ("executor_component_health", "gauge"),
        ("executor_errors", "counter"),
    }
    assert {(s.name, frozenset(s.labels)) for family in families for s in family.samples} == {
        ("executor_action_duration_seconds_bucket", frozenset({"action", "status", "le"})),
        ("executor_action_duration_seconds_count", frozenset({"action", "status"})),
        ("executor_action_duration_seconds_sum", frozenset({"action", "status"})),
        ("executor_action_status", frozenset({"action", "status"})),
        ("executor_component_health", frozenset({"component", "health"})),
        ("executor_errors_total", frozenset({"type"})),
    }
    typed = re.findall(r"^# TYPE (\S+)", metrics.text().decode(), re.MULTILINE)
    assert typed == [
        "executor_action_duration_seconds",
        "executor_action_status",
        "executor_component_health",
        "executor_errors_total",
    ]


def test_while_it_runs_it_says_running_and_no_duration() -> None:
    metrics = running()
    assert hot(metrics, "executor_action_status") == {"deploy": "running"}
    assert {name for name, _ in samples(metrics)} == {"executor_action_status"}


@pytest.mark.parametrize("status", ActionStatus)
def test_the_final_status_labels_the_duration(status: ActionStatus) -> None:
    metrics = running()
    metrics.finish(str(status), timedelta(seconds=90))
    assert hot(metrics, "executor_action_status") == {"deploy": str(status)}
    assert samples(metrics)["executor_action_duration_seconds_sum", (("action", "deploy"), ("status", status))] == 90


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="excellent"):
        running().finish("excellent", timedelta(seconds=90))


@pytest.mark.parametrize("seconds", [0, 0.4, 1, 90, 7200, 10_000])
def test_a_duration_is_in_every_bucket_that_is_not_shorter(seconds: float) -> None:
    metrics = running()
    metrics.finish("success", timedelta(seconds=seconds))
    found = {
        float(dict(labels)["le"]): value
        for (name, labels), value in samples(metrics).items()
        if name == "executor_action_duration_seconds_bucket"
    }
    assert found == {limit: float(seconds <= limit) for limit in [*BUCKETS, float("inf")]}


def test_errors_are_counted_by_kind() -> None:
    metrics = running()
    for kind in ("Degraded", "Interrupted", "Degraded"):
        metrics.count_error(kind)
    assert errors(metrics) == {"Degraded": 2, "Interrupted": 1}


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (InvalidInput("hunter2"), "failure", "InvalidInput"),
        (ExceptionGroup("all", [ExceptionGroup("some", [ConnectionResetError()])]), "failure", "ConnectionResetError"),
        (asyncio.CancelledError(), "failure", "Interrupted"),
        (KeyboardInterrupt(), "failure", "Interrupted"),
        (TooLate("hunter2"), "timeout", "TooLate"),
    ],
)
def test_an_action_that_ends_without_a_report(error: BaseException, status: str, kind: str) -> None:
    moments = [NOW, at(30)]
    metrics = RunMetrics("validate", lambda: moments.pop(0), HEALTH_WORDS)
    metrics.fail(error)
    assert hot(metrics, "executor_action_status") == {"validate": status}
    assert errors(metrics) == {kind: 1}
    assert samples(metrics)["executor_action_duration_seconds_sum", (("action", "validate"), ("status", status))] == 30


def test_an_error_after_the_report_changes_nothing() -> None:
    metrics = running()
    metrics.finish("success", timedelta(seconds=90))
    before = metrics.text()
    metrics.fail(RuntimeError())
    assert metrics.text() == before


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, st.sampled_from(HEALTH_WORDS))))
def test_each_component_has_exactly_its_last_health(changes: list[tuple[str, str]]) -> None:
    metrics = running()
    for name, health in changes:
        metrics.set_component_health(name, health)
    assert hot(metrics, "executor_component_health") == dict(changes)
    assert hot(metrics, "executor_action_status") == {"deploy": "running"}


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path, metrics = tmp_path / "windlass.prom", running()
    path.write_text("what was there before\n")
    with path.open() as reader:
        metrics.write(path)
        assert (
            reader.read() == "what was there before\n"
        )  # a new file took the name; who reads the old one has it whole
    assert path.read_bytes() == metrics.text()
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "windlass.prom"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        running().write(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("gateway", "environment", "url"),
    [
        ("http://push:9091", "staging", "http://push:9091/metrics/job/windlass/action/deploy/environment/staging"),
        ("https://push/base/", "", "https://push/base/metrics/job/windlass/action/deploy"),
    ],
)
def test_a_push_replaces_what_its_environment_pushed_before(gateway: str, environment: str, url: str) -> None:
    metrics = running()
    push = metrics.push_request(gateway, environment)
    assert (push.method, push.url, push.body) == ("PUT", url, metrics.text())
    assert push.headers == {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
