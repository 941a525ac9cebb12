"""Gate, plan, final check, `wait` and `validate` judge alike: Argo CD's fresh verdict, and the objects themselves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests import builders
from tests.operations.clusters import SLOW, SYNC, after, begin, cluster, patch
from tests.operations.custom_resources import DEFINITIONS, THINGS, thing
from tests.operations.test_object_health import ThingsAreIll
from tests.run_contexts import run_context
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import URL, application, config, workload
from windlass.argo.health.assessment import BuiltInHealthAssessor
from windlass.core.platform.gate_values import Failed, Open, Reason
from windlass.core.platform.model.applications import ApplicationRef, NodeTiming, Retries
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.snapshots import ResourceState
from windlass.core.platform.reporting.reports import Action
from windlass.kube.api_errors import KubeError
from windlass.operations.deploy import deploy
from windlass.operations.observation import BUILT_IN_ASSESSOR
from windlass.operations.planner import RunRequest
from windlass.operations.resync_interval import ResyncInterval, parse_stale_after
from windlass.operations.validate import ValidateRequest, validate
from windlass.operations.wait import WaitRequest, WaitTimeout, wait
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX
from windlass.simulation.in_process_transport import USER_AGENT

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.argo.health.assessment import HealthAssessor
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.reporting.reports import Report

NEVER = {f"{ANNOTATION_PREFIX}ready-after": "never"}
DEPLOYMENTS = "deployments.apps"
PATIENCE = NodeTiming(health=timedelta(seconds=60), degraded_grace=timedelta(seconds=5))
NOT_READY = "it is Progressing: Deployment default/db: 0 of 1 are there"


def platform(text: str, timing: NodeTiming = PATIENCE) -> Platform:
    made = builders.platform(text)
    nodes = {name: replace(node, timing=timing, retries=Retries(1)) for name, node in made.applications.items()}
    return replace(made, applications=nodes)


async def deployed(w: World, made: Platform, assessor: HealthAssessor = BUILT_IN_ASSESSOR) -> Report:
    context = run_context(w.kube, cluster=replace(cluster(w), assessor=assessor))
    return await deploy(context, RunRequest(Action.DEPLOY, "staging", made, Scope()))


async def validated(w: World, made: Platform, assessor: HealthAssessor = BUILT_IN_ASSESSOR) -> Report:
    return await validate(replace(cluster(w), assessor=assessor), ValidateRequest("staging", made))


def pinned(name: str, files: dict[str, Any]) -> dict[str, Any]:
    """An Application at a commit: nothing needs to be compared again."""
    commit = MemoryRepository(files).resolve("main")
    return application(name, source={"repoURL": URL, "path": name, "targetRevision": commit})


def results(report: Report) -> dict[str, str]:
    return {each.name: str(each.result) for each in report.components}


def reads(w: World, kind: str = DEPLOYMENTS) -> int:
    return len([row for row in w.sandbox.server.journal.entries if row.kind == kind and row.agent == USER_AGENT])


@pytest.mark.parametrize("stability", [0, 20])
@pytest.mark.parametrize(
    ("marks", "code", "expected"),
    [
        (SLOW, 0, {"db": "succeeded", "next": "succeeded"}),
        (NEVER, 1, {"db": "failed", "next": "skipped"}),
    ],
)
def test_a_gate_opens_only_if_the_objects_agree(
    stability: int, marks: dict[str, str], code: int, expected: dict[str, str]
) -> None:
    made = platform("next: db*", replace(PATIENCE, stability=timedelta(seconds=stability)))
    files = {"db/all.yaml": [workload(name="db", annotations=marks)], "next/all.yaml": [config("next")]}

    async def main() -> None:
        async with world() as w:
            await begin(w, files, application("db"), application("next"))
            w.argocd.health_overrides["db"] = "Healthy"
            report = await deployed(w, made)
            assert (report.summary.exit_code, results(report)) == (code, expected)
            assert ((await validated(w, platform("next: db*"))).summary.exit_code == 0) == (code == 0)
            db = next(each for each in report.components if each.name == "db")
            if code:
                assert [each.detail.split(",")[0] for each in report.failures if each.name == "db"] == [NOT_READY]
            else:
                assert db.evidence
                assert db.evidence.objects_read == 1
                live = await w.sandbox.client().get(DEPLOYMENTS, "db", "default")
                assert live["status"]["availableReplicas"] == 1

    run(main())


class Ill(BuiltInHealthAssessor):
    """Says of Deployments what it is told to."""

    def __init__(self) -> None:
        self.health = Health.DEGRADED

    async def assess(self, item: dict[str, Any]) -> ResourceState:
        return ResourceState(self.health, "it is ill")


def test_a_degraded_object_has_its_grace_period_although_argo_cd_says_healthy() -> None:
    made = platform("db*", replace(PATIENCE, health=timedelta(hours=1)))

    async def main() -> None:
        async with world() as w:
            await begin(w, {"db/all.yaml": [workload(name="db")]}, application("db"))
            started = w.sandbox.clock.now()
            report = await deployed(w, made, Ill())
            assert [(each.reason, each.detail) for each in report.failures] == [
                ("Degraded", "Deployment default/db: it is ill")
            ]
            assert w.sandbox.clock.now() - started < timedelta(seconds=20)

    run(main())


def test_stability_counts_from_when_the_objects_agree() -> None:
    stable = platform("db*", replace(PATIENCE, stability=timedelta(seconds=20), degraded_grace=timedelta(minutes=1)))

    async def main() -> None:
        async with world() as w:
            await begin(w, {"db/all.yaml": [workload(name="db")]}, application("db"))
            started, assessor = w.sandbox.clock.now(), Ill()
            deployment = asyncio.ensure_future(deployed(w, stable, assessor))
            await after(15)
            assessor.health = Health.HEALTHY
            assert (await deployment).summary.exit_code == 0
            assert w.sandbox.clock.now() - started >= timedelta(seconds=35)

    run(main())


def test_an_unchanged_platform_is_judged_by_its_objects_and_awaited() -> None:
    async def main() -> None:
        async with world() as w:
            files = {"db/all.yaml": [workload(name="db")]}
            await begin(w, files, pinned("db", files))
            assert (await deployed(w, platform("db*"))).summary.exit_code == 0
            await after(30)
            before = len(w.sandbox.server.journal.writes())
            report = await deployed(w, platform("db*"))
            assert (report.summary.exit_code, results(report)) == (0, {"db": "unchanged"})
            assert report.components[0].evidence
            assert report.components[0].evidence.objects_read == 1
            assert len(w.sandbox.server.journal.writes()) == before, "it changes nothing"
            w.argocd.pause()
            await w.sandbox.client().delete(DEPLOYMENTS, "db", "default")
            report = await deployed(w, platform("db*"))
            assert (report.summary.exit_code, results(report)) == (1, {"db": "failed"})
            assert report.failures[0].detail.startswith("Deployment default/db: it is not there")
            assert (await validated(w, platform("db*"))).summary.exit_code == 1
            assert (await validated(w, platform("db; other*"))).components[0].health is Health.HEALTHY, "not critical"

    run(main())


def test_an_object_that_breaks_after_its_gate_is_seen_at_the_end() -> None:
    files = {"db/all.yaml": [workload(name="db")], "next/all.yaml": [workload(name="next", annotations=SLOW)]}

    async def main() -> None:
        async with world() as w:
            await begin(w, files, application("db"), application("next"))
            w.argocd.health_overrides["db"] = "Healthy"
            deployment = asyncio.ensure_future(deployed(w, platform("next: db*")))
            await after(4)
            await w.sandbox.client().delete(DEPLOYMENTS, "db", "default")
            report = await deployment
            assert results(report) == {"db": "failed", "next": "succeeded"}
            assert "Deployment default/db: it is not there" in report.failures[0].detail

    run(main())


def test_other_applications_are_judged_by_the_kinds_that_have_a_check_of_ours() -> None:
    files = {"web/all.yaml": [config(), workload(), {**thing("a"), "apiVersion": "things.test/v1", "kind": "Thing"}]}

    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().create(DEFINITIONS, THINGS)
            await begin(w, files)
            assert (await deployed(w, platform("web"))).summary.exit_code == 0
            assert reads(w) == reads(w, "things.things.test") == 0, "Argo CD's word about them is enough"
            report = await deployed(w, platform("web"), ThingsAreIll())
            assert report.failures[0].detail == "Thing default/a: a is ill"
            assert (await validated(w, platform("web; x*"), ThingsAreIll())).components[0].health is Health.DEGRADED
            looked = replace(cluster(w), assessor=ThingsAreIll())
            ended = await wait(looked, WaitRequest(ApplicationRef("web")), lambda _: None)
            assert isinstance(ended, Failed)
            assert (ended.reason, ended.detail) == (Reason.DEGRADED, "it is Degraded: Thing default/a: a is ill")

    run(main())


@pytest.mark.parametrize(("code", "times", "succeeds"), [(503, 30, True), (403, 3, True), (403, 10_000, False)])
def test_what_cannot_be_read_is_not_healthy_and_read_again(code: int, times: int, succeeds: bool) -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"db/all.yaml": [workload(name="db")]}, application("db"))
            w.sandbox.server.faults.add(Fault(verb="get", kind=DEPLOYMENTS, code=code, times=times))
            report = await deployed(w, platform("db*", replace(PATIENCE, health=timedelta(minutes=10))))
            assert (report.summary.exit_code == 0) == succeeds
            if not succeeds:
                assert report.failures[0].reason == "Unknown"
                assert "Deployment default/db: it cannot be read" in report.failures[0].detail

    run(main())


def test_a_check_that_cannot_be_looked_up_is_no_proof() -> None:
    class NoAnswer(BuiltInHealthAssessor):
        async def can_assess(self, kind: object) -> bool:
            raise KubeError("the server does not answer", where="test")

    async def main() -> None:
        async with world() as w:
            await begin(w, {"db/all.yaml": [workload(name="db")]}, application("db"))
            await patch(w, SYNC, "db")
            await after(60)
            report = await validated(w, platform("db*"), NoAnswer())
            assert report.failures[0].detail.startswith("its objects: they cannot be read: ")

    run(main())


# Verdicts that Argo CD does not renew


async def stopped_argocd(w: World, **config_data: str) -> None:
    """Argo CD deployed `web`, and has been down for ten minutes."""
    files = {"web/all.yaml": [config(), workload()]}
    await begin(w, files, pinned("web", files))
    if config_data:
        data = {name.replace("_", "."): value for name, value in config_data.items()}
        await w.sandbox.client().create("configmaps", {"metadata": {"name": "argocd-cm"}, "data": data}, "argocd")
    assert (await deployed(w, platform("web"))).summary.exit_code == 0
    await after(30)
    w.argocd.pause()
    await after(600)


def test_a_verdict_that_argo_cd_has_renewed_is_believed() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"web/all.yaml": [config(), workload()]})
            assert (await deployed(w, platform("web"))).summary.exit_code == 0
            await after(3600)
            assert (await validated(w, platform("web"))).summary.exit_code == 0
            assert reads(w) == reads(w, "configmaps") == 0

    run(main())


def test_a_stale_verdict_is_replaced_by_the_objects() -> None:
    async def main() -> None:
        async with world() as w:
            await stopped_argocd(w)
            report = await validated(w, platform("web"))
            assert report.summary.exit_code == 0
            assert report.components[0].evidence
            assert report.components[0].evidence.objects_read == 1
            assert reads(w, "configmaps") == 1
            assert (await deployed(w, platform("web"))).summary.exit_code == 0
            ended = await wait(cluster(w), WaitRequest(ApplicationRef("web")), lambda _: None)
            assert isinstance(ended, Open)
            assert ended.evidence.objects_read == 1
            await w.sandbox.client().delete(DEPLOYMENTS, "web", "default")
            report = await validated(w, platform("web; x*"))
            [failure] = [each for each in report.failures if each.name == "web"]
            assert failure.reason == "Missing"
            assert failure.detail.startswith("Argo CD has not compared it since 20")
            assert failure.detail.endswith("Z; Deployment default/web: it is not there")
            assert (await deployed(w, platform("web"))).failures[0].reason == "Missing"
            ended = await wait(
                cluster(w), WaitRequest(ApplicationRef("web"), (), timedelta(seconds=30)), lambda _: None
            )
            assert isinstance(ended, WaitTimeout)

    run(main())


def test_a_stale_verdict_about_another_cluster_or_without_rights_is_unknown() -> None:
    async def main() -> None:
        async with world() as w:
            await stopped_argocd(w)
            w.sandbox.server.faults.add(Fault(verb="get", kind=DEPLOYMENTS, code=403, times=1))
            report = await validated(w, platform("web; x*"))
            assert report.components[0].health is Health.UNKNOWN
            assert "Z; Deployment default/web: it cannot be read" in report.failures[0].detail
            await patch(w, {"spec": {"destination": {"server": "https://elsewhere.test"}}})
            report = await validated(w, platform("web; x*"))
            assert report.components[0].health is Health.UNKNOWN
            assert report.failures[0].detail.endswith("Z; its objects: they are in another cluster")

    run(main())


@pytest.mark.parametrize("interval", ["20m", "0"])
def test_the_interval_of_the_cluster_counts(interval: str) -> None:
    async def main() -> None:
        async with world() as w:
            await stopped_argocd(w, timeout_reconciliation=interval)
            await w.sandbox.client().delete(DEPLOYMENTS, "web", "default")
            assert (await validated(w, platform("web"))).summary.exit_code == 0, "it is as old as it may be"

    run(main())


@pytest.mark.parametrize(
    ("data", "minutes"),
    [
        ({}, 6),
        ({"timeout.reconciliation": "180s"}, 8),
        ({"timeout.reconciliation": "5m", "timeout.reconciliation.jitter": "0s"}, 10),
        ({"timeout.reconciliation": "soon", "timeout.reconciliation.jitter": ""}, 6),
        ({"timeout.reconciliation": "0s"}, None),
        ({"timeout.reconciliation": "0"}, None),
    ],
)
def test_how_long_a_verdict_lasts(data: dict[str, str], minutes: int | None) -> None:
    assert parse_stale_after(data) == (None if minutes is None else timedelta(minutes=minutes))


def test_the_interval_is_read_once_and_is_the_default_if_it_may_not_be_read() -> None:
    async def main() -> None:
        async with world() as w:
            w.sandbox.server.faults.add(Fault(verb="get", kind="configmaps", code=403, times=1))
            interval = ResyncInterval(w.kube, "argocd")
            assert [await interval.stale_after() for _ in range(3)] == [timedelta(minutes=6)] * 3
            assert reads(w, "configmaps") == 1

    run(main())
