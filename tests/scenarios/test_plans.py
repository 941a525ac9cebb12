"""Plans as a process: made without a write, kept in a file, and then done exactly so, or refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import ENVIRONMENT, Stage, staged
from tests.simulation.scenarios import APPLICATIONS, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, told("b: a")) as found:
        yield found


def writes(stage: Stage) -> list[str]:
    return [f"{entry.verb} {entry.name}" for entry in stage.entries if entry.is_write]


def test_a_plan_and_a_dry_run_write_nothing_and_say_the_same(stage: Stage) -> None:
    planned = stage.windlass("plan", *stage.files, "--format", "json")
    assert (planned.code, writes(stage)) == (0, []), planned.output
    dry = stage.deploy(environ={"DRY_RUN": "true"})
    assert (dry.code, dry.writes) == (0, [])
    assert dry.report["steps"] == json.loads(planned.stdout)["steps"]
    assert [step["name"] for step in dry.report["steps"]] == ["a", "b"]


def test_a_plan_is_not_written_through_a_link(stage: Stage) -> None:
    link, target = stage.folder / "plan.json", stage.folder / "target"
    link.symlink_to(target)
    planned = stage.windlass("plan", *stage.files, "--out", str(link))
    assert planned.code == 3
    assert "error: the plan cannot be written: it is a symbolic link" in planned.stderr
    assert not target.exists()


def pinned(stage: Stage) -> str:
    """The environment file at the commit that the branch is at."""
    return ENVIRONMENT.replace("gitRevision: main", f"gitRevision: {stage.witness.commits[-1]}")


@pytest.mark.slow
def test_what_was_approved_is_done_and_not_a_second_time(stage: Stage) -> None:
    plan = str(stage.folder / "plan.json")
    stage.write("environment.yaml", pinned(stage))
    assert stage.windlass("plan", *stage.files, "--out", plan).code == 0
    done = stage.deploy("--plan", plan)
    assert (done.code, done.results) == (0, {"a": "succeeded", "b": "succeeded"})
    again = stage.deploy("--plan", plan)
    assert (again.code, again.writes) == (1, [])
    assert "the plan does not fit the cluster any more" in again.ended.stderr


@pytest.mark.parametrize(
    ("before", "after"), [("gitRevision: ", "gitRevision: 0"), ("domain: example.org", "domain: other.test")]
)
def test_a_root_that_would_be_another_one_is_refused(stage: Stage, before: str, after: str) -> None:
    plan = str(stage.folder / "plan.json")
    stage.write("environment.yaml", pinned(stage))
    assert stage.windlass("plan", *stage.files, "--out", plan).code == 0
    stage.write("environment.yaml", pinned(stage).replace(before, after))
    done = stage.deploy("--plan", plan)
    assert (done.code, done.writes) == (1, []), done.ended.output
    assert "the root would follow root of" in done.ended.stderr


def test_a_plan_of_a_branch_that_is_not_known_yet_is_refused_as_approval(stage: Stage) -> None:
    plan = str(stage.folder / "plan.json")
    planned = stage.windlass("plan", *stage.files, "--out", plan)
    assert planned.code == 0
    assert "this plan cannot be approved: the root Application changes" in planned.stdout
    done = stage.deploy("--plan", plan)
    assert (done.code, done.writes) == (3, []), done.ended.output
    assert "this plan cannot be approved: the root Application changes" in done.ended.stderr


@pytest.mark.slow
def test_a_teardown_does_what_was_approved_and_nothing_else(stage: Stage) -> None:
    assert stage.deploy().code == 0
    files, plan = stage.files, str(stage.folder / "plan.json")
    assert stage.windlass("plan", "--action", "teardown", *files, "--out", plan).code == 0
    confirmed = {"TEARDOWN_CONFIRM": "development"}
    wrong = stage.windlass("teardown", *files, "--plan", plan, "--pv-policy", "delete", environ=confirmed)
    assert (wrong.code, writes(stage)) == (3, [])
    assert "this plan is for volumePolicy 'retain', not 'delete'" in wrong.stderr
    done = stage.windlass("teardown", *files, "--plan", plan, environ=confirmed)
    assert done.code == 0, done.output
    again = stage.windlass("teardown", *files, "--plan", plan, environ=confirmed)
    assert (again.code, writes(stage)) == (1, [])
    assert "the plan does not fit the cluster any more" in again.stderr


def test_a_plan_can_ask_for_a_comparison_first(stage: Stage) -> None:
    assert stage.deploy().code == 0
    commit = stage.cluster.repository.push(stage.scenario.files(0))
    planned = stage.windlass("plan", *stage.files, "--refresh", "--format", "json")
    assert planned.code == 0, planned.output
    report = json.loads(planned.stdout)
    assert report["metrics"]["calls"]["refreshes"] == len(writes(stage)) > 0
    assert report["metrics"]["calls"]["writes"] == 0
    assert any(f"platform-root is planned as of {commit[:12]}" in notice for notice in report["notices"])


def test_the_environment_file_becomes_parameters_of_the_root(stage: Stage) -> None:
    stage.write("environment.yaml", f"{ENVIRONMENT}clusterName: north\n")
    assert stage.deploy().code == 0
    root = stage.cluster.do(stage.cluster.sandbox.client().find(APPLICATIONS, "platform-root", "argocd"))
    source = root["spec"]["source"]
    assert source["path"] == "root"
    assert {row["name"]: row["value"] for row in source["helm"]["parameters"]} == {
        "clusterName": "north",
        "domain": "example.org",
        "environment": "development",
        "targetRevision": "$ARGOCD_APP_REVISION",
    }
