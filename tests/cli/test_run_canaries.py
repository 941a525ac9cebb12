"""Runs as processes on a cluster whose every message quotes the credentials in use: no output shows any part of one."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pty
import re
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from tests.cli.quoting_server import QuotingServer, serve_quotes
from tests.cli.test_canaries import PASSWORD, PROXY_PASSWORD, RENEWED, SECRET, canaries
from tests.invariants.clusters import Stage, platform_file, staged
from tests.kube.certificate_authorities import authority
from tests.kube.loopback_servers import proxying
from tests.processes import inherited
from tests.secret_forms import written_forms
from tests.simulation.scenarios import newer, told
from tests.telemetry.test_metric_sinks import gateway
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from tests.cli.test_canaries import Canary

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KINDS = ("token", "data", "password", "token file", "plugin", "key and proxy")
EXPIRES_AFTER = 2  # the request at which the first token of a kind that can be renewed is refused
LIMITS = "sync: 20s, health: 15s, degradedGrace: 1s, expected: 1s"
PART_LENGTH = 10  # characters of a secret that must not be seen in a row
MARKS = re.compile(r"-+(?:BEGIN|END)[A-Z %+\\]*-+|(?:%2D|-)+(?:BEGIN|END)\S*")
TRACEBACK = """
import sys

from windlass import __main__
from windlass.kube.client.readers import KubeReader

async def broken(self, *arguments, **options):
    await read(self, *arguments, **options)
    raise ValueError("read " + quoted) from KeyError(quoted.partition("\\n")[0])

quoted, read = open(sys.argv.pop(1)).read(), KubeReader.list
KubeReader.list = broken
__main__.run()
"""
UNREDACTED = """
from windlass import __main__
from windlass.kube.redactions import Redactor

Redactor.__call__ = lambda self, text: str(text)
__main__.run()
"""


@dataclass
class World:
    stage: Stage
    server: QuotingServer
    canary: Canary
    environ: dict[str, str]
    reset: Callable[[], None]
    program: tuple[str, ...] = ("-m", "windlass")
    outputs: dict[str, str] = field(default_factory=dict)
    """What processes wrote, by where they wrote it."""

    async def run(
        self, *arguments: str, environ: Mapping[str, str] | None = None, name: str = "", program: tuple[str, ...] = ()
    ) -> int:
        """The exit code of the process."""
        self.reset()
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, *(program or self.program), *arguments],
            env={**self.environ, **(environ or {})},
            cwd=self.stage.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        name = name or arguments[0]
        self.add(f"{name}: stdout", done.stdout)
        self.add(f"{name}: stderr", done.stderr)
        return done.returncode

    def run_on_terminal(self, *arguments: str) -> int:
        """Its stderr is a terminal, so it shows the live view."""
        self.reset()
        ours, theirs = pty.openpty()
        drawn: list[bytes] = []
        reading = threading.Thread(target=_read_all, args=(ours, drawn))
        command = [sys.executable, *self.program, *arguments]
        environ = {**self.environ, "TERM": "xterm", "COLUMNS": "1500", "LINES": "60"}
        with subprocess.Popen(
            command, env=environ, cwd=self.stage.folder, stdout=subprocess.PIPE, stderr=theirs
        ) as process:
            os.close(theirs)
            reading.start()
            stdout, _ = process.communicate(timeout=60)
        reading.join(20)
        os.close(ours)
        self.add("live view", b"".join(drawn).decode())
        self.add("live view: stdout", stdout.decode())
        return process.returncode

    def add(self, name: str, text: str) -> None:
        assert "Usage:" not in text, text
        self.outputs[name] = self.outputs.get(name, "") + text


def _read_all(descriptor: int, drawn: list[bytes]) -> None:
    try:
        while part := os.read(descriptor, 100_000):
            drawn.append(part)
    except OSError:
        return  # the other side is closed


@dataclass
class Tokens:
    """What the server accepts. A token that can be renewed expires soon after a process has started."""

    kind: str
    folder: Path
    count: int = 0

    def is_accepted(self, authorization: str) -> bool:
        basic = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        headers = {"password": f"Basic {basic}", "key and proxy": ""}
        if self.kind not in {"plugin", "token file"}:
            return authorization == headers.get(self.kind, f"Bearer {SECRET}")
        self.count += 1
        if self.count == EXPIRES_AFTER:
            (self.folder / "token").write_text(RENEWED)
        return authorization == f"Bearer {SECRET if self.count < EXPIRES_AFTER else RENEWED}"

    def reset(self) -> None:
        """The next process starts with the first token."""
        self.count = 0
        (self.folder / "token").write_text(SECRET)
        (self.folder / "answered").unlink(missing_ok=True)


@asynccontextmanager
async def world(folder: Path, kind: str) -> AsyncIterator[World]:
    canary = canaries(folder)["token" if kind == "data" else kind]
    secrets = [*canary.secrets, *([RENEWED] if kind == "token file" else [])]
    tokens = Tokens(kind, folder)
    scenario = told("c: b; b: a", parts={"b": {"kind": "Deployment", "trouble": "crashing"}})
    first = scenario.commits[0]
    scenario = replace(scenario, commits=(first, second := newer(first), newer(second)))
    cluster_folder = folder / "cluster"
    cluster_folder.mkdir()
    clients = authority().pem if kind == "key and proxy" else None
    with staged(cluster_folder, scenario) as stage:
        stage.write("dag.yaml", platform_file(scenario, LIMITS))
        stage.cluster.argocd.health_overrides["b"] = "Degraded"
        token = stage.cluster.sandbox.server.authenticator.admin_token
        address = re.search(r"server: (\S+)", stage.cluster.kubeconfig.read_text())
        assert address
        server = QuotingServer(written_forms(secrets), address[1], token, tokens.is_accepted)
        authorization = "Basic " + base64.b64encode(f"me:{PROXY_PASSWORD}".encode()).decode()
        async with (
            serve_quotes(server, authority().server_context("127.0.0.1", clients=clients)),
            proxying(server.port, authorization) as proxy,
        ):
            kubeconfig = kubeconfig_of(server, canary, proxy.port if canary.uses_proxy else 0)
            environ = {**inherited(), "ENVIRONMENT": "development", **access(kubeconfig, folder, kind)}
            yield World(stage, server, canary, environ, tokens.reset)


def kubeconfig_of(server: QuotingServer, canary: Canary, proxy: int) -> str:
    cluster = {
        "server": f"https://127.0.0.1:{server.port}",
        "certificate-authority-data": base64.b64encode(authority().pem).decode(),
    }
    if proxy:
        cluster["proxy-url"] = f"http://me:{PROXY_PASSWORD.replace('/', '%2F')}@127.0.0.1:{proxy}"
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": canary.user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def access(kubeconfig: str, folder: Path, kind: str) -> dict[str, str]:
    if kind == "data":
        return {"KUBECONFIG_DATA": base64.b64encode(kubeconfig.encode()).decode()}
    (folder / "kubeconfig").write_text(kubeconfig)
    return {"KUBECONFIG_PATH": str(folder / "kubeconfig")}


async def run_everything(each: World) -> None:
    """All commands, each sink at least once. The exit codes show that the runs went where they should."""
    files, folder = each.stage.files, each.stage.folder
    text, as_json = {"LOG_LEVEL": "debug", "LOG_FORMAT": "text"}, {"LOG_LEVEL": "debug", "LOG_FORMAT": "json"}
    async with gateway() as fake:
        sinks = {"METRICS_FILE": str(folder / "run.prom"), "PUSHGATEWAY_URL": fake.url}
        assert (
            await each.run("deploy", *files, "--format", "json", name="deploy json", environ={**as_json, **sinks}) == 2
        )
    each.add("metrics push", b"".join(fake.bodies).decode())
    each.add("metrics file", (folder / "run.prom").read_text())
    each.stage.push()  # what is synced anew is healthy or not at once
    assert await each.run("deploy", *files, "--format", "junit", name="deploy junit", environ=text) == 2
    each.stage.push()
    assert await asyncio.to_thread(each.run_on_terminal, "deploy", *files) == 2
    for form in ("text", "json", "junit"):
        assert await each.run("validate", *files, "--format", form, name=f"validate {form}", environ=text) in {1, 2}
    assert await each.run("wait", "b", "--timeout", "2s") in {1, 4}
    assert await each.run("wait", "a", "--timeout", "9s") == 0
    # After a while a plan quotes why an application is Degraded.
    assert await each.run("plan", *files, "--out", "plan.json", "--format", "json", environ=text) == 0
    assert await each.run("cluster") == 0
    (folder / "quoted").write_text("\n".join(each.server.texts))
    traced = ("-c", TRACEBACK, str(folder / "quoted"))
    assert await each.run("validate", *files, program=traced, name="traceback", environ=text) == 1
    teardown = ("--action", "teardown", "--out", "teardown.json")
    assert await each.run("plan", *files, *teardown, name="plan teardown", environ=as_json) == 0
    confirmed = {"TEARDOWN_CONFIRM": "development"}
    refusal = Fault(verb="delete", kind="applications*", code=403, times=1)
    each.stage.cluster.sandbox.server.faults.add(refusal)
    assert await each.run("teardown", *files, environ={**as_json, **confirmed}) in {1, 2}
    assert await each.run("teardown", *files, name="teardown again", environ={**as_json, **confirmed}) == 0
    for name in ("plan.json", "teardown.json"):
        each.add("plan file", (folder / name).read_text())
    each.server.is_broken = True
    for command in ("deploy", "teardown", "validate", "plan", "cluster"):
        options = () if command == "cluster" else files
        assert await each.run(command, *options, name=f"{command} error", environ={**text, **confirmed}) == 1
    each.server.is_broken = False


def parts_of(form: str) -> set[str]:
    """Every part of a form of a secret that nobody may see, without the marks around a key."""
    pieces = [piece for piece in MARKS.split(form) if piece]
    return {
        piece[start : start + PART_LENGTH]
        for piece in pieces
        for start in range(max(1, len(piece) - PART_LENGTH + 1))
        if len(piece) >= PART_LENGTH or piece == form
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_no_process_shows_any_part_of_a_credential(tmp_path: Path, kind: str) -> None:
    async with world(tmp_path, kind) as each:
        await run_everything(each)
    sent = {authorization for _, authorization in each.server.requests}
    if kind in {"plugin", "token file"}:
        assert sent == {f"Bearer {SECRET}", f"Bearer {RENEWED}"}
    for name, text in each.outputs.items():
        for form in each.server.texts:
            found = [part for part in parts_of(form) if part in text]
            assert not found, f"{name}: {found} of {form}"


SHOWING = {
    "deploy json: stdout", "deploy json: stderr", "deploy junit: stdout", "deploy junit: stderr",
    "live view", "live view: stdout", "validate text: stdout", "validate json: stdout", "validate junit: stdout",
    "wait: stdout", "wait: stderr", "cluster: stdout", "plan: stdout",
    "teardown: stdout", "teardown: stderr", "deploy error: stderr", "teardown error: stderr", "validate error: stderr",
    "plan error: stderr", "cluster error: stderr",
}  # fmt: skip


async def test_without_redaction_the_credential_would_be_shown(tmp_path: Path) -> None:
    """What the test above looks at is what it should look at."""
    async with world(tmp_path, "plugin") as each:
        each.program = ("-c", UNREDACTED)
        await run_everything(each)
    shown = {name for name, text in each.outputs.items() if any(form in text for form in each.server.texts)}
    assert shown >= SHOWING, (SHOWING - shown, shown - SHOWING)
