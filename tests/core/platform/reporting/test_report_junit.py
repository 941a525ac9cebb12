"""Reports as CI systems read them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given

from tests.core.platform.reporting.sample_reports import (
    SAMPLES,
    any_reports,
    deployed,
    partial_deploy,
    reference,
    torn_down,
    validated,
)
from windlass.core.platform.reporting.report_junit import junit

if TYPE_CHECKING:
    from windlass.core.platform.reporting.reports import Report


def parsed(report: Report) -> ET.Element:
    return ET.fromstring(junit(report).encode())


def cases(root: ET.Element) -> dict[str, str]:
    """By name: what stands in it, with its message."""
    found = {}
    for case in root.iter("testcase"):
        marks = [f"{each.tag}: {each.get('message')}" for each in case if each.tag != "system-out"]
        found[str(case.get("name"))] = " ".join(marks)
    return found


def test_each_result_has_its_mark() -> None:
    assert cases(parsed(partial_deploy())) == {
        "ceph": "",
        "keycloak": "skipped: because of postgres",
        "postgres": "failure: Degraded: Argo CD gives no reason",
        "ready": "error: Interrupted: it was in progress when the run ended",
    }


def test_a_failure_carries_its_reason_what_it_blocks_and_what_may_explain_it() -> None:
    failure = parsed(partial_deploy()).find(".//failure")
    assert failure is not None
    assert failure.get("type") == "Degraded"
    assert failure.text == "Argo CD gives no reason\nblocks 1: keycloak\npod postgres-0 restarts"


def test_one_suite_for_each_stack_with_its_counts_and_times() -> None:
    root = parsed(deployed(reference(), broken=["vault"]))
    suites = {suite.get("name"): suite for suite in root.findall("testsuite")}
    assert len(suites) == len({each.stack for each in reference().applications.values()})
    security = suites["security"]
    assert (security.get("failures"), security.get("skipped"), security.get("errors")) == ("1", "2", "0")
    assert root.get("tests") == "43"
    assert float(root.get("time", "")) > 0
    assert sum(float(suite.get("time", "")) for suite in suites.values()) > float(root.get("time", ""))  # in parallel
    assert security.get("timestamp") == "2026-11-15T21:00:00"
    assert {each.get("name"): each.get("value") for each in security.iter("property")} == {
        "environment": "staging",
        "platform": "reference",
        "platformFile": "dag.yaml",
        "server": "https://staging.example.org:6443",
        "scope": "platform",
        "runId": "run-1",
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_red_exactly_if_the_exit_code_is_not_0(name: str) -> None:
    root = parsed(SAMPLES[name])
    is_red = root.get("failures") != "0" or root.get("errors") != "0"
    assert is_red == bool(SAMPLES[name].summary.exit_code)


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (torn_down(), "left behind: Namespace rook-ceph"),
        (SAMPLES["dry run with something in the way"], "cannot start because of postgres: it does not exist"),
        (SAMPLES["strict validate"], "INV-8 ceph: a hook"),
    ],
)
def test_what_no_component_explains_is_a_case_of_the_run(report: Report, line: str) -> None:
    failures = parsed(report).findall(".//testcase[@classname='windlass']/failure")
    assert [failure.text for failure in failures] == [line]
    assert f"exit code {report.summary.exit_code}" in str(failures[0].get("message"))


def test_sick_is_failed_and_findings_are_told_without_failing() -> None:
    root = parsed(validated())
    assert cases(root) == {
        "ceph": "",
        "keycloak": "failure: Absent: it does not exist",
        "postgres": "failure: Degraded: Argo CD gives no reason",
    }
    assert root.findtext(".//testcase[@name='ceph']/system-out") == "INV-8: a hook (remove it)"


def test_a_dry_run_starts_nothing() -> None:
    assert set(cases(parsed(SAMPLES["dry run"])).values()) == {"", "skipped: not started"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("</failure><script>alert('x')</script>", "</failure><script>alert('x')</script>"),
        (']]> & "quoted"', ']]> & "quoted"'),
        ("\x1b[31mred\x1b[0m \x00", "\ufffd[31mred\ufffd[0m \ufffd"),
        ("half \ud800 of a pair, \ufffe", "half \ufffd of a pair, \ufffd"),
        ("\U0001f4a5 tabs\tstay", "\U0001f4a5 tabs\tstay"),
    ],
)
def test_hostile_texts_arrive_as_text(text: str, shown: str) -> None:
    report = partial_deploy(environment=text)
    failure = replace(report.failures[0], detail=text, diagnostics=(text,))
    root = parsed(replace(report, failures=(failure, *report.failures[1:])))
    found = root.find(".//failure")
    assert found is not None
    assert found.get("message") == f"Degraded: {shown}"
    assert found.text == f"{shown}\nblocks 1: keycloak\n{shown}"
    assert root.get("name") == f"windlass deploy of platform in {shown}"


@given(any_reports())
def test_any_report_can_be_parsed_and_is_red_as_its_exit_code(report: Report) -> None:
    root = parsed(report)
    is_red = root.get("failures") != "0" or root.get("errors") != "0"
    assert is_red == bool(report.summary.exit_code)
    assert len(cases(root)) >= len(report.components)
    assert not re.search("[\x00-\x08]", junit(report))
