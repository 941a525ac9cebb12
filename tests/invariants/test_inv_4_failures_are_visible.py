"""INV-4: a failure is reported, what depends on it does not begin, and it is never called a success."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import Stage, platform_file, staged
from tests.scenarios.clusters import APPS, REFRESH
from tests.simulation.play import played
from tests.simulation.scenarios import TROUBLES, Act, newer, told
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from windlass.sandbox.apiserver.store import StoreChange

CHAIN = "d: c; c: b; b: a; aside:"


@pytest.mark.parametrize(
    ("broken", "code", "expected"),
    [
        ("b", 2, {"a": "succeeded", "aside": "succeeded", "b": "failed", "c": "skipped", "d": "skipped"}),
        ("d", 2, {"a": "succeeded", "aside": "succeeded", "b": "succeeded", "c": "succeeded", "d": "failed"}),
    ],
)
def test_the_process_tells_what_failed_and_what_was_not_begun(
    tmp_path: Path, broken: str, code: int, expected: dict[str, str]
) -> None:
    with staged(tmp_path, told(CHAIN, parts={broken: {"trouble": "refused"}})) as stage:
        found = stage.deploy()
        assert (found.code, found.results) == (code, expected), found.ended.output
        begun = set(stage.operations_of(found))
        skipped = {name for name, result in expected.items() if result == "skipped"}
        assert not begun & skipped
        assert not {name for name in skipped if stage.cluster.sandbox.server.store.get("configmaps", "default", name)}
        failures = found.report["failures"]
        assert [(each["name"], each["reason"], each["blocks"]) for each in failures] == [
            (broken, "OperationFailed", sorted(skipped))
        ]
        said = " ".join([failures[0]["detail"], *failures[0]["diagnostics"]])
        assert "Nothing" in said, "the reason that Argo CD gave"
        causes = {each["name"]: each["causes"] for each in found.report["components"]}
        assert all(causes[name] == [broken] for name in skipped)


def test_nothing_healthy_is_a_failure(tmp_path: Path) -> None:
    with staged(tmp_path, told("b: a", parts={"a": {"trouble": "broken"}})) as stage:
        found = stage.deploy()
        assert (found.code, found.results) == (1, {"a": "failed", "b": "skipped"}), found.ended.output


@pytest.mark.parametrize("is_unchanged", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_was_healthy_in_its_turn_and_is_sick_at_the_end_is_no_success(tmp_path: Path, is_unchanged: bool) -> None:
    """By what is watched anyway: it breaks when the last one begins."""
    with staged(tmp_path, told("b: a", parts={"b": {"kind": "Deployment", "ready_after": 2.0}})) as stage:
        stage.write("dag.yaml", platform_file(stage.scenario, "degradedGrace: 1s"))
        if is_unchanged:
            assert stage.deploy("--scope", "app:a").code == 0
        broken_when_begun(stage, "b", breaks="a")
        found = stage.deploy()
        assert (found.code, found.results) == (2, {"a": "failed", "b": "succeeded"}), found.ended.output
        (failure,) = found.report["failures"]
        assert (failure["name"], failure["reason"]) == ("a", "Degraded")
        assert "not ready at the end of the run: it is Degraded" in failure["detail"]


def broken_when_begun(stage: Stage, name: str, *, breaks: str) -> None:
    """Argo CD finds one Degraded as soon as an operation is written on another."""
    sandbox, argocd = stage.cluster.sandbox, stage.cluster.argocd

    async def look_again() -> None:
        await sandbox.client().patch(APPS, breaks, REFRESH, "argocd")

    def notice(change: StoreChange) -> None:
        if change.new.name == name and change.new.load().get("operation") and breaks not in argocd.health_overrides:
            argocd.health_overrides[breaks] = "Degraded"
            sandbox.start(look_again(), name="somebody")

    sandbox.server.store.listen(APPS, "", notice)


@pytest.mark.parametrize("action", ["deploy", "validate", "teardown"])
def test_time_that_is_over_before_anything_is_known_ends_in_4_with_a_report(tmp_path: Path, action: str) -> None:
    with staged(tmp_path, told("b: a")) as stage:
        stage.cluster.sandbox.server.faults.add(Fault(kind=APPS, times=None, latency=5))
        confirmed = {"TEARDOWN_CONFIRM": "development"}
        ended = stage.windlass(action, "--format", "json", *stage.files, "--timeout", "1s", environ=confirmed)
        assert ended.code == 4, ended.output
        report = json.loads(ended.stdout)
        assert (report["summary"]["verdict"], report["summary"]["exitCode"]) == ("timeout", 4)
        assert [(each["name"], each["health"]) for each in report["components"]] == [("a", "Unknown"), ("b", "Unknown")]
        assert not [entry for entry in stage.entries if entry.is_write]


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("has_root", [True, False], ids=["root", "brownfield"])
def test_no_kind_of_trouble_is_taken_for_success(trouble: str, has_root: bool) -> None:
    """The witness compares what is said with what is; afterwards the trouble is gone, and a run gets to the end."""
    first = told(CHAIN, parts={"b": {"trouble": trouble, "kind": "Deployment"}}, has_root=has_root).commits[0]
    scenario = told(CHAIN, has_root=has_root, acts=(Act(),), commits=(first, newer(first, "b", trouble="")))
    found = played(scenario)
    assert not found.problems
    assert found.story[0].startswith("run-1 ended: partial")
    assert found.story[1].startswith("run-2 ended: success")
