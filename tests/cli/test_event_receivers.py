"""The events and the report of a run in the log, in the metrics, and with secrets redacted."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import NOW
from tests.cli.sample_runs import PLAN, events, outcomes, report
from tests.telemetry.test_metrics import errors, hot
from windlass.cli.event_receivers import EventLog, EventMetrics, RedactingReceiver
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import (
    Event,
    NodeFinished,
    NodeStarted,
    NodeWaiting,
    PhaseStarted,
    PlanReady,
    RunPhase,
)
from windlass.core.platform.gate_values import Evidence, Failed, Open, Proof, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning.plans import Unmet, Verb
from windlass.core.platform.reporting.reports import Report
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.kube.redactions import Redactor
from windlass.telemetry.logs import LogFormat, LogOptions, create_logger
from windlass.telemetry.metrics import ActionStatus, RunMetrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.core.log_lines import WriteLine

COUNTS = "1 failed, 1 interrupted, 1 skipped, 1 succeeded"
SECRETS = st.text(st.characters(codec="utf-8"), min_size=4).filter(lambda secret: len(secret.strip()) >= 4)


def log_items(items: Iterable[Event | Report], write_line: WriteLine) -> None:
    log = EventLog(write_line)
    for item in items:
        log.finish(item) if isinstance(item, Report) else log.emit(item)


def logged_lines(items: Iterable[Event | Report]) -> list[str]:
    lines: list[LogLine] = []
    log_items(items, lines.append)
    return [f"{line.level} [{line.phase}/{line.component}] {line.message}" for line in lines]


def started_metrics() -> RunMetrics:
    return RunMetrics("deploy", lambda: NOW, tuple(Health))


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (PhaseStarted(RunPhase.CONNECT), "info [connect/] connect begins"),
        (LogLine(Level.INFO, "message"), "info [/] message"),
        (LogLine(Level.ERROR, "message", "ceph"), "error [/ceph] message"),
        (NodeStarted("ceph", Verb.SYNC), "info [/ceph] sync begins"),
        (NodeStarted("ceph", Verb.REMOVE, 2), "warn [/ceph] remove begins, attempt 2"),
        (events()[4], "debug [/ceph] waits: Progressing: it is Degraded"),
        (
            NodeFinished(outcomes()[0]),
            f"info [/ceph] succeeded after 1 min: Healthy at 111111111111 ({Proof.NEW_REVISION})",
        ),
        (NodeFinished(outcomes()[1]), "error [/postgres] failed after 30 s and 3 attempts: Degraded: it is Degraded"),
        (NodeFinished(outcomes()[2]), "warn [/keycloak] skipped because of postgres"),
        (NodeFinished(outcomes()[3]), "warn [/ready] interrupted"),
        (NodeFinished(Outcome("ceph", Result.UNCHANGED)), "debug [/ceph] unchanged"),
        (NodeFinished(Outcome("ceph", Result.NOT_STARTED)), "warn [/ceph] not started"),
        (report(), f"warn [/] partial after 1 min 30 s: {COUNTS}; 12 reads, 3 writes, 1 refreshes; exit code 2"),
    ],
)
def test_log_line_of_each_event(item: Event | Report, line: str) -> None:
    assert logged_lines([item])[-1] == line


def test_the_log_of_a_plan_has_unmet_dependencies_steps_and_size() -> None:
    plan = replace(PLAN, steps=PLAN.steps[:1], unmet=(Unmet("vault", ("ceph", "ready"), "it is Degraded"),))
    assert logged_lines([PlanReady(plan)]) == [
        "error [/vault] needed by ceph, ready and out of scope: it is Degraded",
        "debug [/ceph] planned: sync: it does not exist",
        "info [/] 1 steps, 0 unchanged, estimated 3 min",
    ]


def test_the_log_has_the_phase_and_the_diagnostics_of_failures() -> None:
    lines = logged_lines([*events(), report()])
    assert len(lines) == len(events()) + len(PLAN.steps) + 2
    assert lines[0] == "info [plan/] plan begins"
    run_started = lines.index("info [run/] run begins")
    assert all(" [plan/" in line for line in lines[:run_started])
    assert all(" [run/" in line for line in lines[run_started:])
    assert lines[-2] == "debug [run/postgres] it is Degraded"


@settings(deadline=None)
@given(
    secret=SECRETS, padding=st.text(st.characters(codec="utf-8"), max_size=10), log_format=st.sampled_from(LogFormat)
)
def test_no_log_line_contains_a_secret(secret: str, padding: str, log_format: LogFormat) -> None:
    """Compared with a run without the secret: our own messages may contain a secret that is a common word."""

    def messages(external_text: str) -> list[str]:
        stream, options = io.StringIO(), LogOptions("deploy", Level.DEBUG, log_format)
        write_line = create_logger(stream, options, lambda: NOW, Redactor([secret]))
        log_items([*events(external_text), report(external_text)], write_line)
        lines = stream.getvalue().split("\n")[:-1]
        return [json.loads(line)["message"] if log_format is LogFormat.JSON else line for line in lines]

    with_secret, without = messages(f"{padding}{secret}{padding}"), messages(padding * 2)
    for line, expected in zip(with_secret, without, strict=True):
        assert line.replace("[redacted]", "").count(secret) <= expected.replace("[redacted]", "").count(secret)


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_a_status(verdict: Verdict) -> None:
    metrics, sample = started_metrics(), report()
    EventMetrics(metrics).finish(replace(sample, summary=replace(sample.summary, verdict=verdict)))
    assert hot(metrics, "executor_action_status") == {"deploy": str(verdict)}


def test_statuses_are_the_verdicts_and_running() -> None:
    assert {str(status) for status in ActionStatus} == {str(verdict) for verdict in Verdict} | {"running"}


def test_health_follows_the_events_and_finally_the_report() -> None:
    metrics = started_metrics()
    receiver = EventMetrics(metrics)
    receiver.emit(NodeWaiting("ceph", "Progressing", "0 of 3"))
    receiver.emit(NodeWaiting("ceph", "NotFresh", "a refresh is under way"))
    assert hot(metrics, "executor_component_health") == {"ceph": "Progressing"}
    for outcome in outcomes():
        receiver.emit(NodeFinished(outcome))
    assert hot(metrics, "executor_component_health") == {"ceph": "Healthy", "postgres": "Degraded"}
    receiver.finish(report())
    assert hot(metrics, "executor_component_health") == {
        "ceph": "Healthy",
        "keycloak": "Missing",
        "postgres": "Degraded",
        "ready": "Missing",
    }


@pytest.mark.parametrize("health", Health)
def test_every_health_status_is_a_label(health: Health) -> None:
    metrics = started_metrics()
    EventMetrics(metrics).emit(NodeWaiting("waiting", str(health), ""))
    EventMetrics(metrics).emit(NodeFinished(Outcome("done", Result.SUCCEEDED, Open(Evidence(NOW, health)))))
    assert hot(metrics, "executor_component_health") == {"waiting": str(health), "done": str(health)}


def test_the_failure_of_a_component_is_counted_once() -> None:
    metrics = started_metrics()
    receiver = EventMetrics(metrics)
    for event in events():
        receiver.emit(event)
    assert errors(metrics) == {"Degraded": 1}
    receiver.finish(report())
    assert errors(metrics) == {"Degraded": 1, "Interrupted": 1}


def test_a_failure_without_a_decision_is_counted() -> None:
    metrics = started_metrics()
    EventMetrics(metrics).emit(NodeFinished(Outcome("ceph", Result.FAILED)))
    assert errors(metrics) == {"Failed": 1}


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=4).map(lambda text: f"s3cr3t{text}"))
def test_no_metric_contains_external_text(external_text: str) -> None:
    metrics = started_metrics()
    receiver = EventMetrics(metrics)
    for event in events(external_text):
        receiver.emit(event)
    receiver.finish(report(external_text))
    assert "s3cr3t" not in metrics.text().decode()


@dataclass
class RecordingView:
    received: list[Event | Report] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.received.append(event)

    def finish(self, report: Report) -> None:
        self.received.append(report)


def test_external_text_in_events_and_reports_is_redacted() -> None:
    view = RecordingView()
    receiver = RedactingReceiver(view, lambda text: text.replace("hunter2", "***"))
    failed = Failed(Reason.DEGRADED, "hunter2 is wrong")
    sample_events: list[Event] = [
        NodeWaiting("hunter2", "Unknown", "hunter2 is wrong"),
        LogLine(Level.WARN, "hunter2 is wrong"),
        NodeFinished(Outcome("web", Result.FAILED, failed)),
        NodeFinished(Outcome("web", Result.SKIPPED)),
        PhaseStarted(RunPhase.RUN),
    ]
    for event in sample_events:
        receiver.emit(event)
    receiver.finish(report("hunter2"))
    assert view.received == [
        NodeWaiting("***", "Unknown", "*** is wrong"),
        LogLine(Level.WARN, "*** is wrong"),
        NodeFinished(Outcome("web", Result.FAILED, replace(failed, detail="*** is wrong"))),
        *sample_events[3:],
        report("***"),
    ]
