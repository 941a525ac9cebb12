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

    from windlass.core.platform.reporting.failures import Failure
    from windlass.core.platform.reporting.reports import Component, Report

ILLEGAL_CHARACTERS = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
RUN_SUITE = "windlass"
_COUNTED_ELEMENTS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(report: Report) -> str:
    summary = report.summary
    root = Element(
        "testsuites", name=_xml_text(f"windlass {summary.action} of {summary.scope} in {summary.environment}")
    )
    stacks: dict[str, list[Component]] = {}
    for component in report.components:
        stacks.setdefault(component.stack, []).append(component)
    for stack, components in sorted(stacks.items()):
        _add_stack_suite(root, stack, components, report)
    if summary.exit_code and not root.findall(".//failure") and not root.findall(".//error"):
        _add_run_suite(root, report)
    _set_counts(root, summary.duration.total_seconds())
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_stack_suite(root: Element, stack: str, components: Iterable[Component], report: Report) -> None:
    suite = _add_suite(root, stack, report)
    failures = {failure.name: failure for failure in report.failures}
    seconds = 0.0
    for component in components:
        duration = component.duration.total_seconds() if component.duration else 0.0
        seconds += duration
        case = _add_case(suite, stack, component.name, duration)
        _add_result(case, component, failures)
        findings = [each for each in report.compliance if each.application == component.name]
        if findings:
            lines = [f"{each.rule}: {each.what} ({each.remedy})" for each in findings]
            SubElement(case, "system-out").text = _xml_text("\n".join(lines))
    _set_counts(suite, seconds)


def _add_suite(root: Element, name: str, report: Report) -> Element:
    summary = report.summary
    suite = SubElement(root, "testsuite", name=_xml_text(name), timestamp=f"{summary.started:%Y-%m-%dT%H:%M:%S}")
    properties = SubElement(suite, "properties")
    values = {
        "environment": summary.environment,
        "platform": summary.platform,
        "platformFile": summary.platform_file,
        "server": summary.server,
        "scope": summary.scope,
        "runId": summary.run_id,
    }
    for key, value in values.items():
        SubElement(properties, "property", name=key, value=_xml_text(value))
    return suite


def _add_case(suite: Element, stack: str, name: str, seconds: float) -> Element:
    return SubElement(
        suite, "testcase", classname=_xml_text(stack), name=_xml_text(name), time=_format_seconds(seconds)
    )


def _add_result(case: Element, component: Component, failures: Mapping[str, Failure]) -> None:
    """Interrupted components become errors, not failures: their result is unknown."""
    cause = failures.get((*component.causes, component.name)[0])
    match component.result:
        case Result.SKIPPED:
            _add_element(case, "skipped", f"because of {', '.join(component.causes)}")
        case Result.NOT_STARTED:
            _add_element(case, "skipped", "not started")
        case Result.INTERRUPTED if cause:
            _add_failure(case, "error", cause)
        case Result.FAILED if cause:
            _add_failure(case, "failure", cause)
        case None if cause and component.health is not Health.HEALTHY:
            _add_failure(case, "failure", cause)


def _add_failure(case: Element, kind: str, failure: Failure) -> None:
    blocked = [f"blocks {len(failure.blocks)}: {', '.join(failure.blocks)}"] if failure.blocks else []
    lines = [failure.detail, *blocked, *failure.diagnostics]
    _add_element(case, kind, f"{failure.reason}: {failure.detail}", lines).set("type", _xml_text(failure.reason))


def _add_run_suite(root: Element, report: Report) -> None:
    """Add a failed case for the run: unmet dependencies, orphans and compliance findings fail no single component."""
    lines = [f"cannot start because of {each.name}: {each.why}" for each in report.unmet]
    lines += [f"left behind: {name}" for name in report.removal.orphans]
    lines += [f"{each.rule} {each.application}: {each.what}" for each in report.compliance]
    suite = _add_suite(root, RUN_SUITE, report)
    seconds = report.summary.duration.total_seconds()
    case = _add_case(suite, RUN_SUITE, str(report.summary.action), seconds)
    _add_element(case, "failure", f"{report.summary.verdict}, exit code {report.summary.exit_code}", lines)
    _set_counts(suite, seconds)


def _add_element(case: Element, kind: str, message: str, lines: Iterable[str] = ()) -> Element:
    element = SubElement(case, kind, message=_xml_text(message))
    element.text = _xml_text("\n".join(lines))
    return element


def _set_counts(element: Element, seconds: float) -> None:
    element.set("tests", str(len(list(element.iter("testcase")))))
    for attribute, kind in _COUNTED_ELEMENTS.items():
        element.set(attribute, str(len(list(element.iter(kind)))))
    element.set("time", _format_seconds(seconds))


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _xml_text(text: str) -> str:
    """Characters that XML 1.0 cannot represent, even escaped, are replaced by U+FFFD."""
    return ILLEGAL_CHARACTERS.sub("\ufffd", text)
