"""PolicyReports, as policy engines write them: which objects of an Application violate which rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.application_resources import desired_resources
from windlass.core.platform.reporting.compliance import Finding, Rule
from windlass.kube.api_errors import Forbidden, NotFound
from windlass.kube.client.objects import TypedObject
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from windlass.argo.cd.applications import Application
    from windlass.kube.client.readers import KubeReader

REPORT_RESOURCES = (
    Resource("wgpolicyk8s.io", "v1alpha2", "policyreports", "PolicyReport"),
    Resource("wgpolicyk8s.io", "v1alpha2", "clusterpolicyreports", "ClusterPolicyReport", namespaced=False),
)
_VIOLATION_RESULTS = frozenset({"fail", "error"})
_ObjectAddress = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


class _ReportedObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None


class _PolicyResult(msgspec.Struct, frozen=True, gc=False):
    policy: str | None = None
    rule: str | None = None
    result: str | None = None
    message: str | None = None
    resources: list[_ReportedObject] | None = None


class PolicyReport(TypedObject, frozen=True, gc=False):
    """A report on one object, `scope`, or on the objects that each result lists."""

    scope: _ReportedObject | None = None
    results: list[_PolicyResult] | None = None


async def read_policy_reports(reader: KubeReader) -> list[PolicyReport]:
    """Empty if the cluster has no PolicyReports or they may not be read."""
    reports: list[PolicyReport] = []
    for resource in REPORT_RESOURCES:
        try:
            reports += (await reader.list(resource.everywhere, PolicyReport)).items
        except (NotFound, Forbidden):
            continue
    return reports


def findings(reports: Iterable[PolicyReport], applications: Mapping[str, Application]) -> tuple[Finding, ...]:
    """One finding per Application and rule, however many of its objects violate the rule."""
    owners = {which: name for name, application in applications.items() for which in _object_addresses(application)}
    objects_by_rule: dict[tuple[str, str], list[str]] = {}
    messages: dict[tuple[str, str], str] = {}
    for which, result in _violations(reports):
        if which in owners:
            key = (owners[which], "/".join(filter(None, (result.policy, result.rule))) or "a policy")
            objects_by_rule.setdefault(key, []).append(f"{which[1]} {'/'.join(filter(None, which[2:]))}")
            messages.setdefault(key, " ".join((result.message or "").split()))
    return tuple(
        _finding(*key, sorted(set(objects)), messages[key]) for key, objects in sorted(objects_by_rule.items())
    )


def _violations(reports: Iterable[PolicyReport]) -> Iterator[tuple[_ObjectAddress, _PolicyResult]]:
    for report in reports:
        for result in report.results or ():
            if result.result in _VIOLATION_RESULTS:
                for each in result.resources or ([report.scope] if report.scope else []):
                    group = (each.api_version or "").rpartition("/")[0]
                    yield (group, each.kind or "", each.namespace or "", each.name or ""), result


def _object_addresses(application: Application) -> Iterator[_ObjectAddress]:
    for row in desired_resources(application):
        yield row.group or "", row.kind or "", row.namespace or "", row.name or ""


def _finding(application: str, rule: str, objects: list[str], message: str) -> Finding:
    more = len(objects) - 1
    subject = f"{objects[0]} and {more} more break" if more else f"{objects[0]} breaks"
    return Finding(Rule.POLICIES, application, f"{subject} {rule}", message or "see its PolicyReport")
