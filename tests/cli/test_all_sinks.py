"""One run with all receivers and sinks, as a command composes them: no output contains a secret."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.builders import NOW
from tests.cli.sample_runs import events, report
from tests.telemetry.test_metric_sinks import gateway
from windlass.cli.event_receivers import EventLog, EventMetrics
from windlass.core.log_lines import Level
from windlass.core.platform.model.health import Health
from windlass.kube.redactions import Redactor
from windlass.telemetry.event_fanout import EventFanout
from windlass.telemetry.library_logs import forward_library_logs
from windlass.telemetry.logs import LogFormat, LogOptions, create_logger
from windlass.telemetry.metric_sinks import MetricSinks, export_metrics
from windlass.telemetry.metrics import RunMetrics
from windlass.telemetry.pushgateway import Pushgateway

if TYPE_CHECKING:
    from pathlib import Path

    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Report

SECRET = 'correct "horse"\nbattery'
EXTERNAL_TEXT = (
    f"a plain {SECRET}, repr {SECRET!r}, Authorization: Bearer correct.horse, https://me:correct@horse.example"
)


@pytest.mark.parametrize("log_format", LogFormat)
@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 correct horse\r\n\r\ncorrect horse"])
async def test_no_sink_contains_a_secret(tmp_path: Path, log_format: LogFormat, answer: bytes) -> None:
    stream, path = io.StringIO(), tmp_path / "windlass.prom"
    metrics = RunMetrics("deploy", lambda: NOW, tuple(Health))
    log = EventLog(
        create_logger(stream, LogOptions("deploy", Level.DEBUG, log_format), lambda: NOW, Redactor([SECRET]))
    )
    emit: EventFanout[Event, Report] = EventFanout({"logs": log, "metrics": EventMetrics(metrics)})
    async with gateway(answer) as fake:
        sinks = MetricSinks(port=0, file=path, gateway=Pushgateway(fake.url, f"me:{SECRET}"), environment="staging")
        with forward_library_logs(emit, lambda: 0.0):
            async with export_metrics(metrics, sinks, emit):
                for event in events(EXTERNAL_TEXT):
                    emit(event)
                emit.finish(report(EXTERNAL_TEXT))
    log_text = stream.getvalue()
    for output in (log_text, path.read_text(), fake.bodies[0].decode()):
        assert "executor_" in output or "[redacted]" in output
        for word in ("correct", "horse\\", "battery"):
            assert word not in output
    assert ("metrics were not pushed" in log_text) == (b"500" in answer)
