"""rehearse: a platform file is deployed before there is a cluster; what is shown, and how it ends."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import graph
from tests.processes import windlass
from windlass.cli.main import main
from windlass.operations.rehearse import blast_radius

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Rehearse = Callable[..., Any]

PLATFORM = """\
apiVersion: windlass.dev/v1alpha1
kind: Platform
metadata: {name: mine}
spec:
  profiles:
    quick: {sync: 5m, health: 5m, degradedGrace: 10s, expected: 1m}
    slow: {sync: 30m, health: 40m, degradedGrace: 10s, expected: 15m}
  stacks:
    - name: storage
      applications:
        - {name: operator, profile: quick}
        - {name: ceph, dependsOn: [operator], profile: slow}
        - name: ceph-ready
          dependsOn: [ceph]
          profile: quick
          resource: {apiVersion: ceph.rook.io/v1, kind: CephCluster, namespace: rook-ceph, name: rook-ceph}
        - name: pool-ready
          dependsOn: [ceph]
          profile: quick
          resource: {apiVersion: apps/v1, kind: Deployment, namespace: rook-ceph, name: pool}
    - name: security
      applications:
        - {name: vault, dependsOn: [ceph-ready], profile: quick, application: vault-team/vault}
        - {name: keycloak, dependsOn: [vault, pool-ready], profile: quick}
    - name: alone
      applications: [{name: solo, profile: quick}]
"""


@pytest.fixture
def dag(tmp_path: Path) -> str:
    path = tmp_path / "dag.yaml"
    path.write_text(PLATFORM)
    return str(path)


@pytest.fixture
def rehearse(dag: str, capsys: pytest.CaptureFixture[str]) -> Rehearse:
    def rehearsed(*arguments: str, code: int = 0) -> Any:
        assert main(["rehearse", "--dag", dag, "--format", "json", *arguments], {}) == code
        return json.loads(capsys.readouterr().out)

    return rehearsed


def test_all_start_in_order_and_take_what_is_expected(rehearse: Rehearse) -> None:
    shown = rehearse()
    spans = {row["name"]: row for row in shown["timeline"]}
    assert shown["counts"] == {"succeeded": 7}
    assert spans["ceph"]["start"] >= spans["operator"]["end"]
    assert spans["vault"]["start"] >= spans["ceph-ready"]["end"]
    assert spans["keycloak"]["start"] >= max(spans["vault"]["end"], spans["pool-ready"]["end"])
    assert 60 <= spans["ceph-ready"]["end"] - spans["ceph-ready"]["start"] < 70
    assert shown["estimatedSeconds"] == timedelta(minutes=19).total_seconds()
    assert shown["estimatedSeconds"] < shown["seconds"] < 1.02 * shown["estimatedSeconds"]
    assert shown["criticalPath"]["names"] == ["operator", "ceph", "ceph-ready", "vault", "keycloak"]
    assert (shown["exitCode"], shown["asAsked"]) == (0, True)


@pytest.mark.parametrize(
    ("fails", "held_back", "counts"),
    [
        (["ceph"], 4, {"failed": 1, "skipped": 4, "succeeded": 2}),
        (["vault"], 1, {"failed": 1, "skipped": 1, "succeeded": 5}),
        (["ceph-ready"], 2, {"failed": 1, "skipped": 2, "succeeded": 4}),
        (["pool-ready"], 1, {"failed": 1, "skipped": 1, "succeeded": 5}),
        (["solo"], 0, {"failed": 1, "succeeded": 6}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_fails_holds_back_what_waits_for_it(
    rehearse: Rehearse, fails: list[str], held_back: int, counts: dict[str, int]
) -> None:
    shown = rehearse(*(f"--fail={name}" for name in fails))
    assert shown["counts"] == counts
    assert [(row["name"], len(row["blocks"])) for row in shown["failures"]] == [(fails[0], held_back)]
    assert (shown["exitCode"], shown["asAsked"]) == (2, True)


@pytest.mark.slow
def test_a_bad_day_ends_well_and_is_the_same_each_time(rehearse: Rehearse) -> None:
    first, again, other = rehearse("--faults", "--seed", "1"), rehearse("--faults", "--seed", "1"), rehearse("--faults")
    assert first == again
    assert first["timeline"] != other["timeline"]
    assert first["counts"] == other["counts"] == {"succeeded": 7}
    hits = first["premise"]["faults"]
    assert hits["answers late"] > 20
    assert hits["watches cut"] > 0
    assert hits["answers 429"] + hits["answers 503"] + hits["connections lost after"] > 0


def test_a_part_is_rehearsed_on_what_it_needs(rehearse: Rehearse) -> None:
    shown = rehearse("--scope", "stack:security")
    assert [row["name"] for row in shown["timeline"]] == ["vault", "keycloak"]
    assert shown["seconds"] < 150


def test_chance_changes_what_each_takes(rehearse: Rehearse) -> None:
    took = [rehearse("--spread", "20", "--seed", seed)["seconds"] for seed in ("1", "1", "2")]
    assert took[0] == took[1] != took[2]


def test_what_does_not_get_healthy_by_itself_is_a_failure(dag: str, rehearse: Rehearse, tmp_path: Path) -> None:
    path = tmp_path / "impatient.yaml"
    path.write_text(PLATFORM.replace("health: 40m", "health: 4m").replace("sync: 30m", "sync: 4m"))
    shown = rehearse("--dag", str(path), code=1)
    assert [row["name"] for row in shown["failures"]] == ["ceph"]
    assert (shown["exitCode"], shown["asAsked"]) == (2, False)


def test_a_run_that_is_out_of_time_is_a_failure(rehearse: Rehearse) -> None:
    shown = rehearse("--timeout", "10m", code=1)
    assert (shown["verdict"], shown["exitCode"], shown["asAsked"]) == ("timeout", 4, False)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_workloads_can_be_gates(rehearse: Rehearse, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "workloads.yaml"
    path.write_text(PLATFORM.replace("kind: Deployment", f"kind: {kind}"))
    assert rehearse("--dag", str(path), "--scope", "app:pool-ready")["counts"] == {"succeeded": 1}


def test_a_kind_without_a_stand_in_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dag.yaml"
    path.write_text(PLATFORM.replace("apps/v1, kind: Deployment", "v1, kind: Service"))
    assert main(["rehearse", "--dag", str(path)], {}) == 3
    assert "no stand-in for Service rook-ceph/pool" in capsys.readouterr().err


@pytest.mark.parametrize(("scope", "code"), [("platform", 3), ("stack:b", 0)])
def test_l7_a_rehearsal_of_nothing_says_so(
    scope: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    applications = "[{name: x}]" if code == 0 else "[]"
    stacks = f"[{{name: a, applications: {applications}}}, {{name: b, applications: []}}]"
    head = "apiVersion: windlass.dev/v1alpha1\nkind: Platform\nmetadata: {name: empty}\n"
    (tmp_path / "dag.yaml").write_text(f"{head}spec: {{stacks: {stacks}}}\n")
    assert main(["rehearse", "--dag", str(tmp_path / "dag.yaml"), "--scope", scope], {}) == code
    output = capsys.readouterr()
    if code:
        assert "this platform has no application" in output.err
    else:
        assert output.out.splitlines()[1:] == ["  nothing in scope; deploy would end with exit code 0"]


def test_the_reference_platform_as_a_process() -> None:
    ended = windlass("rehearse", timeout=120)
    assert (ended.code, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[:2] == [
        "rehearsal of platform of reference, seed 0: success",
        "  43 succeeded; deploy would end with exit code 0",
    ]
    assert "     33  metallb-config" in ended.stdout
    assert lines[-1] == "      0  25 applications without dependents"


def test_text_says_what_is_held_back(dag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "--dag", dag, "--fail", "vault", "--fail", "keycloak", "--faults"], {}) == 0
    shown = capsys.readouterr().out
    assert "vault fails: " in shown
    assert "\n  blocks 1: keycloak\n" in shown
    assert "keycloak is not started: vault blocks it" in shown
    assert "watches cut" in shown
    assert "if it fails" not in shown


def test_text_says_what_each_failure_would_hold_back(dag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "--dag", dag, "--scope", "stack:security"], {}) == 0
    head, order, radius = capsys.readouterr().out.split("\n\n")
    assert "the plan says 2 min\n  critical path 2 min" in head
    assert [line.split()[-2] for line in order.splitlines()[1:]] == ["vault", "keycloak"]
    assert radius.splitlines()[1:] == ["      1  vault     keycloak", "      0  1 application without dependents"]


def test_blast_radius_is_everything_behind() -> None:
    assert blast_radius(graph("b: a; c: b; d: a; e")) == (
        ("a", ("b", "c", "d")), ("b", ("c",)), ("c", ()), ("d", ()), ("e", ()),
    )  # fmt: skip
