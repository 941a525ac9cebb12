"""`windlass status` as a process on a cluster on loopback."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from tests.processes import inherited, windlass
from tests.sandbox.controllers.objects import application
from tests.scenarios.clusters import APPS, SYNC, running
from windlass.sandbox.apiserver.requests import UserInfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.processes import Ended
    from tests.scenarios.clusters import Running

RBAC = "rbac.authorization.k8s.io"
LEASES = "leases.coordination.k8s.io"
HOLDER = "ada@build-1 (https://ci.example.org/42)"


def lease(holder: str = "7ae2c1d0-1111", renewed: str = "2099-01-01T00:00:00.000000Z", **annotations: str) -> Any:
    recorded = {"windlass.dev/platform": "shop", "windlass.dev/environment": "staging", "windlass.dev/holder": HOLDER}
    spec = {"holderIdentity": holder, "acquireTime": "2026-11-18T03:11:05.000000Z", "renewTime": renewed}
    metadata = {"name": "windlass", "namespace": "argocd", "annotations": {**recorded, **annotations}}
    return {"metadata": metadata, "spec": spec}


def status(cluster: Running, *arguments: str) -> Ended:
    before = len(cluster.asked())
    ended = cluster.windlass("status", *arguments)
    assert not [entry for entry in cluster.asked()[before:] if entry.is_write]
    assert "Traceback" not in ended.stderr
    return ended


@contextmanager
def watching(cluster: Running, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "windlass", "status", "--watch", *arguments],
        env={**inherited(), "KUBECONFIG_PATH": str(cluster.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def blocks(stream: IO[str]) -> Iterator[list[str]]:
    """The blocks that are printed, each without the empty line that ends it."""
    while True:
        yield list(iter(stream.readline, "\n"))


def test_the_screen_tells_what_is_healthy_what_changes_and_what_failed(cluster: Running) -> None:
    expected = "applications  5: 3 Healthy, 1 Progressing, 1 Degraded; 5 Synced"
    ended = status(cluster)
    while expected not in ended.stdout:  # a slow machine starts the healthy ones late; the test has a time limit
        cluster.rest(1.0)
        ended = status(cluster)
    lines = ended.stdout.splitlines()
    assert (ended.code, ended.stderr) == (2, ""), ended.output
    assert lines[0].startswith("platform      not recorded, server http://127.0.0.1:")
    assert lines[1] == expected
    assert lines[2].startswith("failed 1      sick  Degraded for ")
    assert lines[3].startswith("changing 1    slow  is progressing for ")
    assert "last synced by jane: Deployment default/slow: pod slow-" in lines[3]
    assert "container main runs and is not ready" in lines[3]
    assert lines[4:] == [
        "lock          free: no deploy or teardown is running",
        "root          none: windlass has created no root Application here",
    ]


def test_json_has_the_same(cluster: Running) -> None:
    document = json.loads(status(cluster, "--format", "json").stdout)
    assert (document["kind"], document["applications"], document["sync"]) == ("Status", 5, {"Synced": 5})
    assert [each["name"] for each in document["failed"]] == ["sick"]


def test_watch_prints_a_block_for_each_change_and_ends_with_0(cluster: Running) -> None:
    with watching(cluster) as process:
        assert process.stdout is not None
        assert next(blocks(process.stdout))[0].startswith("time          20")
        cluster.do(cluster.sandbox.client().create(LEASES, lease(), "argocd"))
        try:
            held = next(block for block in blocks(process.stdout) if "not recorded" not in block[1])
            assert held[1].startswith("platform      shop, environment staging, server "), held
            [lock] = [line for line in held if line.startswith("lock ")]
            assert lock.startswith(f"lock          held by {HOLDER}, run 7ae2c1d0")
            assert "since 2026-11-18 03:11:05Z" in lock
        finally:
            cluster.do(cluster.sandbox.client().delete(LEASES, "windlass", "argocd"))
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert "Traceback" not in rest


def test_watch_as_json_is_one_line_for_each_change(cluster: Running) -> None:
    with watching(cluster, "--format", "json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["lock"] is None
        cluster.patch("late", SYNC)
        documents = map(json.loads, process.stdout)
        assert next(each for each in documents if "late" in [active["name"] for active in each["active"]])
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_a_terminal_is_redrawn_and_the_last_screen_stays(cluster: Running) -> None:
    controller, terminal = pty.openpty()
    environ = {**inherited(), "KUBECONFIG_PATH": str(cluster.kubeconfig), "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "windlass", "status", "--watch"]
    with subprocess.Popen(command, env=environ, stdout=terminal, stderr=subprocess.PIPE) as process:
        os.close(terminal)
        seen = b""
        while seen.count(b"applications") < 2:
            seen += os.read(controller, 1 << 16)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        seen += os.read(controller, 1 << 16)
    os.close(controller)
    assert b"\x1b[1A" in seen, "drawn over the lines before"
    assert b"\x1b[?25h" in seen, "the cursor is shown again"


def test_an_abandoned_lock_is_told_and_a_living_one_is_not(cluster: Running) -> None:
    client = cluster.sandbox.client()
    cluster.do(client.create(LEASES, lease(renewed="2026-11-18T03:11:05.000000Z"), "argocd"))
    try:
        assert "not renewed: that run has died, and the next one takes the lock" in status(cluster).stdout
    finally:
        cluster.do(client.delete(LEASES, "windlass", "argocd"))


def test_hostile_text_stays_on_its_line(cluster: Running) -> None:
    client, hostile = cluster.sandbox.client(), "a\x1b[2J\n::error::b" + "c" * 5_000
    held = lease(hostile, **{"windlass.dev/platform": hostile, "windlass.dev/holder": hostile})
    cluster.do(client.create(LEASES, held, "argocd"))
    try:
        ended = status(cluster)
        assert "\x1b" not in ended.stdout
        labels = {line[:14].split(" ")[0] for line in ended.stdout.splitlines()}
        assert labels <= {"platform", "applications", "failed", "changing", "lock", "root", ""}
        assert max(map(len, ended.stdout.splitlines())) < 2_000
    finally:
        cluster.do(client.delete(LEASES, "windlass", "argocd"))


def test_a_thousand_applications_are_ten_lines(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        cluster.argocd.pause()

        async def create() -> None:
            for number in range(1_000):
                body = application(f"app-{number:03}")
                body["status"] = {"health": {"status": "Degraded"}, "sync": {"status": "Synced"}}
                await cluster.sandbox.client().create(APPS, body)

        cluster.do(create())
        ended = status(cluster)
    assert (ended.code, len(ended.stdout.splitlines())) == (1, 7), ended.output
    assert "applications  1000: 1000 Degraded; 1000 Synced" in ended.stdout
    assert "              and 998 more" in ended.stdout


def test_a_missing_right_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        cluster.do(cluster.sandbox.client().create(APPS, application("web")))
        cluster.rest(1)
        server = cluster.sandbox.server
        token = server.authenticator.issue_token(UserInfo("bob"))
        path = tmp_path / "bob"
        path.write_text(cluster.kubeconfig.read_text().replace(server.authenticator.admin_token, token))
        server.authorizer.enforce = True
        refused = windlass("status", environ={"KUBECONFIG_PATH": str(path)})
        grant(cluster)
        ended = windlass("status", environ={"KUBECONFIG_PATH": str(path)})
    assert refused.code == 1
    assert "error: user bob may not list applications.argoproj.io in namespace argocd" in refused.stderr
    assert "windlass rbac --for status" in refused.stderr
    assert ended.code == 1, ended.output
    assert "failed 1      web  ComparisonError: Failed to load target state: " in ended.stdout
    assert "lock          unknown" in ended.stdout
    notices = [line for line in ended.stdout.splitlines() if line.startswith("notice")]
    assert "user bob may not list applications.argoproj.io in the whole cluster" in notices[0]
    assert "user bob may not get leases.coordination.k8s.io in namespace argocd" in notices[1]


def grant(cluster: Running) -> None:
    """Let bob list Applications in Argo CD's namespace, and nothing else."""
    rule = {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["list"]}
    bound = {
        "metadata": {"name": "bob"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "bob"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "bob"}],
    }
    client = cluster.sandbox.client()
    cluster.do(client.create(f"roles.{RBAC}", {"metadata": {"name": "bob"}, "rules": [rule]}, "argocd"))
    cluster.do(client.create(f"rolebindings.{RBAC}", bound, "argocd"))
