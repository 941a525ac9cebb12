"""All of it together, as a command composes it: one run, every sink, and a secret that everybody says."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.builders import NOW
from tests.telemetry.runs import events, report
from tests.telemetry.test_metric_sinks import gateway
from windlass.core.platform.events import Level
from windlass.telemetry.event_fanout import Telling
from windlass.telemetry.logs import EventLog, LogForm, LogOptions, library_logs, logger
from windlass.telemetry.metric_sinks import Ways, emitting
from windlass.telemetry.metrics import Metrics
from windlass.telemetry.pushgateway import Gateway
from windlass.telemetry.redaction import Redactions

if TYPE_CHECKING:
    from pathlib import Path

SECRET = 'correct "horse"\nbattery'
SAID = f"a plain {SECRET}, repr {SECRET!r}, Authorization: Bearer correct.horse, https://me:correct@horse.example"


@pytest.mark.parametrize("form", LogForm)
@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 correct horse\r\n\r\ncorrect horse"])
async def test_no_sink_shows_a_secret(tmp_path: Path, form: LogForm, answer: bytes) -> None:
    stream, path = io.StringIO(), tmp_path / "windlass.prom"
    metrics = Metrics("deploy", lambda: NOW)
    log = EventLog(logger(stream, LogOptions("deploy", Level.DEBUG, form), lambda: NOW, Redactions([SECRET])))
    tell = Telling({"logs": log, "metrics": metrics})
    async with gateway(answer) as fake:
        ways = Ways(port=0, file=path, gateway=Gateway(fake.url, f"me:{SECRET}"), environment="staging")
        with library_logs(tell):
            async with emitting(metrics, ways, tell):
                for event in events(SAID):
                    tell(event)
                tell.ended(report(SAID))
    written = stream.getvalue()
    for sink in (written, path.read_text(), fake.bodies[0].decode()):
        assert "executor_" in sink or "[redacted]" in sink
        for word in ("correct", "horse\\", "battery"):
            assert word not in sink
    assert ("metrics were not pushed" in written) == (b"500" in answer)
