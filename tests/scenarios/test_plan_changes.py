"""`plan` as a process, with a token of Argo CD and without: what changes, what only moves its pin, and which fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.clusters import ENVIRONMENT, Stage, staged
from tests.simulation.scenarios import newer, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTS = {name: {"kind": "Deployment"} for name in "abc"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Three applications are deployed; the next commit has a new image of `b` and moves the pins of all."""
    first = told("b: a\nc: b", parts=PARTS).commits[0]
    scenario = told("b: a\nc: b", commits=(first, newer(first, "b", replicas=2)))
    with staged(tmp_path, scenario) as found:
        assert found.deploy().code == 0
        found.push()
        yield found


def token_of(stage: Stage) -> dict[str, str]:
    """The environment that names a file with a token that the sandbox accepts."""
    stage.write("token", f"{stage.cluster.sandbox.server.authenticator.admin_token}\n")
    return {"ARGOCD_AUTH_TOKEN_PATH": str(stage.folder / "token")}


def planned(stage: Stage, *arguments: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
    done = stage.windlass("plan", *stage.files, "--refresh", "--format", "json", *arguments, environ=environ)
    assert done.code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["metrics"]["calls"]["writes"] == 0
    return report


def test_a_commit_changes_one_application_and_moves_the_pins_of_the_others(stage: Stage) -> None:
    done = stage.windlass("plan", *stage.files, "--refresh", "--diff", environ=token_of(stage))
    assert done.code == 0, done.output
    assert "3 to sync (1 changes, 2 only move their pin)" in done.stdout
    assert done.stdout.partition("\nchanges\n")[2].split("\n\n")[0].splitlines() == [
        "  b",
        "    update ConfigMap default/b",
        "      data.value: 1 -> 2",
        "    update apps/Deployment default/b",
        "      spec.replicas: 1 -> 2",
        "      spec.template.spec.containers[main].image: b:1 -> b:2",
    ]


def test_the_report_for_programs_has_fields_only_if_asked(stage: Stage) -> None:
    token = token_of(stage)
    changes = {each["name"]: each for each in planned(stage, environ=token)["changes"]}
    assert {name: each["effect"] for name, each in changes.items()} == {"a": "pin", "b": "changes", "c": "pin"}
    assert [(each["kind"], each["effect"], each["fields"]) for each in changes["b"]["objects"]] == [
        ("ConfigMap", "update", []),
        ("apps/Deployment", "update", []),
    ]
    with_fields = {each["name"]: each for each in planned(stage, "--diff", environ=token)["changes"]}
    assert with_fields["b"]["objects"][0]["fields"] == [{"path": "data.value", "before": "1", "after": "2"}]
    assert with_fields["a"] == changes["a"]


def test_a_plan_with_a_token_only_reads(stage: Stage) -> None:
    done = stage.windlass("plan", *stage.files, "--diff", environ=token_of(stage))
    assert done.code == 0, done.output
    proxied = [entry for entry in stage.entries if entry.kind == "services/proxy"]
    assert {(entry.verb, entry.name, entry.code) for entry in proxied} <= {("get", "https:argocd-server:443", 200)}
    assert not [entry for entry in stage.entries if entry.is_write]


def test_without_a_token_the_plan_says_what_it_cannot_know(stage: Stage) -> None:
    done = stage.windlass("plan", *stage.files, "--refresh")
    assert done.code == 0, done.output
    assert "3 to sync (which objects change is not known for 3)" in done.stdout
    assert "only the objects are known that Argo CD's own comparison names" in done.stdout
    assert not [entry for entry in stage.entries if entry.kind == "services/proxy"]


def test_without_a_token_the_objects_are_named_that_argo_cd_has_compared(stage: Stage) -> None:
    """An object was edited, and a sync of the same commit failed: Argo CD has compared at the planned revision."""
    assert stage.deploy().code == 0
    client = stage.cluster.sandbox.client()
    stage.cluster.do(client.patch("configmaps", "a", {"data": {"value": "edited"}}, "default"))
    failed = {"status": {"operationState": {"phase": "Failed"}}}
    stage.cluster.rest(0.5)
    stage.cluster.patch("a", failed)
    report = planned(stage, "--diff")
    [change] = [each for each in report["changes"] if each["name"] == "a"]
    [changed] = change["objects"]
    assert (change["effect"], changed["kind"], changed["effect"]) == ("changes", "ConfigMap", "out-of-sync")
    [change] = [each for each in planned(stage, "--diff", environ=token_of(stage))["changes"] if each["name"] == "a"]
    assert change["objects"][0]["fields"] == [{"path": "data.value", "before": "edited", "after": "1"}]


def test_an_application_that_cannot_be_rendered_is_a_line(stage: Stage) -> None:
    files = stage.scenario.files(1)
    stage.cluster.repository.push({path: text for path, text in files.items() if path != "a/all.yaml"})
    changes = {each["name"]: each for each in planned(stage, environ=token_of(stage))["changes"]}
    assert (changes["a"]["effect"], changes["b"]["effect"]) == ("unknown", "changes")
    assert "app path does not exist" in changes["a"]["detail"]


def test_a_new_application_and_changed_sources_are_told_apart(stage: Stage) -> None:
    files = stage.scenario.files(0)
    files["c/moved/all.yaml"] = files["c/all.yaml"]
    files["root/templates/c.yaml"]["spec"]["source"]["path"] = "c/moved"
    files["root/templates/b.yaml"]["spec"]["syncPolicy"] = {"syncOptions": ["CreateNamespace=true"]}
    stage.cluster.repository.push(files)
    changes = {each["name"]: each for each in planned(stage, "--diff", environ=token_of(stage))["changes"]}
    assert "its sources change" in changes["c"]["detail"]
    [definition] = changes["c"]["objects"]
    assert (definition["kind"], definition["name"]) == ("argoproj.io/Application", "c")
    assert [field["path"] for field in definition["fields"]] == ["spec.source.path"]
    [definition] = changes["b"]["objects"]
    assert [field["path"] for field in definition["fields"]] == ["spec.syncPolicy"]
    assert changes["a"]["effect"] == "pin"


def test_a_root_that_is_written_first_is_rendered_at_its_new_commit(stage: Stage) -> None:
    """The plan has no sync of its children, because their definition changes only with the root."""
    commit = stage.witness.commits[-1]
    stage.write("environment.yaml", ENVIRONMENT.replace("gitRevision: main", f"gitRevision: {commit}"))
    done = stage.windlass("plan", *stage.files, "--diff", environ=token_of(stage))
    assert "after the root is written: 1 changes, 2 only move their pin" in done.stdout, done.output
    assert "    update ConfigMap default/b\n      data.value: 1 -> 2\n" in done.stdout
    without = stage.windlass("plan", *stage.files)
    assert "after the root is written: which objects change is not known for 3" in without.stdout, without.output
    assert "a, b, c: not known; known only after argocd/platform-root is updated" in without.stdout


def test_a_root_with_other_parameters_cannot_be_rendered_before_it_is_written(stage: Stage) -> None:
    stage.write("environment.yaml", ENVIRONMENT.replace("example.org", "other.test"))
    changes = planned(stage, environ=token_of(stage))["changes"]
    assert {(each["effect"], each["detail"]) for each in changes} == {
        ("unknown", "known only after argocd/platform-root is updated")
    }


@pytest.mark.parametrize(
    ("token", "notice"),
    [
        ("expired", "Argo CD does not accept the token"),
        ("two\nlines", "the token of Argo CD is not used: it is no token"),
        ("", "the token of Argo CD is not used: it is empty"),
    ],
)
def test_a_token_that_is_not_accepted_is_a_notice(stage: Stage, token: str, notice: str) -> None:
    stage.write("token", token)
    done = stage.windlass("plan", *stage.files, "--refresh", "--argocd-token", str(stage.folder / "token"))
    assert done.code == 0, done.output
    assert "3 to sync (which objects change is not known for 3)" in done.stdout
    assert notice in done.stdout
    assert not token or token not in done.output


def test_a_token_file_that_does_not_exist_is_a_configuration_error(stage: Stage) -> None:
    done = stage.windlass("plan", *stage.files, environ={"ARGOCD_AUTH_TOKEN_PATH": "/nowhere/token"})
    assert done.code == 3
    assert "/nowhere/token" in done.stderr


def test_a_dry_run_tells_the_same(stage: Stage) -> None:
    dry = stage.deploy("--dry-run", environ=token_of(stage))
    assert (dry.code, dry.writes) == (0, [])
    assert dry.report["changes"] == planned_without_refresh(stage)["changes"]


def planned_without_refresh(stage: Stage) -> dict[str, Any]:
    done = stage.windlass("plan", *stage.files, "--format", "json", environ=token_of(stage))
    report: dict[str, Any] = json.loads(done.stdout)
    return report
