"""`windlass sandbox` as a process."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import serving, windlass
from windlass.cli import sandbox_programs
from windlass.errors import ExitCode
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.readers import KubeReader
from windlass.kube.client.resources import Resource
from windlass.kube.transport.calls import CallSender
from windlass.kube.transport.http import HttpTransport
from windlass.sandbox.controllers.programs import Process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_how_to_use_it_and_ends_well(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "kubeconfig"
    with serving(path) as (process, lines):
        assert lines[0].startswith("sandbox    https://127.0.0.1:")
        assert f"export KUBECONFIG={path}" in lines[1]
        assert path.stat().st_mode & 0o777 == 0o600
        process.send_signal(number)
        assert process.wait(10) == ExitCode.SUCCESS
    assert not path.exists(), "a kubeconfig that leads nowhere is of no use"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on PATH")
async def test_it_serves_tls_that_its_kubeconfig_trusts(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with serving(path, "--speed", "10"):
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


async def job_outcome(path: Path, container: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Status and log of a Job whose container has the image of windlass."""
    container = {"name": "main", "image": "registry.test/windlass:1", **container}
    pod = {"restartPolicy": "Never", "containers": [container]}
    body = {"metadata": {"name": "check"}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}
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
    return status, log


async def test_a_job_of_our_image_runs_our_arguments_under_its_own_token(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    variables = {
        "FORMAT": "text",
        "KUBECONFIG_DATA": "bm90aGluZw==",
        "KUBECONFIG_PATH": "/nowhere",
        "LD_PRELOAD": "/nowhere.so",
        "PYTHONPATH": str(tmp_path / "evil"),
        "PYTHONSTARTUP": "x",
        "METRICS_FILE": str(tmp_path / "metrics"),
    }
    (tmp_path / "evil" / "windlass").mkdir(parents=True)
    (tmp_path / "evil/windlass/__main__.py").write_text("print('evil')")
    container = {
        "args": ["validate", "--all", "--format", "$(FORMAT)"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
    }
    with serving(path, "--programs"):
        status, log = await job_outcome(path, container)
    assert status["succeeded"] == 1, log
    assert "validate of all" in log
    assert "LD_PRELOAD" not in log
    assert not (tmp_path / "metrics").exists()


async def test_no_pod_runs_a_program_unless_asked(tmp_path: Path) -> None:
    """It plays a part, like every other pod: an image without a behaviour runs on."""
    path = tmp_path / "kubeconfig"
    image = "registry.test/windlass:1"
    annotations = {"sandbox.windlass.dev/ends-after": "1s"}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image, "args": ["nonsense"]}]}
    pods = Resource("", "v1", "pods", "Pod")
    with serving(path, "--speed", "50"):
        client = KubeClient(CallSender(HttpTransport(kubeconfigs.load_file(path))))
        body = {"metadata": {"name": "it", "annotations": annotations}, "spec": spec}
        await client.create(pods.in_namespace("default"), {"apiVersion": "v1", "kind": "Pod", **body})
        phase = ""
        async with asyncio.timeout(30):
            while phase != "Succeeded":
                await asyncio.sleep(0.1)  # noqa: TID251 - of another process
                phase = (await client.get(pods.named("it", "default")))["status"]["phase"]
        assert await client.logs(pods.named("it", "default")) == ""
        await client.close()


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        (["windlass", "sandbox"], "sandbox"),
        (["demo", "--out", "x"], "demo, --out"),
        (["import", "--out", "$FILE", "--force"], "import, --out, --force"),
        (["--version"], "--version"),
        (["cluster", "--kubeconfig", "$FILE"], "--kubeconfig"),
        (["cluster", "--kubeconfig=$FILE"], "--kubeconfig=$FILE"),
        (["plan", "--out=$FILE"], "--out=$FILE"),
        (["deploy", "--metrics-file", "$FILE"], "--metrics-file"),
        (["validate", "--all", "--", "--pushgateway", "http://a.test"], "--, --pushgateway"),
    ],
    ids=lambda value: "-".join(value).replace("$", "") if isinstance(value, list) else "",
)
async def test_what_a_pod_may_not_ask_for(arguments: list[str], refused: str, tmp_path: Path) -> None:
    """A command that serves or writes files, and options that name a kubeconfig, a file to write or an address."""
    lines: list[str] = []
    file = str(tmp_path / "file")

    def no_token() -> str:
        raise AssertionError("it is refused first")

    program = sandbox_programs.windlass_program("https://127.0.0.1:1", b"")
    argv = tuple(word.replace("$FILE", file) for word in arguments)
    assert await program(Process(argv, {}, no_token, lines.append)) == ExitCode.INVALID
    assert lines == [f"error: a pod of the sandbox may not use {refused.replace('$FILE', file)}"]


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_the_kubeconfig_is_not_written_through_a_link_or_into_a_pipe(tmp_path: Path, kind: str) -> None:
    path, target = tmp_path / "kubeconfig", tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    if kind == "link":
        target.write_text("# Written by windlass sandbox")
    ended = windlass("sandbox", "--kubeconfig", str(path))
    assert ended.code == ExitCode.INVALID
    assert "error: cannot write the kubeconfig: it is " in ended.stderr
    assert "token" not in (target.read_text() if target.exists() else "")
