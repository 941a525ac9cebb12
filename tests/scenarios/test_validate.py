"""`windlass validate` as a process on a cluster on loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.clusters import SYNC
from tests.scenarios.conftest import NEVER, moved
from tests.settings.setting_files import spec
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.processes import Ended
    from tests.scenarios.clusters import Running


def dag(folder: Path, *applications: str) -> str:
    """A platform file with one stack; a name with a star is critical."""
    rows = [f"- {{name: {name.strip('*')}, critical: {str('*' in name).lower()}}}" for name in applications]
    path = folder / "dag.yaml"
    path.write_text(spec("stacks:\n- name: all\n  applications:\n" + "".join(f"  {row}\n" for row in rows)))
    return str(path)


def validate(cluster: Running, *arguments: str, environ: dict[str, str] | None = None) -> Ended:
    before = len(cluster.asked())
    ended = cluster.windlass("validate", *arguments, environ={"ENVIRONMENT": "staging", **(environ or {})})
    asked = cluster.asked()[before:]
    assert not [entry for entry in asked if entry.is_write]
    assert {entry.verb for entry in asked} <= {"get", "list"}
    assert "Traceback" not in ended.stderr
    return ended


def complaints(ended: Ended) -> list[str]:
    """What stderr has besides the log."""
    return [line for line in ended.stderr.splitlines() if not line.startswith('{"timestamp": ')]


def healths(ended: Ended) -> dict[str, str]:
    return {each["name"]: each["health"] for each in json.loads(ended.stdout)["components"]}


@pytest.mark.parametrize(
    ("applications", "code", "expected", "reads"),
    [
        (["web", "api"], 0, {"web": "Healthy", "api": "Healthy"}, 5),
        pytest.param(["web*", "api"], 0, {"web": "Healthy", "api": "Healthy"}, 7, marks=pytest.mark.slow),
        pytest.param(["web*", "api*"], 0, {"web": "Healthy", "api": "Healthy"}, 7, marks=pytest.mark.slow),
        pytest.param(["web*", "sick"], 2, {"web": "Healthy", "sick": "Degraded"}, 7, marks=pytest.mark.slow),
        (["web", "sick*"], 1, {"web": "Healthy", "sick": "Degraded"}, 6),
        pytest.param(["web", "slow"], 2, {"web": "Healthy", "slow": "Progressing"}, 9, marks=pytest.mark.slow),
        (["web", "gone"], 2, {"web": "Healthy", "gone": "Missing"}, 5),
        pytest.param(["web", "gone*"], 1, {"web": "Healthy", "gone": "Missing"}, 5, marks=pytest.mark.slow),
        pytest.param(["sick", "slow"], 1, {"sick": "Degraded", "slow": "Progressing"}, 9, marks=pytest.mark.slow),
    ],
)
def test_the_code_says_how_healthy_it_is(
    cluster: Running, tmp_path: Path, applications: list[str], code: int, expected: dict[str, str], reads: int
) -> None:
    """Reads: clock, Applications, two kinds of policy reports, the Lease; if critical, checks and workloads.

    Of what is not healthy also workloads, pods, events and logs.
    """
    ended = validate(cluster, "--dag", dag(tmp_path, *applications), "--format", "json")
    assert (ended.code, complaints(ended)) == (code, [])
    assert healths(ended) == expected
    report = json.loads(ended.stdout)
    assert report["summary"]["exitCode"] == code
    assert report["summary"]["environment"] == "staging"
    assert report["metrics"]["calls"]["writes"] == 0
    assert report["metrics"]["calls"]["reads"] == reads
    sick = {name for name, health in expected.items() if health != "Healthy"}
    assert {failure["name"] for failure in report["failures"]} == sick


def test_people_read_the_verdict_first(cluster: Running, tmp_path: Path) -> None:
    ended = validate(cluster, "--dag", dag(tmp_path, "web", "sick"))
    assert ended.stdout.startswith("validate of platform in staging: partial\n  1 Degraded, 1 Healthy; ")
    assert "  sick  Degraded: Argo CD gives no reason\n" in ended.stdout
    assert "  5 reads, 0 writes, 0 refreshes\n" in ended.stdout
    assert "INV-2 web: jane synced it to" in ended.stdout


def test_a_scope(cluster: Running, tmp_path: Path) -> None:
    file = dag(tmp_path, "web", "sick")
    ended = validate(cluster, "--dag", file, "--format", "json", environ={"TARGET_SCOPE": "app:web"})
    assert (ended.code, healths(ended)) == (0, {"web": "Healthy"})
    assert validate(cluster, "--dag", file, "--scope", "app:sick").code == 1


def test_all_needs_no_platform_file_and_no_environment(cluster: Running) -> None:
    ended = validate(cluster, "--all", "--format", "json", environ={"ENVIRONMENT": ""})
    assert (ended.code, complaints(ended)) == (2, [])
    expected = {"web": "Healthy", "api": "Healthy", "sick": "Degraded", "slow": "Progressing"}
    assert expected.items() <= healths(ended).items()
    report = json.loads(ended.stdout)
    assert report["summary"]["environment"].startswith("http://127.0.0.1:")
    assert report["metrics"]["calls"]["reads"] >= 4


def test_a_resource_that_is_a_gate_of_its_own(cluster: Running, tmp_path: Path) -> None:
    rows = [
        f"- {{name: {name}, resource: {{apiVersion: {version}, kind: {kind}, namespace: default, name: {object_}}}}}"
        for name, version, kind, object_ in (
            ("ready", "apps/v1", "Deployment", "web"),
            ("unready", "apps/v1", "Deployment", "slow"),
            ("gone", "apps/v1", "Deployment", "nothing"),
            ("mute", "v1", "ConfigMap", "web"),
            ("strange", "nobody.test/v1", "Stranger", "web"),
        )
    ]
    path = tmp_path / "dag.yaml"
    path.write_text(spec("stacks:\n- name: all\n  applications:\n" + "".join(f"  {row}\n" for row in rows)))
    ended = validate(cluster, "--dag", str(path), "--format", "json")
    assert ended.code == 2, ended.output
    assert healths(ended) == {
        "ready": "Healthy",
        "unready": "Progressing",
        "gone": "Missing",
        "mute": "Unknown",
        "strange": "Missing",
    }


@pytest.mark.slow
def test_a_verdict_that_is_older_than_the_sync_is_not_believed(cluster: Running, tmp_path: Path) -> None:
    cluster.argocd.stale_statuses["late"] = StaleStatus(Staleness.OLD_STATUS, seconds=4)
    cluster.repository.push(moved(NEVER))
    cluster.patch("late", SYNC)
    while cluster.shown("late").get("operation"):
        cluster.rest(0.05)
    assert cluster.shown("late")["status"]["health"]["status"] == "Healthy"
    ended = validate(cluster, "--dag", dag(tmp_path, "web", "late"), "--format", "json")
    assert (ended.code, healths(ended)) == (2, {"web": "Healthy", "late": "Progressing"})


def test_m8_a_rule_that_is_not_checked_is_named(cluster: Running) -> None:
    ended = cluster.windlass("validate", "--all", "--strict")
    assert ended.code == 2
    assert "rule INV-2 is not checked with --all: without a platform file there is no order to keep" in ended.stdout
