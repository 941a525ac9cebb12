"""A report as JUnit XML for CI systems: one test suite per stack, one test case per component.

It contains a failure or an error exactly when the exit code is not 0: if no component has one, a case for the run
itself is added.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.reporting.reports import Component, Failure, Report

ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
RUN = "windlass"
_KINDS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(report: Report) -> str:
    summary = report.summary
    root = Element("testsuites", name=_legal(f"windlass {summary.action} of {summary.scope} in {summary.environment}"))
    stacks: dict[str, list[Component]] = {}
    for component in report.components:
        stacks.setdefault(component.stack, []).append(component)
    for stack, components in sorted(stacks.items()):
        _add_stack(root, stack, components, report)
    if summary.exit_code and not root.findall(".//failure") and not root.findall(".//error"):
        _add_run(root, report)
    _count(root, summary.duration.total_seconds())
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_stack(root: Element, stack: str, components: Iterable[Component], report: Report) -> None:
    suite = _suite(root, stack, report)
    failures = {failure.name: failure for failure in report.failures}
    took = 0.0
    for component in components:
        duration = component.duration.total_seconds() if component.duration else 0.0
        took += duration
        case = _case(suite, stack, component.name, duration)
        _judge(case, component, failures)
        findings = [each for each in report.compliance if each.application == component.name]
        if findings:
            lines = [f"{each.rule}: {each.what} ({each.remedy})" for each in findings]
            SubElement(case, "system-out").text = _legal("\n".join(lines))
    _count(suite, took)


def _suite(root: Element, name: str, report: Report) -> Element:
    summary = report.summary
    suite = SubElement(root, "testsuite", name=_legal(name), timestamp=f"{summary.started:%Y-%m-%dT%H:%M:%S}")
    properties = SubElement(suite, "properties")
    told = {"environment": summary.environment, "scope": summary.scope, "runId": summary.run_id}
    for key, value in told.items():
        SubElement(properties, "property", name=key, value=_legal(value))
    return suite


def _case(suite: Element, stack: str, name: str, took: float) -> Element:
    return SubElement(suite, "testcase", classname=_legal(stack), name=_legal(name), time=_seconds(took))


def _judge(case: Element, component: Component, failures: Mapping[str, Failure]) -> None:
    """Interrupted components become errors, not failures: their result is unknown."""
    match component.result:
        case Result.SKIPPED:
            _add(case, "skipped", f"because of {', '.join(component.causes)}")
        case Result.NOT_STARTED:
            _add(case, "skipped", "not started")
        case Result.INTERRUPTED:
            _add_failure(case, "error", failures[component.name])
        case Result.FAILED:
            _add_failure(case, "failure", failures[component.name])
        case None if component.health is not Health.HEALTHY:
            _add_failure(case, "failure", failures[component.name])


def _add_failure(case: Element, kind: str, failure: Failure) -> None:
    blocked = [f"blocks {len(failure.blocks)}: {', '.join(failure.blocks)}"] if failure.blocks else []
    lines = [failure.detail, *blocked, *failure.diagnostics]
    _add(case, kind, f"{failure.reason}: {failure.detail}", lines).set("type", _legal(failure.reason))


def _add_run(root: Element, report: Report) -> None:
    """Add a failed case for the run: unmet dependencies, orphans and compliance findings fail no single component."""
    lines = [f"in the way: {each.name}: {each.why}" for each in report.unmet]
    lines += [f"left behind: {name}" for name in report.removal.orphans]
    lines += [f"{each.rule} {each.application}: {each.what}" for each in report.compliance]
    suite = _suite(root, RUN, report)
    took = report.summary.duration.total_seconds()
    case = _case(suite, RUN, str(report.summary.action), took)
    _add(case, "failure", f"{report.summary.verdict}, exit code {report.summary.exit_code}", lines)
    _count(suite, took)


def _add(case: Element, kind: str, message: str, lines: Iterable[str] = ()) -> Element:
    added = SubElement(case, kind, message=_legal(message))
    added.text = _legal("\n".join(lines))
    return added


def _count(element: Element, took: float) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    for attribute, kind in _KINDS.items():
        element.set(attribute, str(len(list(element.iter(kind)))))
    element.set("time", _seconds(took))


def _seconds(number: float) -> str:
    return f"{number:.3f}"


def _legal(text: str) -> str:
    """Characters that XML 1.0 cannot represent, even escaped, are replaced by U+FFFD."""
    return ILLEGAL.sub("\ufffd", text)
