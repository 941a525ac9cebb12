"""Reports of every action, as values, as JSON and as text."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import at, platform, snapshot, state
from tests.core.platform.reporting.sample_reports import SMALL, WHOLE, partial_deploy, run, torn_down, validated
from windlass.core.platform.gate_values import Evidence, Failed, Open, Proof, Reason
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans
from windlass.core.platform.reporting import compliance, report_text, reports
from windlass.core.platform.reporting.recommendations import CATALOGUE, ContainerProblem, RunProblem, recommendation_for
from windlass.core.platform.reporting.report_documents import document
from windlass.core.platform.reporting.reports import Action, FinalState, Removal, Report, RunRecord

RUN = run()


def test_a_failure_names_its_reason_and_what_it_blocks() -> None:
    report = partial_deploy()
    assert (report.summary.verdict, report.summary.exit_code) == ("partial", 2)
    assert report.summary.counts == {"failed": 1, "interrupted": 1, "skipped": 1, "succeeded": 1}
    assert [(each.name, each.reason, each.blocks) for each in report.failures] == [
        ("postgres", "Degraded", ("keycloak",)),
        ("ready", "Interrupted", ()),
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


def test_a_report_in_json_is_versioned_and_whole() -> None:
    made = json.loads(json.dumps(document(partial_deploy())))
    assert (made["apiVersion"], made["kind"]) == ("windlass.dev/v1alpha1", "Report")
    assert made["summary"]["started"] == "2026-11-15T21:00:00Z"
    assert made["summary"]["duration"] == 90
    assert made["metrics"]["calls"] == {"reads": 12, "writes": 3, "refreshes": 1}
    assert made["components"][0]["evidence"]["proof"] == Proof.NEW_REVISION
    assert made["components"][2]["critical"] is True
    assert made["timeline"]["spans"][0] == {
        "name": "ceph",
        "started": "2026-11-15T21:00:00Z",
        "finished": "2026-11-15T21:01:00Z",
    }
    assert list(made) == [
        "apiVersion", "kind", "summary", "components", "failures", "metrics", "timeline", "recommendations",
        "steps", "changes", "unmet", "compliance", "removal", "notices",
    ]  # fmt: skip


def test_out_of_time_is_4_with_a_whole_report() -> None:
    report = partial_deploy(is_out_of_time=True)
    assert report.summary.exit_code == 4
    assert report.components


def test_a_dry_run_shows_the_steps_and_what_stands_in_the_way() -> None:
    run = replace(RUN, is_dry_run=True, scope="app:keycloak")
    seen = snapshot()
    plan = plans.plan_deploy(SMALL, seen, parse_scope("app:keycloak"))
    report = reports.plan_report(run, SMALL, plan, seen)
    assert report.summary.exit_code == 1
    text = report_text.text(report)
    assert text.startswith(
        "plan to deploy app:keycloak in staging: 1 to sync, about 1 min\n  failure, dry run: nothing was changed"
    )
    assert "cannot start\n  keycloak needs postgres (outside the scope): it does not exist" in text
    assert "steps\n  sync  keycloak  about 1 min  it does not exist" in text
    assert "$ windlass plan --scope app:postgres" in text
    assert "windlass deploy" not in text


@pytest.mark.parametrize(("action", "result"), [(Action.DEPLOY, Result.NOT_STARTED), (Action.VALIDATE, None)])
def test_what_was_not_seen_is_unknown(action: Action, result: Result | None) -> None:
    report = reports.unobserved_report(replace(RUN, action=action, is_out_of_time=True), SMALL, ["ceph", "keycloak"])
    assert (report.summary.verdict, report.summary.exit_code) == ("timeout", 4)
    assert [(each.name, each.result, each.health) for each in report.components] == [
        ("ceph", result, Health.UNKNOWN),
        ("keycloak", result, Health.UNKNOWN),
    ]
    assert "timeout" in report_text.text(report)


@pytest.mark.parametrize(
    ("ended", "code"), [(replace(RUN, is_out_of_time=True), 4), (replace(RUN, was_interrupted=True), 1)]
)
def test_a_run_that_ends_before_it_begins_shows_what_was_planned(ended: RunRecord, code: int) -> None:
    plan = plans.plan_deploy(SMALL, snapshot(), WHOLE)
    report = reports.plan_report(ended, SMALL, plan, snapshot())
    assert report.summary.exit_code == code
    assert {each.result for each in report.components} == {Result.NOT_STARTED}
    assert report.steps == plan.steps


def test_a_dry_run_of_nothing() -> None:
    seen = snapshot("keycloak=healthy")
    plan = plans.plan_deploy(platform("keycloak"), seen, WHOLE)
    text = report_text.text(reports.plan_report(replace(RUN, is_dry_run=True), platform("keycloak"), plan, seen))
    assert "steps" not in text
    assert "next" not in text


def test_steps_in_order_in_words() -> None:
    plan = plans.plan_deploy(SMALL, snapshot(), WHOLE)
    text = report_text.text(reports.plan_report(RUN, SMALL, plan, snapshot()))
    assert "  sync   postgres  about 1 min  it does not exist  after ceph\n" in text
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
    report = reports.validate_report(run, SMALL, names, FinalState(snapshot(cluster)), (finding,))
    assert report.summary.exit_code == code
    assert "compliance\n  INV-8 ceph: a hook (remove it)" in report_text.text(report)


def test_validate_says_what_stands_on_something_sick() -> None:
    run = replace(RUN, action=Action.VALIDATE)
    seen = snapshot("keycloak=healthy", postgres=state(Health.DEGRADED, health_message="1 of 3 ready"))
    report = reports.validate_report(run, SMALL, ["ceph", "keycloak", "postgres"], FinalState(seen), ())
    assert [(each.name, each.reason, each.detail, each.blocks) for each in report.failures] == [
        ("ceph", "Absent", "it does not exist", ("keycloak", "postgres", "ready")),
        ("postgres", "Degraded", "1 of 3 ready", ("keycloak",)),
    ]
    assert report.summary.health is Health.DEGRADED


def test_teardown_lists_what_was_kept_and_what_was_left() -> None:
    run = replace(RUN, action=Action.TEARDOWN)
    plan = plans.plan_teardown(SMALL, snapshot("ceph=healthy"), WHOLE)
    outcomes = (Outcome("ceph", Result.SUCCEEDED, Open(Evidence(at(1), Health.MISSING, proof=Proof.ABSENT))),)
    removal = Removal(retained=("PersistentVolume pv-1",), orphans=("Namespace rook-ceph",))
    report = reports.run_report(run, SMALL, plan, outcomes, FinalState(snapshot()), removal)
    assert (report.summary.exit_code, report.summary.health) == (2, None)
    text = report_text.text(report)
    assert (
        "orphans: objects of removed applications that still exist\n  Namespace rook-ceph\n\n"
        "retained, as the volume policy says\n  PersistentVolume pv-1" in text
    )


def test_a_missing_right_is_a_reason_of_its_own() -> None:
    denied = replace(state(Health.UNKNOWN), missing_right="user bob may not get pods in namespace a")
    looked = FinalState(snapshot(ceph=denied, postgres=replace(denied, health=Health.DEGRADED)))
    report = reports.validate_report(replace(RUN, action=Action.VALIDATE), SMALL, ["ceph", "postgres"], looked, ())
    assert [(each.name, each.reason) for each in report.failures] == [
        ("ceph", "RightMissing"),
        ("postgres", "Degraded"),
    ]
    assert report.failures[0].detail == "it is Unknown: user bob may not get pods in namespace a"
    assert report.recommendations[1].command == "windlass rbac --for validate"


@pytest.mark.parametrize(
    ("action", "scope", "command"),
    [
        (Action.VALIDATE, "platform", "windlass validate"),
        (Action.VALIDATE, "stack:all", "windlass validate --scope stack:all"),
        (Action.VALIDATE, "all Applications", "windlass validate --all"),
    ],
)
def test_the_command_that_repeats_a_run(action: Action, scope: str, command: str) -> None:
    report = reports.validate_report(run(action=action, scope=scope), SMALL, ["ceph"], FinalState(snapshot()), ())
    assert report.recommendations[0].command == command


def test_every_reason_and_trouble_has_advice() -> None:
    for detected in (*RunProblem, *Reason, *ContainerProblem):
        target = None if detected in set(RunProblem) - {RunProblem.OUT_OF_SCOPE} else SMALL.applications["ceph"].target
        advice = recommendation_for(detected, target, words=defaultdict(lambda: "word"))
        assert advice.sentence
        assert advice.command
        assert "{" not in advice.sentence + advice.command
    assert set(CATALOGUE) == {*RunProblem, *Reason, *ContainerProblem}


def test_advice_looks_where_argocd_is() -> None:
    made = platform("ceph; ready+")
    plan = plans.plan_deploy(made, snapshot(), WHOLE)
    late = [Outcome(name, Result.FAILED, Failed(Reason.DEGRADED, "")) for name in ("ceph", "ready")]
    report = reports.run_report(
        replace(RUN, argocd_namespace="gitops"), made, plan, tuple(late), FinalState(snapshot())
    )
    assert [each.command for each in report.recommendations[1:]] == [
        "kubectl -n gitops describe application ceph",
        "kubectl -n things describe thing ready",
    ]


def test_advice_names_the_node_as_its_failure_does_and_the_object_by_its_own_name() -> None:
    made = platform("web")
    node = replace(made.applications["web"], target=ApplicationRef("team-web-prod", "team"))
    made = replace(made, applications={"web": node})
    plan = plans.plan_deploy(made, snapshot(), WHOLE)
    late = Outcome("web", Result.FAILED, Failed(Reason.DEGRADED, "it is ill"))
    report = reports.run_report(RUN, made, plan, (late,), FinalState(snapshot()))
    advice = report.recommendations[1]
    assert advice.application == report.failures[0].name == "web"
    assert advice.sentence.startswith("web is Degraded")
    assert advice.command == "kubectl -n team describe application team-web-prod"
    first_screen = report_text.text(report).splitlines()
    failed = next(number for number, line in enumerate(first_screen) if line.startswith("  web  Degraded: it is ill"))
    assert advice.command in first_screen[failed + 1]


def test_advice_on_a_resource_node_names_its_kind() -> None:
    advice = recommendation_for(Reason.DEGRADED, SMALL.applications["ready"].target)
    assert advice.command == "kubectl -n things describe thing ready"


def test_l16_an_absent_application_may_have_been_deleted() -> None:
    advice = recommendation_for(Reason.ABSENT, SMALL.applications["ceph"].target)
    assert "it was not created, or another client deleted it" in advice.sentence


def test_nothing_in_scope() -> None:
    plan = plans.plan_deploy(platform(""), snapshot(), WHOLE)
    report = reports.run_report(RUN, platform(""), plan, (), FinalState(snapshot()))
    assert report.summary.exit_code == 0
    assert "nothing in scope" in report_text.text(report)


@pytest.mark.parametrize("action", [Action.DEPLOY, Action.TEARDOWN])
def test_m1_advice_on_a_dry_run_never_writes(action: Action) -> None:
    plan = plans.plan_deploy(SMALL, snapshot(), parse_scope("app:keycloak"))
    record = run(action=action, is_dry_run=True, scope="app:keycloak")
    report = reports.plan_report(record, SMALL, plan, snapshot())
    commands = [each.command for each in report.recommendations]
    option = " --action teardown" if action is Action.TEARDOWN else ""
    assert commands == [f"windlass plan{option} --scope app:keycloak", f"windlass plan{option} --scope app:postgres"]
    assert report.recommendations[0].sentence == "Fix postgres, then plan again."


def test_m1_a_strict_validation_is_repeated_strictly() -> None:
    report = validated("ceph=healthy postgres=healthy keycloak=healthy", is_strict=True)
    assert report.recommendations[0].command == "windlass validate --strict"
    assert report.recommendations[0].sentence == "Resolve the compliance findings, then validate again."


def test_m20_a_validation_does_not_speak_like_a_deploy() -> None:
    text = report_text.text(validated("ceph=healthy postgres=degraded keycloak=healthy"))
    assert "1 root cause; 1 component depends on it" in text
    assert "    1 depends on it: keycloak" in text
    assert "Fix postgres, then validate again." in text
    assert not any(word in text for word in ("blocked", "blocks", "rerun", "skipped"))


def test_m11_what_prevents_a_teardown_is_told_the_right_way_round() -> None:
    plan = plans.plan_teardown(SMALL, snapshot("keycloak=healthy postgres=healthy"), parse_scope("app:postgres"))
    record = run(action=Action.TEARDOWN, scope="app:postgres")
    text = report_text.text(reports.plan_report(record, SMALL, plan, snapshot()))
    assert "cannot start\n  postgres cannot be removed: keycloak (outside the scope) still depends on it\n" in text


def test_b1_each_end_of_a_run_has_its_own_advice() -> None:
    def sentence(report: Report) -> str:
        return report.recommendations[0].sentence

    assert sentence(partial_deploy()) == "Fix postgres, then rerun; finished applications are skipped."
    assert sentence(partial_deploy(is_out_of_time=True)) == (
        "1 application was running after 1 min 30 s: rerun with a longer --timeout, above 3 min (the estimate); "
        "finished applications are skipped."
    )
    assert sentence(partial_deploy(was_interrupted=True, stop_reason="the lock was lost")) == (
        "Stopped: the lock was lost. Rerun to continue; finished applications are skipped."
    )
    assert sentence(torn_down()).startswith("The applications are removed; the orphans listed here belonged to them")
