"""Health checks in Lua through the whole process: mounted, of the cluster, wrong, and without end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.custom_resources import DEFINITIONS, THINGS, thing
from tests.processes import windlass
from tests.scenarios.test_validate import complaints, dag, healths, validate
from tests.settings.setting_files import ENVIRONMENT, spec
from windlass.lua.worker_process import PROGRAM

if TYPE_CHECKING:
    from tests.scenarios.clusters import Running

PATHOLOGICAL = "return {status = string.find(('a'):rep(60), ('a?'):rep(60) .. ('a'):rep(60) .. 'b')}"
BY_PHASE = "return {status = obj.status.phase, message = 'said by %s'}"
NODE = "{apiVersion: things.test/v1, kind: Thing, namespace: default, name: a}"


@pytest.fixture(scope="module")
def things(cluster: Running) -> Running:
    async def create() -> None:
        calls = cluster.sandbox.client()
        await calls.create(DEFINITIONS, THINGS)
        await calls.create("things.things.test", thing("a", phase="Suspended"))
        data = {"resource.customizations.health.things.test_Thing": BY_PHASE % "the cluster"}
        await calls.create("configmaps", {"metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": data})

    cluster.do(create())
    return cluster


def mount(folder: Path, **checks: str) -> str:
    (folder / "health").mkdir()
    for kind, text in checks.items():
        group = {"Thing": "things.test", "Deployment": "apps"}.get(kind, "")
        (folder / "health" / f"{group}_{kind}.lua").write_text(text)
    return str(folder / "health")


INTERPRETER = str(PROGRAM).encode()


def failures(text: str) -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(text)["failures"]}


def orphans() -> list[str]:
    """Processes that run Lua and whose parent is gone."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, status = (path / "cmdline").read_bytes(), (path / "status").read_text()
        except OSError:
            continue
        if INTERPRETER in command and "\nPPid:\t1\n" in status:
            found.append(path.name)
    return found


def test_a_mounted_check_judges_the_objects_of_every_application(things: Running, tmp_path: Path) -> None:
    words = "return {status = 'Degraded', message = obj.metadata.name .. ' has ' .. obj.spec.replicas .. ' pods'}"
    folder = mount(tmp_path, Deployment=words)
    ended = validate(things, "--dag", dag(tmp_path, "web*", "api"), "--health-checks", folder, "--format", "json")
    assert (ended.code, complaints(ended)) == (1, []), ended
    assert healths(ended) == {"web": "Degraded", "api": "Degraded"}
    assert failures(ended.stdout)["web"]["detail"] == "Deployment default/web: web has 1 pods"
    ended = validate(things, "--dag", dag(tmp_path, "web*", "api"), "--health-checks", folder)
    assert "  web  Degraded: Deployment default/web: web has 1 pods\n" in ended.stdout


@pytest.mark.slow
def test_a_check_that_never_ends_is_killed_and_validate_ends(things: Running, tmp_path: Path) -> None:
    folder = mount(tmp_path, Deployment=PATHOLOGICAL, ConfigMap="return {status = 'Healthy'}")
    ended = validate(things, "--dag", dag(tmp_path, "web*", "api*"), "--health-checks", folder, "--format", "json")
    assert (ended.code, complaints(ended)) == (1, []), ended
    assert healths(ended) == {"web": "Unknown", "api": "Unknown"}
    words = "the health check of apps/Deployment from a mounted file failed: it did not end within 2 s"
    assert failures(ended.stdout)["api"]["detail"] == f"Deployment default/api: {words}"
    assert not orphans()


@pytest.mark.parametrize(
    ("mounted", "expected"),
    [({}, "said by the cluster"), ({"Thing": BY_PHASE % "the mount"}, "said by the mount")],
    ids=["cluster", "mount"],
)
def test_a_resource_node_is_judged_by_its_check(
    things: Running, tmp_path: Path, mounted: dict[str, str], expected: str
) -> None:
    path = tmp_path / "dag.yaml"
    path.write_text(spec(f"stacks:\n- name: all\n  applications:\n  - {{name: it, resource: {NODE}}}\n"))
    ended = validate(things, "--dag", str(path), "--health-checks", mount(tmp_path, **mounted), "--format", "json")
    assert (ended.code, complaints(ended)) == (1, []), ended
    assert healths(ended) == {"it": "Suspended"}
    assert failures(ended.stdout)["it"]["detail"] == expected


@pytest.mark.parametrize("command", [["lint"], ["validate"], ["validate", "--all"]], ids=" ".join)
def test_a_mistake_of_grammar_is_3_with_its_line(things: Running, tmp_path: Path, command: list[str]) -> None:
    folder = mount(tmp_path, Deployment="local hs = {}\nif obj.status the\n")
    ended = things.windlass(*command, "--health-checks", folder, environ={"ENVIRONMENT": "staging"})
    assert (ended.code, ended.stdout) == (3, "")
    where = f"{folder}/apps_Deployment.lua:2"
    assert ended.stderr.startswith(f"error: this is no Lua: 'then' expected near 'the'\nwhere: {where}\n")


def test_lint_needs_no_cluster_to_read_a_check(tmp_path: Path) -> None:
    folder = mount(tmp_path, Thing="while true do end")
    assert windlass("lint", "--health-checks", folder).code == 0


@pytest.mark.parametrize(
    ("words", "code", "result"),
    [("return {status = 'Healthy'}", 0, "unchanged"), pytest.param("error('no')", 1, "failed", marks=pytest.mark.slow)],
    ids=["healthy", "failing"],
)
def test_deploy_waits_for_what_a_check_says(
    things: Running, tmp_path: Path, words: str, code: int, result: str
) -> None:
    limits = "profiles: {quick: {sync: 1s, health: 1s}}"
    row = f"{{name: it, resource: {NODE}, profile: quick}}"
    path = tmp_path / "dag.yaml"
    path.write_text(spec(f"{limits}\nstacks:\n- name: all\n  applications:\n  - {row}\n"))
    file = tmp_path / "environment.yaml"
    file.write_text(ENVIRONMENT + "retries: {maxAttempts: 1, backoff: 1s}\n")
    files = ("--dag", str(path), "--environment-file", str(file), "--health-checks", mount(tmp_path, Thing=words))
    ended = things.windlass("deploy", *files, "--format", "json", environ={"ENVIRONMENT": "staging"})
    assert "Traceback" not in ended.stderr
    assert ended.code == code, ended
    assert [each["result"] for each in json.loads(ended.stdout)["components"]] == [result]
