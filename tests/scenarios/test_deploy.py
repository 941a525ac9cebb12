"""`windlass deploy` as a process: how it ends at once, and what it never shows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import Ended, inherited
from tests.sandbox.controllers.objects import URL, application, config, workload
from tests.scenarios.clusters import APPS, Running, running
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEASES = "leases.coordination.k8s.io"
LOG = "no entry with correct horse at https://me:horse@git.test"
PATIENT = {"simple": {"sync": "30s", "health": "30s", "degradedGrace": "2s"}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("cluster")) as found:
        slow = workload(name="slow", annotations={"sandbox.windlass.dev/ready-after": "never"})
        found.repository.push(
            {"web/all.yaml": [config("web")], "held/all.yaml": [config("held")], "slow/all.yaml": [slow]}
        )
        for name in ("web", "slow", "held"):
            found.do(found.sandbox.client().create(APPS, application(name)))
        found.rest(1)
        yield found


def files(folder: Path, *nodes: str | dict[str, Any], **spec: Any) -> list[str]:
    rows = [{"name": node} if isinstance(node, str) else node for node in nodes]
    stacks = [{"name": "all", "applications": rows}]
    document = {
        "apiVersion": "windlass.dev/v1alpha1",
        "kind": "Platform",
        "metadata": {"name": "mine"},
        "spec": {"profiles": PATIENT, **spec, "stacks": stacks},
    }
    environment = {"name": "staging", "domain": "x.test", "gitRepository": URL, "gitRevision": "main"}
    (folder / "dag.yaml").write_text(json.dumps(document))
    (folder / "environment.yaml").write_text(json.dumps(environment))
    named = ["--dag", str(folder / "dag.yaml"), "--environment-file", str(folder / "environment.yaml")]
    return [*named, "--environment", "staging", "--secrets", str(folder), "--log-format", "text"]


def begun(kubeconfig: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "windlass", "deploy", *arguments],
        env={**inherited(), "KUBECONFIG_PATH": str(kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Ended:
    stdout, stderr = process.communicate(timeout=50)
    return Ended(process.returncode, stdout, stderr)


def told(process: subprocess.Popen[str], words: str) -> str:
    """What it has logged up to these words."""
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"never said {words!r}:\n{seen}")


def test_the_second_signal_ends_it_at_once_in_one_line(cluster: Running, tmp_path: Path) -> None:
    """The first waits for the lock to be let go, and the server takes its time."""
    process = begun(cluster.kubeconfig, *files(tmp_path, "slow"))
    told(process, "run begins")
    cluster.sandbox.server.faults.add(Fault(verb="update", kind=LEASES, latency=30.0, times=None))
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
        cluster.rest(0.5)
    found = ended(process)
    cluster.sandbox.server.faults.clear()
    assert (found.code, found.stdout) == (1, "")
    assert "Traceback" not in found.stderr
    assert found.stderr.endswith("interrupted\n")


def test_a_signal_is_heard_while_a_dead_run_has_the_lock(cluster: Running, tmp_path: Path) -> None:
    lease = {"metadata": {"name": "windlass", "namespace": "argocd"}, "spec": {"holderIdentity": "one that died"}}
    cluster.do(
        cluster.sandbox.client().apply(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})
    )
    process = begun(cluster.kubeconfig, *files(tmp_path, "held"))
    told(process, "observe begins")
    cluster.rest(1.0)
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()  # noqa: TID251 - a real process
    found = ended(process)
    assert time.monotonic() - began < 10  # noqa: TID251
    assert found.code == 1
    assert "failure, interrupted" in found.stdout


@pytest.mark.slow
def test_no_secret_is_in_a_report(cluster: Running, tmp_path: Path) -> None:
    """Neither what was mounted nor what looks like one, whoever wrote it into a message."""
    (tmp_path / "git-password").write_text("correct horse\n")
    log = {f"sandbox.windlass.dev/{name}": text for name, text in (("fails-with", "CrashLoopBackOff"), ("log", LOG))}
    pod = {"web/all.yaml": [workload(name="web", annotations={**log, "sandbox.windlass.dev/ready-after": "never"})]}
    cluster.repository.push(pod)
    once = {"name": "web", "retries": {"maxAttempts": 1}, "timeouts": {"health": "4s"}}
    found = ended(begun(cluster.kubeconfig, *files(tmp_path, once)))
    assert found.code == 1
    assert "log main: no entry with [redacted] at https://[redacted]@git.test" in found.stdout
    assert "horse" not in found.stdout + found.stderr
