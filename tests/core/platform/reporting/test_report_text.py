"""Reports in words: what a person sees first, and where the rest stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given

from tests.builders import NEW, NOW, at, platform, snapshot
from tests.core.platform.reporting.sample_reports import (
    GOOD,
    SAMPLES,
    SMALL,
    WHOLE,
    any_reports,
    deployed,
    dry_run,
    partial_deploy,
    reference,
    run,
    torn_down,
)
from windlass.core.platform.gate_values import Failed, Open, Reason
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans
from windlass.core.platform.reporting import failures, report_text, reports
from windlass.core.platform.reporting.failures import Failure
from windlass.core.platform.reporting.reports import FinalState, Report
from windlass.core.platform.reporting.text_layout import Screen, format_duration

BROKEN = ["cert-manager", "rook-ceph-cluster", "prometheus", "strimzi-kafka-operator", "argo-rollouts"]


def test_a_report_in_words() -> None:
    assert report_text.text(partial_deploy(was_interrupted=True)) == (
        """\
deploy of platform in staging: partial, interrupted
  1 failed, 1 interrupted, 1 skipped, 1 succeeded; 1 min 30 s, estimated 3 min; exit code 2
  platform reference (dag.yaml), server https://staging.example.org:6443
  in progress when it ended: ready

1 root cause, 1 component blocked
  postgres  Degraded: Argo CD gives no reason
    blocks 1: keycloak
    | pod postgres-0 restarts
    $ kubectl -n argocd describe application postgres

next
  Stopped: the run was stopped. Rerun to continue; finished applications are skipped.
    $ windlass deploy

components (* critical)
  name       stack  health    result       took   expected  compared with  proof
  postgres*  all    Degraded  failed       30 s   1 min     111111111111   new revision  3 attempts
  ready      all    Missing   interrupted
  keycloak   all    Missing   skipped                                                    because of postgres
  ceph       all    Healthy   succeeded    1 min  1 min     111111111111   new revision

timeline (# on the critical path)
  ceph      |###########################             |  1 min
  postgres  |                           #############|  30 s
  critical path 1 min 30 s, 100% of the run: ceph -> postgres

calls
  12 reads, 3 writes, 1 refresh
"""
    )


SCREENS = [Screen(80, 24), Screen(110, 30)]


@pytest.mark.parametrize("screen", SCREENS, ids=str)
@pytest.mark.parametrize("count", range(1, len(BROKEN) + 1))
def test_m5_a_failed_run_of_43_is_one_screen(count: int, screen: Screen) -> None:
    report = deployed(
        reference(), BROKEN[:count], diagnostics=("  container main waits, CrashLoopBackOff",) * 9, slower=1.2
    )
    text = report_text.summary_text(report, screen)
    assert_one_screen(text, screen)
    assert "deploy of platform in staging: partial" in text
    assert "exit code 2" in text
    assert f"{count} root cause" in text
    shown = sorted(BROKEN[:count], key=lambda name: -len(failure(report, name).blocks))[:3]
    for name in shown:
        assert f"  {name}  Degraded: 1 of 3 ready" in text
        assert f"blocks {len(failure(report, name).blocks)}: " in text or not failure(report, name).blocks
    if count < 3:
        assert all(f"$ kubectl -n argocd describe application {name}" in text for name in shown)
    for name in BROKEN[:count]:
        assert name in text
    assert "$ windlass deploy\n" in text


def assert_one_screen(text: str, screen: Screen) -> None:
    lines = text.splitlines()
    assert len(lines) <= screen.height - report_text.ROWS_AROUND
    assert all(len(line) <= screen.width or line.lstrip().startswith("$ ") for line in lines)


@pytest.mark.parametrize("screen", SCREENS, ids=str)
@pytest.mark.parametrize("name", SAMPLES)
def test_m5_every_report_is_one_screen(name: str, screen: Screen) -> None:
    report = replace(SAMPLES[name], notices=tuple(f"notice {number} {'word ' * 30}" for number in range(20)))
    text = report_text.summary_text(report, screen)
    assert_one_screen(text, screen)
    assert f"exit code {report.summary.exit_code}" in text
    assert "notices: 20\n" in text or ("notices\n  notice 0 " in text and " more\n" in text)


@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_m4_the_cause_is_not_cut(screen: Screen) -> None:
    cause = "ComparisonError: Failed to load target state: " + "failed to generate manifest for source 1 of 1: " * 4
    lines = (
        "Deployment default/a: pod a-1 is Pending",
        "  container main waits, ImagePullBackOff: not found in registry",
    )
    report = deployed(reference(), BROKEN[:2], diagnostics=lines)
    changed = tuple(replace(each, detail=f"{cause}app path does not exist") for each in report.failures)
    report = replace(report, failures=changed)
    words = " ".join(report_text.summary_text(report, screen).split())
    if screen.height >= 30:
        assert words.count(f"{cause}app path does not exist") == 2
        assert "| container main waits, ImagePullBackOff: not found in registry" in words
    else:
        assert words.count(f"{cause}app path does not exist") == 1
        assert "and 1 more (--details): " in words
    assert "..." not in words


def test_m4_long_commands_are_continued_as_a_shell_continues_them() -> None:
    report = deployed(reference(), ["vault"])
    command = "windlass deploy --dag 'my platform.yaml' --environment-file environments/staging.yaml --scope stack:data"
    advice = replace(report.recommendations[0], command=command)
    text = report_text.summary_text(replace(report, recommendations=(advice,)), Screen(60, 24))
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    $ windlass"))
    assert lines[first : first + 3] == [
        "    $ windlass deploy --dag 'my platform.yaml' \\",
        "        --environment-file environments/staging.yaml \\",
        "        --scope stack:data",
    ]


def test_m6_a_broken_root_is_named_once() -> None:
    problem = "ComparisonError: repository not found: not a url"
    failed = Failed(
        Reason.PARENT_BROKEN, f"argocd/platform-root: {problem}", is_final=True, cause="argocd/platform-root"
    )
    outcomes = [Outcome(name, Result.FAILED, failed, causes=(failed.cause,)) for name in ("certs", "dns", "csi")]
    [found] = failures.outcome_failures(outcomes, {})
    assert (found.name, found.detail) == ("argocd/platform-root", problem)
    assert found.blocks == ("certs", "csi", "dns")


def test_m4_a_reason_that_argocd_does_not_give_is_the_one_of_the_container() -> None:
    report = deployed(reference(), ["vault"])
    waits = "  container main waits, ImagePullBackOff: not found"
    found = failures.outcome_failures(
        [Outcome("vault", Result.FAILED, Failed(Reason.DEGRADED, "it is Degraded"))],
        {"vault": ("Deployment default/vault: pod vault-0 is Pending", waits)},
    )
    text = report_text.summary_text(replace(report, failures=found), SCREENS[0])
    assert "  vault  Degraded: container main waits, ImagePullBackOff: not found\n" in text
    assert text.count("ImagePullBackOff") == 1


def test_l21_tables_fit_the_terminal() -> None:
    report = deployed(reference(), ["vault"], slower=1.2)
    for width in (80, 110):
        lines = report_text.text(report, width).splitlines()
        assert max(map(len, lines)) <= width
        assert any(line.startswith("  name") and "result" in line for line in lines)


def test_l20_a_critical_path_of_no_time_has_no_share_of_the_run() -> None:
    report = torn_down()
    moment = report.timeline.spans[0].started
    timeline = replace(
        report.timeline, critical_path=replace(report.timeline.critical_path, duration=timedelta(seconds=0.2))
    )
    text = report_text.text(replace(report, timeline=timeline, summary=replace(report.summary, started=moment)))
    assert "critical path 0 s: ceph\n" in text


def test_the_example_of_the_page_is_real() -> None:
    lines = (
        "event Warning BackOff pod/vault-0: back-off restarting failed container",
        "log vault-0: failed to unseal: no space left on device",
    )
    text = report_text.text(deployed(reference(), ["vault"], lines, slower=1.2))
    first = text[: text.index("\n\ncomponents")]
    assert f"```\n{first}\n```" in (Path(__file__).parents[4] / "docs/reports.md").read_text()


def failure(report: Report, name: str) -> Failure:
    return next(each for each in report.failures if each.name == name)


def test_what_the_first_screen_cuts_stands_below_in_full() -> None:
    lines = tuple(f"line {number} {'x' * 120}" for number in range(9))
    report = deployed(reference(), BROKEN[:1], diagnostics=lines)
    first, _, rest = report_text.text(report).partition("\nfailures in full\n")
    assert lines[-1] not in first
    assert f"and {len(failure(report, BROKEN[0]).blocks) - 5} more" in first
    assert all(f"    | {line}\n" in rest for line in lines)
    assert ", ".join(failure(report, BROKEN[0]).blocks) in rest


def test_what_is_explained_by_another_is_no_root_cause() -> None:
    found = [
        Failure("a", "Missing", "", ("b", "c")),
        Failure("b", "Missing", "", ("c",)),
        Failure("d", "Missing", "", ()),
    ]
    assert [each.name for each in failures.root_causes(found)] == ["a", "d"]


def test_those_that_were_stopped_are_told_in_full_if_there_is_more_to_say() -> None:
    report = partial_deploy()
    assert "failures in full" not in report_text.text(report)
    failed, stopped = report.failures
    text = report_text.text(replace(report, failures=(failed, replace(stopped, diagnostics=("pulling",)))))
    assert "  ready  Interrupted: it was in progress when the run ended\n    | pulling\n" in text


def test_lines_of_a_detail_stay_apart() -> None:
    report = partial_deploy()
    changed = (replace(report.failures[0], detail="first\nsecond"), report.failures[1])
    text = report_text.text(replace(report, failures=changed))
    assert "  postgres  Degraded: first\n    second\n    blocks" in text


def test_a_plan_shows_each_component_once_and_what_it_will_be_at() -> None:
    report = dry_run("platform")
    steps = tuple(replace(step, revisions=(NEW,)) if step.name == "postgres" else step for step in report.steps)
    text = report_text.text(replace(report, steps=steps))
    assert "  sync   postgres  about 1 min  to 111111111111  it does not exist\n" in text
    table = text[text.index("components (") : text.index("\n\ntimeline")].splitlines()
    assert [line.split()[0] for line in table[2:]] == ["ceph"]


def test_slower_than_estimated_is_seen_at_once() -> None:
    text = report_text.text(deployed(reference(), slower=2))
    assert "50 min 1 s, estimated 25 min" in text.splitlines()[1]
    assert "critical path 50 min, 100% of the run: cert-manager -> rook-ceph-cluster -> " in text


def test_columns_are_aligned() -> None:
    text = report_text.text(deployed(reference(), ["vault"]))
    table = text[text.index("components (") : text.index("\n\ntimeline")].splitlines()[1:]
    column = table[0].index("health")
    assert len(table) == 44
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in table)


def test_what_takes_no_time_still_has_a_bar() -> None:
    plan = plans.plan_deploy(platform("a"), snapshot(), WHOLE)
    outcomes = (Outcome("a", Result.SUCCEEDED, Open(GOOD), started=NOW, finished=NOW),)
    report = reports.run_report(run(finished=NOW), platform("a"), plan, outcomes, FinalState(snapshot()))
    assert f"  a  |#{' ' * 39}|  0 s\n  critical path 0 s: a\n" in report_text.text(report)


def test_marks_that_a_reader_must_see() -> None:
    evidence = replace(GOOD, is_drifting=True, is_directly_verified=False)
    outcomes = (Outcome("ceph", Result.SUCCEEDED, Open(evidence), started=NOW, finished=at(1)),)
    plan = plans.plan_deploy(SMALL, snapshot(), WHOLE)
    text = report_text.text(reports.run_report(run(), SMALL, plan, outcomes, FinalState(snapshot("ceph=healthy"))))
    assert "drifting, not directly verified" in text


@given(any_reports())
def test_any_report_has_a_text_that_begins_with_its_verdict(report: Report) -> None:
    text = report_text.text(report)
    assert f": {report.summary.verdict}" in text
    assert f"exit code {report.summary.exit_code}\n" in text


@pytest.mark.parametrize(
    ("span", "words"), [(4.4, "4 s"), (60, "1 min"), (200, "3 min 20 s"), (3600, "1 h 0 min"), (3900, "1 h 5 min")]
)
def test_durations_in_words(span: float, words: str) -> None:
    assert format_duration(timedelta(seconds=span)) == words


def test_a_report_without_platform_and_server_has_no_line_for_them() -> None:
    report = partial_deploy()
    summary = replace(report.summary, platform="", platform_file="", server="")
    assert "server" not in report_text.text(replace(report, summary=summary))


def test_m7_out_of_sync_is_not_drifting() -> None:
    report = deployed(reference(), ["vault"])
    node = replace(report.components[0], sync="OutOfSync", evidence=replace(GOOD, is_drifting=False))
    text = report_text.text(replace(report, components=(node,)))
    assert text.count("out of sync") == 1
    assert "drifting" not in text


def test_a_refused_run_says_why_before_what_to_do() -> None:
    text = report_text.summary_text(SAMPLES["dry run with something in the way"], Screen(80, 24))
    assert text.index("cannot start\n  keycloak needs postgres") < text.index("next\n")
