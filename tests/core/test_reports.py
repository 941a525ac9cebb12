"""Reports of every action, as values, as JSON and as text."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import NOW, at, platform, snapshot, state
from windlass.core.platform import compliance, plans, report_texts, reports
from windlass.core.platform.gates import Evidence, Failed, Open, Proof, Reason
from windlass.core.platform.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.recommendations import CATALOGUE, Trouble, recommended
from windlass.core.platform.report_documents import document
from windlass.core.platform.reports import Action, ApiCalls, Ending, Removal, Report, Run
from windlass.core.platform.scopes import parse_scope

PLATFORM = platform("keycloak: postgres*; postgres*: ceph; ready+: ceph")
WHOLE = parse_scope("platform")
RUN = Run(Action.DEPLOY, "staging", "platform", NOW, at(90), ApiCalls(12, 3, 1), run_id="run-1")
GOOD = Evidence(at(60), Health.HEALTHY, proof=Proof.NEW_REVISION)


def failed_deploy(**changes: Any) -> Report:
    plan = plans.for_deploy(PLATFORM, snapshot(), WHOLE)
    outcomes = (
        Outcome("ceph", Result.SUCCEEDED, Open(GOOD), started=at(0), finished=at(60), attempts=1),
        Outcome(
            "postgres",
            Result.FAILED,
            Failed(Reason.DEGRADED, "it is Degraded", GOOD),
            started=at(60),
            finished=at(90),
            attempts=3,
        ),
        Outcome("keycloak", Result.SKIPPED, causes=("postgres",)),
        Outcome("ready", Result.INTERRUPTED, started=at(60)),
    )
    ending = Ending(snapshot("ceph=healthy postgres=degraded"), {"postgres": ("pod postgres-0 restarts",)})
    return reports.of_run(replace(RUN, **changes), PLATFORM, plan, outcomes, ending)


def test_a_failure_names_its_reason_and_what_it_blocks() -> None:
    report = failed_deploy()
    assert (report.summary.verdict, report.summary.exit_code) == ("partial", 2)
    assert report.summary.counts == {"failed": 1, "interrupted": 1, "skipped": 1, "succeeded": 1}
    assert [(each.name, each.reason, each.blocks) for each in report.failures] == [
        ("postgres", "Degraded", ("keycloak",)),
        ("ready", "OutOfTime", ()),
    ]
    assert report.timeline.critical_path.names == ("ceph", "postgres", "keycloak")
    assert report.timeline.critical_path.duration == timedelta(seconds=90)
    assert report.metrics.attempts == 4
    commands = [each.command for each in report.recommendations]
    assert commands == [
        "windlass deploy",
        "kubectl -n argocd describe application postgres",
        "windlass deploy",
    ]


def test_a_report_in_words() -> None:
    assert report_texts.text(failed_deploy(was_interrupted=True)) == (
        """\
deploy of platform in staging: partial, interrupted
  1 failed, 1 interrupted, 1 skipped, 1 succeeded; 1 min 30 s; exit code 2

failures
  postgres  Degraded: it is Degraded
    blocks 1: keycloak
    | pod postgres-0 restarts
  ready  OutOfTime: it was under way when the run ended

components
  ceph  all  Healthy  succeeded  1 min  (the comparison shows a revision that was not there before)
  keycloak  all  Missing  skipped  because of postgres
  postgres  all  Degraded  failed  30 s  (the comparison shows a revision that was not there before)
  ready  all  Missing  interrupted

timeline
           0 s  ceph  1 min
         1 min  postgres  30 s
  critical path 1 min 30 s: ceph -> postgres -> keycloak

calls
  12 reads, 3 writes, 1 refreshes
  estimated 3 min

next
  Fix the failures below, then run the same again: what stands is not touched.
    $ windlass deploy
  postgres is Degraded: look at the pods and events of its resources.
    $ kubectl -n argocd describe application postgres
  ready was still moving when its time was over: raise its timeout, then run again.
    $ windlass deploy
"""
    )


def test_a_report_in_json_is_versioned_and_whole() -> None:
    made = json.loads(json.dumps(document(failed_deploy())))
    assert (made["apiVersion"], made["kind"]) == ("windlass.dev/v1alpha1", "Report")
    assert made["summary"]["started"] == "2026-11-15T21:00:00Z"
    assert made["summary"]["duration"] == 90
    assert made["metrics"]["calls"] == {"reads": 12, "writes": 3, "refreshes": 1}
    assert made["components"][0]["evidence"]["proof"] == Proof.NEW_REVISION
    assert made["components"][2]["critical"] is True
    assert made["timeline"]["spans"][0] == ["ceph", "2026-11-15T21:00:00Z", "2026-11-15T21:01:00Z"]
    assert list(made) == [
        "apiVersion", "kind", "summary", "components", "failures", "metrics", "timeline", "recommendations",
        "steps", "unmet", "compliance", "removal", "notices",
    ]  # fmt: skip


def test_out_of_time_is_4_with_a_whole_report() -> None:
    report = failed_deploy(is_out_of_time=True)
    assert report.summary.exit_code == 4
    assert report.components


def test_a_dry_run_shows_the_steps_and_what_stands_in_the_way() -> None:
    run = replace(RUN, is_dry_run=True, scope="app:keycloak")
    seen = snapshot()
    plan = plans.for_deploy(PLATFORM, seen, parse_scope("app:keycloak"))
    report = reports.of_plan(run, PLATFORM, plan, seen)
    assert report.summary.exit_code == 1
    text = report_texts.text(report)
    assert "deploy of app:keycloak in staging: failure, dry run" in text
    assert "in the way\n  postgres: it does not exist; needed by keycloak" in text
    assert "steps\n  sync keycloak: it does not exist" in text


def test_a_dry_run_of_nothing() -> None:
    seen = snapshot("keycloak=healthy")
    plan = plans.for_deploy(platform("keycloak"), seen, WHOLE)
    text = report_texts.text(reports.of_plan(replace(RUN, is_dry_run=True), platform("keycloak"), plan, seen))
    assert "steps" not in text
    assert "next" not in text


def test_steps_in_order_in_words() -> None:
    plan = plans.for_deploy(PLATFORM, snapshot(), WHOLE)
    text = report_texts.text(reports.of_plan(RUN, PLATFORM, plan, snapshot()))
    assert "  sync postgres after ceph: it does not exist" in text
    assert "critical path 3 min: ceph -> postgres -> keycloak" in text


@pytest.mark.parametrize(
    ("cluster", "strict", "code"),
    [
        ("keycloak=healthy postgres=healthy ceph=healthy", False, 0),
        ("keycloak=healthy postgres=healthy ceph=healthy", True, 2),
        ("keycloak=degraded postgres=healthy ceph=healthy", False, 2),
        ("keycloak=healthy postgres=degraded ceph=healthy", False, 1),
        ("keycloak=healthy ceph=healthy", False, 1),
    ],
)
def test_validate(cluster: str, strict: bool, code: int) -> None:
    run = replace(RUN, action=Action.VALIDATE, is_strict=strict)
    finding = compliance.Finding(compliance.Rule.NO_HOOKS, "ceph", "a hook", "remove it")
    names = ["ceph", "keycloak", "postgres"]
    report = reports.of_validate(run, PLATFORM, names, Ending(snapshot(cluster)), (finding,))
    assert report.summary.exit_code == code
    assert "compliance\n  INV-8 ceph: a hook (remove it)" in report_texts.text(report)


def test_validate_says_what_stands_on_something_sick() -> None:
    run = replace(RUN, action=Action.VALIDATE)
    seen = snapshot("keycloak=healthy", postgres=state(Health.DEGRADED, health_message="1 of 3 ready"))
    report = reports.of_validate(run, PLATFORM, ["ceph", "keycloak", "postgres"], Ending(seen), ())
    assert [(each.name, each.reason, each.detail, each.blocks) for each in report.failures] == [
        ("ceph", "Absent", "it does not exist", ("keycloak", "postgres", "ready")),
        ("postgres", "Degraded", "1 of 3 ready", ("keycloak",)),
    ]
    assert report.summary.health is Health.DEGRADED


def test_teardown_lists_what_was_kept_and_what_was_left() -> None:
    run = replace(RUN, action=Action.TEARDOWN)
    plan = plans.for_teardown(PLATFORM, snapshot("ceph=healthy"), WHOLE)
    outcomes = (Outcome("ceph", Result.SUCCEEDED, Open(Evidence(at(1), Health.MISSING, proof=Proof.ABSENT))),)
    removal = Removal(retained=("PersistentVolume pv-1",), orphans=("Namespace rook-ceph",))
    report = reports.of_run(run, PLATFORM, plan, outcomes, Ending(snapshot()), removal)
    assert (report.summary.exit_code, report.summary.health) == (2, None)
    text = report_texts.text(report)
    assert "retained\n  PersistentVolume pv-1\n\norphans\n  Namespace rook-ceph" in text


def test_marks_that_a_reader_must_see() -> None:
    evidence = replace(GOOD, is_drifting=True, is_directly_verified=False)
    outcomes = (Outcome("ceph", Result.SUCCEEDED, Open(evidence)),)
    plan = plans.for_deploy(PLATFORM, snapshot(), WHOLE)
    text = report_texts.text(reports.of_run(RUN, PLATFORM, plan, outcomes, Ending(snapshot("ceph=healthy"))))
    assert "drifting  not directly verified" in text


def test_every_reason_and_trouble_has_advice() -> None:
    for detected in (*Trouble, *Reason):
        advice = recommended(detected, PLATFORM.applications["ceph"].target)
        assert advice.sentence
        assert advice.command
        assert "{" not in advice.sentence + advice.command
    assert set(CATALOGUE) == {*Trouble, *Reason}


def test_advice_on_a_resource_node_names_its_kind() -> None:
    advice = recommended(Reason.DEGRADED, PLATFORM.applications["ready"].target)
    assert advice.command == "kubectl -n things describe thing ready"


@pytest.mark.parametrize(
    ("span", "words"), [(4.4, "4 s"), (60, "1 min"), (200, "3 min 20 s"), (3600, "1 h 0 min"), (3900, "1 h 5 min")]
)
def test_durations_in_words(span: float, words: str) -> None:
    assert report_texts.duration_words(timedelta(seconds=span)) == words


def test_nothing_in_scope() -> None:
    plan = plans.for_deploy(platform(""), snapshot(), WHOLE)
    report = reports.of_run(RUN, platform(""), plan, (), Ending(snapshot()))
    assert report.summary.exit_code == 0
    assert "nothing in scope" in report_texts.text(report)
