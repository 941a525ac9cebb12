"""`windlass teardown` as a process on a cluster on loopback: every exit code, and the journal as witness."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import windlass
from tests.sandbox.actors.objects import config
from tests.scenarios.clusters import APPS, Running, running
from tests.settings.worlds import spec
from windlass.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.processes import Ended

ROLES = "clusterroles.rbac.authorization.k8s.io"
CONFIRMED = {"ENVIRONMENT": "staging", "TEARDOWN_CONFIRM": "staging"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("cluster")) as found:
        names = [f"{letter}{number}" for letter in "abcd" for number in (1, 2)]
        files: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in names}
        found.repository.push(files)
        found.deploy(*names)
        yield found


def dag(folder: Path, letter: str) -> str:
    """The second waits for the first; patience is short."""
    path = folder / "dag.yaml"
    rows = [
        f"- {{name: {letter}1, timeouts: {{health: 6s}}}}",
        f"- {{name: {letter}2, dependsOn: [{letter}1], timeouts: {{health: 6s}}}}",
    ]
    path.write_text(spec("stacks:\n- name: all\n  applications:\n" + "".join(f"  {row}\n" for row in rows)))
    return str(path)


def teardown(cluster: Running, *arguments: str, environ: dict[str, str] | None = None) -> tuple[Ended, list[str]]:
    """And what was written."""
    before = len(cluster.asked())
    ended = cluster.windlass("teardown", *arguments, environ=CONFIRMED if environ is None else environ)
    assert "Traceback" not in ended.stderr
    return ended, [f"{each.verb} {each.name}" for each in cluster.asked()[before:] if each.is_write]


def held(cluster: Running, name: str, finalizers: list[str] | None) -> None:
    change = {"metadata": {"finalizers": finalizers}}
    cluster.do(cluster.sandbox.caller().patch("configmaps", name, change, "default"))


def test_0_in_reverse_order_and_again_without_a_write(cluster: Running, tmp_path: Path) -> None:
    file = dag(tmp_path, "a")
    planned, writes = teardown(cluster, "--dag", file, environ={"ENVIRONMENT": "staging", "DRY_RUN": "true"})
    assert (planned.code, writes) == (0, []), planned.output
    assert "a2 -> a1" in planned.stdout
    ended, writes = teardown(cluster, "--dag", file, "--format", "json")
    assert ended.code == 0, ended.output
    assert [write for write in writes if write.startswith("delete")] == ["delete a2", "delete a1", "delete windlass"]
    report = json.loads(ended.stdout)
    assert report["metrics"]["calls"]["writes"] == len(writes)
    assert {each["evidence"]["proof"] for each in report["components"]} == {"it is not there any more"}
    again, writes = teardown(cluster, "--dag", file)
    assert (again.code, writes) == (0, []), again.output


def test_1_for_a_scope_with_dependents_outside(cluster: Running, tmp_path: Path) -> None:
    ended, writes = teardown(cluster, "--dag", dag(tmp_path, "b"), "--scope", "app:b1")
    assert (ended.code, writes) == (1, []), ended.output
    assert "b2: it is there and depends on what would be removed" in ended.stdout


def test_1_for_what_is_held_2_for_what_is_left_and_4_out_of_time(cluster: Running, tmp_path: Path) -> None:
    file = dag(tmp_path, "c")
    held(cluster, "c2", ["example.org/held"])
    ended, _ = teardown(cluster, "--dag", file)
    assert ended.code == 1, ended.output
    assert "ConfigMap default/c2: held by the finalizer example.org/held" in ended.stdout
    assert "c1" in ended.stdout
    ended, _ = teardown(cluster, "--dag", file, "--timeout", "2s")
    assert ended.code == 4, ended.output
    held(cluster, "c2", None)
    mark = {"argocd.argoproj.io/tracking-id": "c1:rbac.authorization.k8s.io/ClusterRole:default/left"}
    cluster.do(cluster.sandbox.caller().create(ROLES, {"metadata": {"name": "left", "annotations": mark}, "rules": []}))
    for _ in range(2):
        ended, _ = teardown(cluster, "--dag", file)
        assert ended.code == 2, ended.output
        assert "nobody's\n  ClusterRole left (rbac.authorization.k8s.io)\n" in ended.stdout
        assert "see who needs it; delete it, or mark it as kept" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "environ", "words"),
    [
        ([], {"ENVIRONMENT": "staging"}, "a teardown must be confirmed"),
        (["--confirm", "production"], {"ENVIRONMENT": "staging"}, "the confirmation names another environment"),
        (["--pv-policy", "burn"], CONFIRMED, "--pv-policy"),
        (["--scope", "app:nothing"], CONFIRMED, "there is no application nothing"),
        (["--fast"], CONFIRMED, "--fast"),
    ],
)
def test_3_before_any_request(
    cluster: Running,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    environ: dict[str, str],
    words: str,
) -> None:
    before = len(cluster.asked())
    code = main(["teardown", *arguments], {**environ, "KUBECONFIG_PATH": str(cluster.kubeconfig)})
    told = capsys.readouterr()
    assert (code, told.out) == (3, "")
    assert words in told.err
    assert len(cluster.asked()) == before


def test_3_for_snapshots_that_this_cluster_cannot_make(cluster: Running, tmp_path: Path) -> None:
    ended, writes = teardown(cluster, "--dag", dag(tmp_path, "b"), "--pv-policy", "snapshot")
    assert (ended.code, writes) == (3, []), ended.output
    assert "snapshot.storage.k8s.io is not served" in ended.stderr


def test_a_signal_ends_it_with_a_report(cluster: Running, tmp_path: Path) -> None:
    held(cluster, "d2", ["example.org/held"])
    file = dag(tmp_path, "d")
    environ = {**CONFIRMED, "PATH": os.defpath, "KUBECONFIG_PATH": str(cluster.kubeconfig)}
    command = [sys.executable, "-m", "windlass", "teardown", "--dag", file]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while (
            cluster.do(cluster.sandbox.caller().find(APPS, "d2", "argocd"))["metadata"].get("deletionTimestamp") is None
        ):
            cluster.rest(0.1)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert output.startswith("teardown of platform in staging: failure, interrupted")
    held(cluster, "d2", None)


def test_1_for_a_cluster_that_does_not_know_us(cluster: Running) -> None:
    wrong = cluster.kubeconfig.with_name("wrong")
    wrong.write_text(cluster.kubeconfig.read_text().replace("token: ", "token: x"))
    ended = windlass("teardown", "--kubeconfig", str(wrong), environ=CONFIRMED)
    assert (ended.code, ended.stdout) == (1, "")
    assert "credentials were rejected" in ended.stderr


def test_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["teardown", "--help"], {}) == 0
    assert "TEARDOWN_CONFIRM" in capsys.readouterr().out
