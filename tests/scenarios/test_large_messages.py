"""A deploy as a process while the status of an application is a message of megabytes: the lock and signals."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import Stage, staged
from tests.simulation.scenarios import APPLICATIONS, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEASES = "leases.coordination.k8s.io"
HOSTILE = ("\x1b]0;", "\n::error::", "password=", "\u009d", "a")
"""Each of these is repeated through a fifth of the message."""
SIZE = 10_000_000


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    scenario = told("b: a", parts={"a": {"kind": "Deployment", "trouble": "unready"}})
    with staged(tmp_path, scenario) as found:
        yield found


def renewals(stage: Stage) -> int:
    return sum(entry.kind == LEASES and entry.is_write for entry in stage.cluster.asked())


@pytest.mark.slow
def test_the_lock_is_renewed_and_a_signal_ends_the_run_while_megabytes_arrive(stage: Stage) -> None:
    message = "".join(text * (SIZE // len(HOSTILE) // len(text)) for text in HOSTILE)
    command = [sys.executable, "-m", "windlass", "deploy", *stage.files]
    environ, client = stage.environ, stage.cluster.sandbox.client()
    with subprocess.Popen(
        command, env=environ, cwd=stage.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while stage.cluster.do(client.find(APPLICATIONS, "a", "argocd")) is None:
                stage.cluster.rest(0.1)
            for number in range(2):
                health = {"status": "Progressing", "message": f"{number} {message}"}
                stage.cluster.do(client.patch(APPLICATIONS, "a", {"status": {"health": health}}, "argocd"))
            before = renewals(stage)
            while renewals(stage) < before + 2:  # the time limit of the test ends this
                assert process.poll() is None, process.communicate()
                stage.cluster.rest(0.2)
            process.send_signal(signal.SIGTERM)
            stdout, stderr = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 1, stderr[-2000:]
    assert "interrupted" in stdout.lower() + stderr.lower()
    assert "Traceback" not in stderr
    assert max(map(len, stdout.splitlines())) < 10_000
    lease = stage.cluster.do(client.get(LEASES, "windlass", "argocd"))
    assert not lease["spec"].get("holderIdentity")  # it was released, not lost
