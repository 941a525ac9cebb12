"""Objects of critical Applications are read directly: what Argo CD says of them is not enough."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import platform, state
from tests.operations.clusters import BROKEN, SLOW, SYNC, after, begin, cluster, patch
from tests.operations.custom_resources import DEFINITIONS, THINGS, thing
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import application, config, workload
from windlass.argo.health.assessment import BuiltInHealthAssessor
from windlass.core.platform.gate_values import Proof
from windlass.core.platform.model.applications import ApplicationNode, ResourceRef
from windlass.core.platform.model.health import Health, parse_health
from windlass.core.platform.model.snapshots import ApplicationState, ResourceKind, ResourceState
from windlass.core.platform.reporting.compliance import Rule
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.operations.object_health import UnhealthyObject, state_with_objects
from windlass.operations.validate import ValidateRequest, validate
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.reporting.reports import Report

NEVER = {f"{ANNOTATION_PREFIX}ready-after": "never"}


async def validated(w: World, **wish: Any) -> Report:
    before = w.kube.counts.total
    report = await validate(cluster(w), ValidateRequest("test", **wish))
    assert report.metrics.calls.writes == w.kube.counts.writes == 0
    calls = replace(report.metrics.calls, reads=w.kube.counts.total - before)
    return replace(report, metrics=replace(report.metrics, calls=calls))


@pytest.mark.parametrize(
    ("kind", "spec", "annotations", "message"),
    [
        ("StatefulSet", {"replicas": 3, "serviceName": "db"}, NEVER, "StatefulSet default/db: 0 of 3 are there"),
        ("Deployment", {"replicas": 2}, BROKEN, "Deployment default/db: 0 of 2 are there"),
        ("DaemonSet", {}, NEVER, "DaemonSet default/db: 0 of 1 are there"),
    ],
)
def test_argo_cd_is_not_believed_about_critical_applications(
    kind: str, spec: dict[str, Any], annotations: dict[str, str], message: str
) -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"db/all.yaml": [workload(kind, "db", annotations=annotations, **spec)]}, application("db"))
            w.argocd.health_overrides["db"] = "Healthy"
            await patch(w, SYNC, "db")
            await after(60)
            report = await validated(w, platform=platform("db"))
            assert report.components[0].health is Health.HEALTHY, "not critical: its word is enough"
            report = await validated(w, platform=platform("db*; gone"))
            assert report.components[0].health is Health.PROGRESSING
            assert report.summary.verdict is Verdict.FAILURE
            [failure] = [each for each in report.failures if each.name == "db"]
            assert (failure.reason, failure.detail, failure.diagnostics[0]) == ("Progressing", message, message)
            assert f"{message.partition(': ')[0]}: pod " in failure.diagnostics[1]
            await patch(w, {"spec": {"destination": {"server": "https://elsewhere.test"}}}, "db")
            report = await validated(w, platform=platform("db*"))
            assert not [each for each in report.failures if each.diagnostics], "nobody can look there"

    run(main())


def test_several_of_a_kind_are_read_by_one_list() -> None:
    async def main() -> None:
        async with world() as w:
            files = {"web/all.yaml": [config(), *(workload(name=f"web-{number}") for number in range(5))]}
            files["db/all.yaml"] = [workload(name="db-0"), workload("StatefulSet", "db", serviceName="db")]
            await begin(w, files, application("web"), application("db"))
            for name in ("web", "db"):
                await patch(w, SYNC, name)
            await after(60)
            report = await validated(w, platform=platform("web*; db*"))
            assert report.summary.verdict is Verdict.SUCCESS
            assert report.metrics.calls.reads == 6, (
                "Applications, Deployments, one StatefulSet, two of policies, the Lease"
            )
            assert {each.evidence.proof for each in report.components if each.evidence} <= set(Proof)
            assert all(each.evidence for each in report.components)
            for name in ("web-1", "web-3"):
                await w.sandbox.client().delete("deployments.apps", name, "default")
            await after(0.1)
            report = await validated(w, platform=platform("web*; db*"))
            [failure] = report.failures
            assert (failure.name, failure.reason) == ("web", "Missing")
            assert failure.detail.startswith("Deployment default/web-1: it is not there (and ")
            assert [line for line in failure.diagnostics if line.endswith("it is not there")] == list(
                failure.diagnostics[:2]
            )

    run(main())


def test_what_may_not_be_read_is_not_known_to_be_healthy() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"web/all.yaml": [config(), workload(annotations=SLOW)]})
            await patch(w, SYNC)
            await after(60)
            w.sandbox.server.faults.add(Fault(verb="get", kind="deployments.apps", code=403, times=1))
            report = await validated(w, platform=platform("web*"))
            assert report.components[0].health is Health.UNKNOWN
            assert report.failures[0].detail.startswith("Deployment default/web: it cannot be read: ")
            w.sandbox.server.faults.add(Fault(verb="get", kind="deployments.apps", code=400, times=1))
            report = await validated(w, platform=platform("web*"))
            assert report.components[0].health is Health.UNKNOWN

    run(main())


@pytest.mark.parametrize(
    ("each", "sick", "health", "message"),
    [
        (state(), [], Health.HEALTHY, ""),
        (state(), [UnhealthyObject("Pod a", Health.PROGRESSING)], Health.PROGRESSING, "Pod a: it is Progressing"),
        (
            state(),
            [UnhealthyObject("Pod a", Health.PROGRESSING), UnhealthyObject("Pod b", Health.DEGRADED, "no")],
            Health.DEGRADED,
            "Pod b: no (and 1 more)",
        ),
        (
            state(Health.DEGRADED),
            [UnhealthyObject("Pod a", Health.PROGRESSING, "soon")],
            Health.DEGRADED,
            "Pod a: soon",
        ),
        (
            state(Health.PROGRESSING, health_message="Argo's"),
            [UnhealthyObject("Pod a", Health.DEGRADED, "no")],
            Health.DEGRADED,
            "Argo's",
        ),
    ],
)
def test_an_application_is_no_better_than_its_objects(
    each: ApplicationState, sick: list[UnhealthyObject], health: Health, message: str
) -> None:
    found = state_with_objects(each, sick)
    assert (found.health, found.health_message) == (health, message)


class ThingsAreIll(BuiltInHealthAssessor):
    """Has a check for one kind."""

    @property
    def kinds(self) -> frozenset[ResourceKind]:
        return frozenset({ResourceKind("things.test", "Thing")})

    async def can_assess(self, kind: ResourceKind) -> bool:
        return kind in self.kinds or await super().can_assess(kind)

    async def assess(self, item: dict[str, Any]) -> ResourceState:
        if item["kind"] == "Thing":
            return ResourceState(Health.DEGRADED, f"{item['metadata']['name']} is ill")
        return await super().assess(item)


def test_kinds_with_a_check_are_read_too_and_are_no_finding() -> None:
    row = {"group": "things.test", "version": "v1", "kind": "Thing", "namespace": "default", "name": "a"}
    rows = [row, {**row, "name": "h", "hook": True}, {**row, "name": "p", "requiresPruning": True}]

    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().create(DEFINITIONS, THINGS)
            await begin(w, {"web/all.yaml": [config()]})
            await patch(w, SYNC)
            await after(60)
            await patch(w, {"status": {"resources": rows, "resourceHealthSource": None}})
            for looked, findings in ((cluster(w), 1), (replace(cluster(w), assessor=ThingsAreIll()), 0)):
                report = await validate(looked, ValidateRequest("test", platform=platform("web*")))
                assert len([each for each in report.compliance if each.rule is Rule.HEALTH_CHECKS]) == findings
            assert report.failures[0].diagnostics == ("Thing default/a: it is not there",)
            await w.sandbox.client().create("things.things.test", thing("a"))
            report = await validate(looked, ValidateRequest("test", platform=platform("web*")))
            assert report.failures[0].detail == "Thing default/a: a is ill"
            await w.sandbox.client().create("things.things.test", thing("b"))
            await patch(w, {"status": {"resources": [row, {**row, "name": "b"}]}})
            report = await validate(looked, ValidateRequest("test", platform=platform("web*")))
            assert report.failures[0].detail == "Thing default/a: a is ill (and 1 more)"
            node = ApplicationNode("thing", "all", ResourceRef("things.test/v1", "Thing", "b", "default"))
            alone = replace(platform("thing"), applications={"thing": node})
            report = await validate(looked, ValidateRequest("test", platform=alone))
            assert report.failures[0].detail == "b is ill"

    run(main())


class ApplicationsSayTheirHealth(BuiltInHealthAssessor):
    async def can_assess(self, kind: ResourceKind) -> bool:
        return kind == ResourceKind("argoproj.io", "Application")

    async def assess(self, item: dict[str, Any]) -> ResourceState:
        return ResourceState(parse_health(item["status"]["health"]["status"]), "it says so")


def test_a_nested_application_counts_unless_it_is_judged_for_itself() -> None:
    async def main() -> None:
        async with world() as w:
            nested = {**application("ill", path="ill"), "apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
            await begin(w, {"root/all.yaml": [nested], "ill/all.yaml": [config("ill")]}, application("root"))
            w.argocd.health_overrides["ill"] = "Degraded"
            for name in ("root", "ill"):
                await patch(w, SYNC, name)
                await after(30)
            looked = replace(cluster(w), assessor=ApplicationsSayTheirHealth())
            report = await validate(looked, ValidateRequest("test", platform=platform("root*; other")))
            assert report.components[1].health is Health.DEGRADED
            assert [each.detail for each in report.failures if each.name == "root"] == [
                "Application argocd/ill: it says so"
            ]
            report = await validate(looked, ValidateRequest("test", platform=platform("root*; ill")))
            healths = {each.name: each.health for each in report.components}
            assert healths == {"root": Health.HEALTHY, "ill": Health.DEGRADED}
            assert report.summary.verdict is Verdict.PARTIAL

    run(main())
