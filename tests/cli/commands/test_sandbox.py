"""`windlass sandbox` as a process."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import windlass
from windlass.errors import ExitCode
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.readers import KubeReader
from windlass.kube.client.resources import Resource
from windlass.kube.transport.calls import CallSender
from windlass.kube.transport.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def serving(path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    command = [sys.executable, "-m", "windlass", "sandbox", "--kubeconfig", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, [process.stdout.readline() for _ in range(3)]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_how_to_use_it_and_ends_well(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "kubeconfig"
    with serving(path) as (process, lines):
        assert lines[0].startswith("sandbox    http://127.0.0.1:")
        assert f"export KUBECONFIG={path}" in lines[1]
        assert path.stat().st_mode & 0o777 == 0o600
        process.send_signal(number)
        assert process.wait(10) == ExitCode.SUCCESS
    assert not path.exists(), "a kubeconfig that leads nowhere is of no use"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on PATH")
async def test_it_serves_tls_that_its_kubeconfig_trusts(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with serving(path, "--tls", "--speed", "10"):
        reader = KubeReader(CallSender(HttpTransport(kubeconfigs.load_file(path))))
        assert reader.server.startswith("https://")
        assert await reader.version() == "v1.34.2"
        await reader.close()


def test_it_does_not_overwrite_a_kubeconfig_of_others(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("apiVersion: v1\nkind: Config\n")
    with serving(path) as (process, _):
        assert process.wait(10) == ExitCode.INVALID
    assert path.read_text().startswith("apiVersion")


def test_a_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    ended = windlass("sandbox", "--kubeconfig", str(tmp_path))
    assert ended.code == ExitCode.INVALID
    assert "error: cannot write the kubeconfig: Is a directory" in ended.stderr


def test_a_port_that_others_have(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = windlass("sandbox", "--port", str(port), "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert ended.code == ExitCode.INVALID
    assert f"error: port {port} cannot be had: Address already in use" in ended.stderr


async def test_a_job_of_our_image_runs_our_arguments_under_its_own_token(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    container = {
        "name": "main",
        "image": "registry.test/windlass:1",
        "args": ["validate", "--all", "--format", "$(FORMAT)"],
        "env": [{"name": "FORMAT", "value": "text"}, {"name": "PATH", "value": "/usr/bin:/bin"}],
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    body = {"metadata": {"name": "check"}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}
    with serving(path):
        client = KubeClient(CallSender(HttpTransport(kubeconfigs.load_file(path))))
        jobs = Resource("batch", "v1", "jobs", "Job")
        await client.create(jobs.in_namespace("default"), {"apiVersion": "batch/v1", "kind": "Job", **body})
        status: dict[str, Any] = {}
        async with asyncio.timeout(60):
            while "conditions" not in status:
                await asyncio.sleep(0.2)  # noqa: TID251 - of another process
                status = (await client.get(jobs.named("check", "default")))["status"]
        pods = Resource("", "v1", "pods", "Pod")
        (run,) = (await client.list(pods.in_namespace("default"))).items
        log = await client.logs(pods.named(run["metadata"]["name"], "default"))
        await client.close()
    assert status["succeeded"] == 1
    assert "validate of all" in log
