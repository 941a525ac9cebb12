"""Metrics on a port, in a file and at a gateway: real sockets on loopback; time limits are arguments."""

from __future__ import annotations

import asyncio
import base64
import os
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.builders import NOW
from tests.kube.leaks import assert_hidden
from windlass.core.log_lines import Level, LogLine
from windlass.errors import ExitCode, InvalidInput
from windlass.telemetry.metric_sinks import MetricSinks, export_metrics
from windlass.telemetry.metrics import RunMetrics
from windlass.telemetry.metrics_server import MAX_CONNECTIONS, MAX_HEAD_SIZE, serve_metrics
from windlass.telemetry.pushgateway import Pushgateway, push_metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LOOPBACK = "127.0.0.1"
NEVER = 0.05  # seconds a test is willing to wait for what does not come


def running() -> RunMetrics:
    return RunMetrics("deploy", lambda: NOW, ("Healthy", "Degraded"))


async def asked(port: int, request: str) -> tuple[str, dict[str, str], bytes]:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return status, dict(line.split(": ", 1) for line in lines if line), body


@dataclass
class FakeGateway:
    """Answers every request with `answer`, or never."""

    answer: bytes | None = b"HTTP/1.1 200 OK\r\n\r\n"
    port: int = 0
    heads: list[list[str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(int(line.split(": ")[1]) for line in head if line.startswith("Content-Length"))
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(length))
        if self.answer is not None:
            writer.write(self.answer)
        else:
            await reader.read()  # until the other side gives up
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def gateway(answer: bytes | None = FakeGateway.answer) -> AsyncIterator[FakeGateway]:
    fake = FakeGateway(answer)
    server = await asyncio.start_server(fake.take, LOOPBACK, 0)
    fake.port = server.sockets[0].getsockname()[1]
    async with server:
        yield fake
        if fake.tasks:
            await asyncio.wait(fake.tasks)


@pytest.mark.parametrize(
    ("request_line", "status", "has_body"),
    [
        ("GET /metrics HTTP/1.1", "HTTP/1.1 200 OK", True),
        ("GET /metrics?x=1 HTTP/1.0", "HTTP/1.1 200 OK", True),
        ("HEAD /metrics HTTP/1.1", "HTTP/1.1 200 OK", False),
        ("POST /metrics HTTP/1.1", "HTTP/1.1 405 Method Not Allowed", True),
        ("GET / HTTP/1.1", "HTTP/1.1 404 Not Found", True),
        ("nonsense", "HTTP/1.1 404 Not Found", True),
    ],
)
async def test_what_is_served(request_line: str, status: str, has_body: bool) -> None:
    metrics = running()
    async with serve_metrics(metrics.text, LOOPBACK, 0) as (_, port):
        answered, headers, body = await asked(port, f"{request_line}\r\nHost: x\r\n\r\n")
    assert answered == status
    assert bool(body) == has_body
    assert headers["Connection"] == "close"
    if status.endswith("OK"):
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert int(headers["Content-Length"]) == len(metrics.text())
        assert body in {metrics.text(), b""}
    else:
        assert int(headers["Content-Length"]) == len(body)


async def test_no_more_than_32_connections_at_once() -> None:
    async with serve_metrics(running().text, LOOPBACK, 0) as (_, port):
        idle = [await asyncio.open_connection(LOOPBACK, port) for _ in range(MAX_CONNECTIONS)]
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        with suppress(ConnectionError):
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert await reader.read() == b""
        writer.close()
        for _, idle_writer in idle:
            idle_writer.close()
            with suppress(ConnectionError):
                await idle_writer.wait_closed()
        status, _, _ = await asked(port, "GET /metrics HTTP/1.1\r\n\r\n")
    assert status == "HTTP/1.1 200 OK"


async def test_each_request_sees_the_present() -> None:
    metrics = running()
    async with serve_metrics(metrics.text, LOOPBACK, 0) as (_, port):
        _, _, before = await asked(port, "GET /metrics HTTP/1.1\r\n\r\n")
        metrics.finish("partial", timedelta(seconds=90))
        _, _, after = await asked(port, "GET /metrics HTTP/1.1\r\n\r\n")
    assert b'status="running"} 1.0' in before
    assert b'status="partial"} 1.0' in after


@pytest.mark.parametrize("sent", ["", "GET /metrics HTTP/1.1\r\n", "x" * (MAX_HEAD_SIZE * 3)])
async def test_a_client_that_never_asks_is_cut_off(sent: str) -> None:
    async with serve_metrics(running().text, LOOPBACK, 0, client_timeout=NEVER) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(sent.encode())
        with suppress(ConnectionResetError):  # cut off with bytes unread
            assert await reader.read() == b""
        writer.transport.abort()


async def test_a_client_that_stays_does_not_hold_up_the_end() -> None:
    troubles: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
    async with serve_metrics(running().text, LOOPBACK, 0, client_timeout=3600) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(b"GET /metrics")
        _, _, body = await asked(port, "GET /metrics HTTP/1.1\r\n\r\n")  # the other one is accepted by now
        assert body
    assert await reader.read() == b""
    writer.transport.abort()
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection(LOOPBACK, port)
    assert not troubles


async def test_a_port_that_is_taken_is_told_before_anything_begins() -> None:
    began = False
    async with serve_metrics(running().text, LOOPBACK, 0) as (_, port):
        with pytest.raises(InvalidInput) as refused:
            async with export_metrics(running(), MetricSinks(port=port), lambda _: None):
                began = True
    assert not began
    assert refused.value.exit_code is ExitCode.INVALID
    assert str(refused.value) == (
        f"--metrics-port: metrics cannot be served on 127.0.0.1 port {port} "
        "(another process has it; choose another port)"
    )


@pytest.mark.parametrize("address", ["192.0.2.1", "x" * 64])
async def test_an_address_that_is_not_ours_is_refused(address: str) -> None:
    hint = "it must be an address of this machine, or 0.0.0.0"
    with pytest.raises(InvalidInput) as refused:
        async with serve_metrics(running().text, address, 0):
            pass
    assert str(refused.value) == f"--metrics-port: metrics cannot be served on {address} port 0 ({hint})"


async def test_a_push_is_one_request_with_all_metrics() -> None:
    metrics = running()
    async with gateway() as fake:
        assert await push_metrics(Pushgateway(fake.url, "me:hunter2\n"), metrics, "staging") == ""
    [head], [body] = fake.heads, fake.bodies
    assert head[0] == "PUT /metrics/job/windlass/action/deploy/environment/staging HTTP/1.1"
    assert f"Host: {LOOPBACK}:{fake.port}" in head
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert f"Authorization: Basic {base64.b64encode(b'me:hunter2').decode()}" in head
    assert body == metrics.text()


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (b"HTTP/1.1 202 Accepted\r\n\r\n", ""),
        (b"HTTP/1.1 400 Bad Request\r\n\r\nhunter2", "refused the metrics: it answered 400"),
        (b"HTTP/1.1 301 Moved\r\nLocation: http://elsewhere\r\n\r\n", "refused the metrics: it answered 301"),
        (b"220 mail.example ESMTP\r\n", "did not answer in HTTP"),
        (b"HTTP/1.1 OK\r\n", "did not answer in HTTP"),
        (b"", "did not answer in HTTP"),
        (b"x" * 100_000, "did not answer in HTTP"),
        (None, "did not answer within 0.05 s"),
    ],
)
async def test_what_a_gateway_answers(answer: bytes | None, wrong: str) -> None:
    async with gateway(answer) as fake:
        told = await push_metrics(Pushgateway(fake.url, timeout=NEVER if answer is None else 30), running(), "staging")
    assert told == (f"the Pushgateway at {LOOPBACK}:{fake.port} {wrong}" if wrong else "")


async def test_a_gateway_that_is_not_there_and_what_is_not_said_about_it() -> None:
    async with gateway() as fake:
        pass
    where = Pushgateway(fake.url.replace("://", "://me:hunter2@"), "me:hunter2")
    told = await push_metrics(where, running(), "staging")
    assert told.startswith(f"the Pushgateway at {LOOPBACK}:{fake.port} cannot be reached: ")
    assert "hunter2" not in told
    assert "hunter2" not in repr(Pushgateway(fake.url, "me:hunter2"))


async def test_a_gateway_whose_name_cannot_be_one() -> None:
    told = await push_metrics(Pushgateway(f"http://{'x' * 64}"), running(), "staging")
    assert told.startswith(f"the Pushgateway at {'x' * 64} cannot be reached: ")


@pytest.mark.parametrize("url", ["http://push:9091", "http://10.0.0.1", "http://localhost.example"])
def test_the_credentials_of_a_gateway_are_not_sent_without_tls(url: str) -> None:
    with pytest.raises(InvalidInput, match="would travel without encryption") as caught:
        Pushgateway(url, "me:hunter2")
    assert_hidden(caught.value, "hunter2")
    for safe in (url.replace("http:", "https:"), "http://127.0.0.1:9091", "http://localhost", "http://[::1]:9091"):
        assert Pushgateway(safe, "me:hunter2").url == safe
    assert Pushgateway(url).credentials == ""


def test_a_gateway_has_two_seconds_unless_told_otherwise() -> None:
    assert Pushgateway("http://push").timeout == 2


async def test_an_action_by_every_way_at_once(tmp_path: Path) -> None:
    metrics, path = running(), tmp_path / "windlass.prom"
    told: list[LogLine] = []
    async with gateway() as fake:
        ways = MetricSinks(port=0, file=path, gateway=Pushgateway(fake.url), environment="staging")
        async with export_metrics(metrics, ways, told.append):
            [notice] = told
            assert notice.message.startswith("metrics are served at http://127.0.0.1:")
            assert b'status="running"} 1.0' in path.read_bytes()
            assert not fake.bodies
            metrics.finish("partial", timedelta(seconds=90))
    assert path.read_bytes() == metrics.text() == fake.bodies[0]
    assert b'status="partial"} 1.0' in metrics.text()
    assert told == [notice]


def test_nothing_is_emitted_that_nobody_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[LogLine] = []

    async def work() -> None:
        async with export_metrics(running(), MetricSinks(), told.append):
            pass

    asyncio.run(work())
    assert not told
    assert not list(tmp_path.iterdir())


async def test_an_action_that_breaks_off_is_emitted_as_a_failure(tmp_path: Path) -> None:
    metrics, path = running(), tmp_path / "windlass.prom"
    with pytest.raises(asyncio.CancelledError):
        async with export_metrics(metrics, MetricSinks(file=path), lambda _: None):
            raise asyncio.CancelledError
    assert b'executor_errors_total{type="Interrupted"} 1.0' in path.read_bytes()


@pytest.mark.parametrize("path", ["absent/windlass.prom", "."])
async def test_a_file_that_cannot_be_written_is_told_before_anything_begins(tmp_path: Path, path: str) -> None:
    began = False
    with pytest.raises(InvalidInput, match="its directory must exist") as refused:
        async with export_metrics(running(), MetricSinks(file=tmp_path / path), lambda _: None):
            began = True
    assert not began
    assert str(refused.value).startswith("--metrics-file: metrics cannot be written to ")


async def test_a_file_is_not_written_through_a_link_and_can_be_read_by_others(tmp_path: Path) -> None:
    link, target = tmp_path / "windlass.prom", tmp_path / "target"
    link.symlink_to(target)
    with pytest.raises(InvalidInput, match="it is a symbolic link"):
        async with export_metrics(running(), MetricSinks(file=link), lambda _: None):
            pass
    assert not target.exists()
    link.unlink()
    async with export_metrics(running(), MetricSinks(file=link), lambda _: None):
        pass
    assert link.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    os.umask(current := os.umask(0))
    return current


async def test_what_fails_at_the_end_is_a_warning(tmp_path: Path) -> None:
    directory = tmp_path / "mounted"
    directory.mkdir()
    told: list[LogLine] = []
    async with gateway(None) as fake:
        ways = MetricSinks(file=directory / "windlass.prom", gateway=Pushgateway(fake.url, timeout=NEVER))
        async with export_metrics(running(), ways, told.append):
            (directory / "windlass.prom").unlink()
            directory.rmdir()
    assert told == [
        LogLine(Level.WARN, f"metrics were not written to {ways.file}: No such file or directory"),
        LogLine(
            Level.WARN,
            f"metrics were not pushed: the Pushgateway at {LOOPBACK}:{fake.port} did not answer within 0.05 s",
        ),
    ]


async def test_an_address_of_the_new_kind() -> None:
    told: list[LogLine] = []
    try:
        async with export_metrics(running(), MetricSinks(port=0, address="::1"), told.append):
            pass
    except InvalidInput:
        pytest.skip("this machine has no IPv6")
    [notice] = told
    assert notice.message.startswith("metrics are served at http://[::1]:")
