"""All of it together, as a command composes it: one run, every sink, and a secret that everybody says."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.builders import NOW
from tests.telemetry.runs import events, report
from tests.telemetry.test_metric_sinks import gateway
from windlass.core.platform.events import Level
from windlass.telemetry.event_fanout import EventFanout
from windlass.telemetry.logs import EventLog, LogFormat, LogOptions, create_logger, forward_library_logs
from windlass.telemetry.metric_sinks import MetricSinks, export_metrics
from windlass.telemetry.metrics import RunMetrics
from windlass.telemetry.pushgateway import Pushgateway
from windlass.telemetry.redaction import Redactor

if TYPE_CHECKING:
    from pathlib import Path

SECRET = 'correct "horse"\nbattery'
SAID = f"a plain {SECRET}, repr {SECRET!r}, Authorization: Bearer correct.horse, https://me:correct@horse.example"


@pytest.mark.parametrize("form", LogFormat)
@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 correct horse\r\n\r\ncorrect horse"])
async def test_no_sink_shows_a_secret(tmp_path: Path, form: LogFormat, answer: bytes) -> None:
    stream, path = io.StringIO(), tmp_path / "windlass.prom"
    metrics = RunMetrics("deploy", lambda: NOW)
    log = EventLog(create_logger(stream, LogOptions("deploy", Level.DEBUG, form), lambda: NOW, Redactor([SECRET])))
    tell = EventFanout({"logs": log, "metrics": metrics})
    async with gateway(answer) as fake:
        ways = MetricSinks(port=0, file=path, gateway=Pushgateway(fake.url, f"me:{SECRET}"), environment="staging")
        with forward_library_logs(tell):
            async with export_metrics(metrics, ways, tell):
                for event in events(SAID):
                    tell(event)
                tell.finish(report(SAID))
    written = stream.getvalue()
    for sink in (written, path.read_text(), fake.bodies[0].decode()):
        assert "executor_" in sink or "[redacted]" in sink
        for word in ("correct", "horse\\", "battery"):
            assert word not in sink
    assert ("metrics were not pushed" in written) == (b"500" in answer)
