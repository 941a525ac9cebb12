"""`windlass wait` as a process on a cluster on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.clusters import SYNC
from tests.scenarios.conftest import moved
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus

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
        pytest.param(["gone"], "it does not exist yet", marks=pytest.mark.slow),
        pytest.param(["elsewhere/web"], "it does not exist yet", marks=pytest.mark.slow),
        (["web", "--revision", "f" * 40], "it was compared with"),
    ],
)
def test_out_of_time_is_4_and_says_what_it_waited_for(cluster: Running, arguments: list[str], detail: str) -> None:
    ended = wait(cluster, *arguments, "--timeout", "2s")
    assert ended.code == 4, ended.output
    assert ended.stdout.startswith(f"{arguments[0]}: out of time after 2 s: {detail}")
    assert ended.stderr.startswith(f"waiting: {detail}")
    assert len(ended.stderr.splitlines()) == 1, "told once, not every second"


@pytest.mark.slow
def test_stale_health_does_not_end_it(cluster: Running) -> None:
    cluster.argocd.stale_statuses["late"] = StaleStatus(Staleness.OLD_STATUS, seconds=3)
    commit = cluster.repository.push(moved({"sandbox.windlass.dev/ready-after": "6s"}))
    cluster.patch("late", SYNC)
    ended = wait(cluster, "late", "--timeout", "40s")
    assert ended.code == 0, ended.output
    assert commit[:12] in ended.stdout
    assert ended.stderr.startswith("waiting: an operation ")
    found = cluster.do(cluster.sandbox.client().get("deployments.apps", "late", "default"))
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "late:2"
    assert (found["status"]["updatedReplicas"], found["status"]["availableReplicas"]) == (1, 1)
