"""`windlass wait` as a process on a cluster on loopback."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.processes import windlass
from tests.sandbox.actors.objects import application
from tests.scenarios.clusters import APPS, SYNC
from tests.scenarios.conftest import moved
from windlass.cli.main import main
from windlass.sandbox.actors.argocd.specs import Lie, Stale

if TYPE_CHECKING:
    from tests.processes import Ended
    from tests.scenarios.clusters import Running


def wait(cluster: Running, *arguments: str) -> Ended:
    before = len(cluster.asked())
    ended = cluster.windlass("wait", *arguments)
    asked = cluster.asked()[before:]
    assert not [entry for entry in asked if entry.is_write]
    assert {entry.verb for entry in asked} <= {"get", "list", "watch"}
    assert "Traceback" not in ended.stderr
    return ended


def test_what_is_healthy_is_0_at_once(cluster: Running) -> None:
    commit = cluster.shown("web")["status"]["sync"]["revision"]
    for arguments in (["web"], ["argocd/web", "--revision", commit[:8]]):
        ended = wait(cluster, *arguments, "--timeout", "30s")
        assert (ended.code, ended.stderr) == (0, ""), ended.output
        assert ended.stdout.startswith(f"{arguments[0]}: Healthy at {commit[:12]} (the comparison began after")


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        (["slow"], "it is Progressing"),
        (["gone"], "it does not exist yet"),
        (["elsewhere/web"], "it does not exist yet"),
        (["web", "--revision", "f" * 40], "it was compared with"),
    ],
)
def test_out_of_time_is_4_and_says_what_it_waited_for(cluster: Running, arguments: list[str], detail: str) -> None:
    ended = wait(cluster, *arguments, "--timeout", "2s")
    assert ended.code == 4, ended.output
    assert ended.stdout.startswith(f"{arguments[0]}: out of time after 2 s: {detail}")
    assert ended.stderr.startswith(f"waiting: {detail}")
    assert len(ended.stderr.splitlines()) == 1, "told once, not every second"


def test_what_is_being_deleted_is_1(cluster: Running) -> None:
    doomed = application("doomed", path="sick")
    doomed["metadata"]["finalizers"] = ["example.org/held"]
    cluster.do(cluster.sandbox.caller().create(APPS, doomed))
    cluster.do(cluster.sandbox.caller().delete(APPS, "doomed", "argocd"))
    ended = wait(cluster, "doomed", "--timeout", "30s")
    cluster.patch("doomed", {"metadata": {"finalizers": None}})
    assert (ended.code, ended.stdout) == (1, "doomed: Deleting: it is being deleted\n")


def test_stale_health_does_not_end_it(cluster: Running) -> None:
    cluster.argocd.stale["late"] = Lie(Stale.OLD_VERDICT, seconds=3)
    commit = cluster.repository.push(moved({"sandbox.windlass.dev/ready-after": "6s"}))
    cluster.patch("late", SYNC)
    ended = wait(cluster, "late", "--timeout", "40s")
    assert ended.code == 0, ended.output
    assert commit[:12] in ended.stdout
    assert ended.stderr.startswith("waiting: an operation ")
    found = cluster.do(cluster.sandbox.caller().get("deployments.apps", "late", "default"))
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "late:2"
    assert (found["status"]["updatedReplicas"], found["status"]["availableReplicas"]) == (1, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_can_be_stopped(cluster: Running, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "windlass", "wait", "slow", "--kubeconfig", str(cluster.kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("waiting: ")
        process.send_signal(number)
        assert process.wait(20) == 1
        assert "interrupted\n" in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "APP"),
        (["a/b/c"], "NAMESPACE/NAME"),
        (["argocd/"], "NAMESPACE/NAME"),
        (["web", "--timeout", "soon"], "--timeout"),
        (["web"], "exactly one"),
    ],
)
def test_what_is_asked_wrongly_is_3(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code = main(["wait", *arguments], {})
    told = capsys.readouterr()
    assert (code, told.out) == (3, "")
    assert message in told.err


def test_a_cluster_that_does_not_know_us_is_1(cluster: Running) -> None:
    wrong = cluster.kubeconfig.with_name("wrong")
    wrong.write_text(cluster.kubeconfig.read_text().replace("token: ", "token: x"))
    ended = windlass("wait", "web", "--kubeconfig", str(wrong))
    assert (ended.code, ended.stdout) == (1, "")
    assert "credentials were rejected" in ended.stderr
