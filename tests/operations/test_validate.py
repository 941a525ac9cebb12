"""`validate` believes what is proven; on virtual time, and in tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import NEW, NOW, OLD, at, operation, platform, source, state
from tests.operations.clusters import APPS, BROKEN, SLOW, SYNC, after, begin, cluster, patch, truth
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import application, config, workload
from windlass.core.platform.freshness import SETTLE_TIME
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    Condition,
    OperationPhase,
    ResourceState,
    Snapshot,
    SyncStatus,
)
from windlass.core.platform.reporting.compliance import Rule
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.errors import WindlassError
from windlass.operations.validate import ValidateRequest, validate, validate_with_timeout, with_proven_health
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus
from windlass.simulation.in_process_transport import USER_AGENT

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.reporting.reports import Report

JUST_NOW = operation(finished_at=at(-1), run_id=None)


@pytest.mark.parametrize(
    ("each", "health"),
    [
        (state(), Health.HEALTHY),
        (state(Health.DEGRADED), Health.DEGRADED),
        (state(Health.PROGRESSING, operation_requested=True), Health.PROGRESSING),
        (state(operation_requested=True), Health.PROGRESSING),
        (state(operation=operation(OperationPhase.RUNNING)), Health.PROGRESSING),
        (state(operation=JUST_NOW, reconciled_at=at(-1)), Health.UNKNOWN),
        (state(operation=JUST_NOW, reconciled_at=at(0)), Health.HEALTHY),
        (state(sources=(source(OLD),)), Health.UNKNOWN),
        (state(sync=SyncStatus.UNKNOWN), Health.UNKNOWN),
        (state(conditions=(Condition("ComparisonError", "x"),)), Health.DEGRADED),
        (state(is_deleting=True), Health.DEGRADED),
        (state(sync=SyncStatus.OUT_OF_SYNC), Health.HEALTHY),
        (ResourceState(Health.HEALTHY), Health.HEALTHY),
        (ResourceState(Health.HEALTHY, is_deleting=True), Health.DEGRADED),
    ],
)
def test_healthy_without_proof_is_not_healthy(each: ApplicationState | ResourceState, health: Health) -> None:
    patient = platform("web")
    node = patient.applications["web"]
    stable = replace(node, timing=replace(node.timing, stability=timedelta(minutes=5)))
    for nodes in ({"web": node}, {"web": stable}):
        found = with_proven_health(Snapshot(NOW, {"web": each}), replace(patient, applications=nodes), {}).states["web"]
        assert found.health is health
        assert bool(found.health_message) == (found != each)


def files(image: str = "web:1") -> dict[str, Any]:
    return {"web/all.yaml": [config(value=image), workload(image=image, annotations=SLOW)]}


async def validated(w: World, **wish: Any) -> Report:
    report = await validate(cluster(w), ValidateRequest("test", **wish))
    assert report.metrics.calls.writes == w.kube.counts.writes == 0
    assert not [entry for entry in w.sandbox.server.journal.writes() if entry.agent == USER_AGENT]
    return report


@pytest.mark.parametrize("how", list(Staleness))
def test_a_stale_verdict_is_not_reported(how: Staleness) -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, files())
            await patch(w, SYNC)
            await after(30)
            repository.push(files("web:2"))
            w.argocd.stale_statuses["web"] = StaleStatus(how)
            await patch(w, SYNC)
            await after(1.2)  # it has ended, and says Healthy
            shown = await w.sandbox.client().get(APPS, "web", "argocd")
            assert shown["status"]["health"]["status"] == "Healthy"
            assert not await truth(w)
            report = await validated(w, platform=platform("web"))
            assert (report.components[0].health is Health.HEALTHY) == await truth(w)
            took = report.summary.duration
            assert timedelta(seconds=1) < took <= SETTLE_TIME + timedelta(seconds=4)

    run(main())


def test_an_operation_that_runs_is_not_waited_for() -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, files())
            await patch(w, SYNC)
            await after(30)
            repository.push(files("web:2"))
            await patch(w, SYNC)
            report = await validated(w, platform=platform("web"))
            assert report.components[0].health is Health.PROGRESSING
            assert report.summary.duration < timedelta(seconds=1)

    run(main())


def test_everything_there_is_without_a_platform() -> None:
    async def main() -> None:
        async with world() as w:
            everywhere = {**files(), "api/all.yaml": [config("api")], "bad/all.yaml": [config("bad")]}
            twin = application("web")
            twin["metadata"]["namespace"] = "default"
            await begin(w, everywhere, application("web"), application("api"), application("bad", path="none"), twin)
            for name in ("web", "api"):
                await patch(w, SYNC, name)
            await after(60)
            report = await validated(w)
            healths = {component.name: component.health for component in report.components}
            assert healths.keys() == {"argocd/web", "default/web", "api", "bad"}
            assert healths["api"] is healths["argocd/web"] is Health.HEALTHY
            assert healths["bad"] is not Health.HEALTHY
            assert report.summary.verdict is Verdict.PARTIAL
            assert report.summary.scope == "all Applications"
            assert {finding.rule for finding in report.compliance} <= {Rule.HEALTH_CHECKS, Rule.NO_HOOKS}
            assert {component.stack for component in report.components} == {"default"}

    run(main())


def test_only_what_is_in_the_scope_and_what_is_missing_is_missing() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files(), application())
            await patch(w, SYNC)
            await after(60)
            report = await validated(w, platform=platform("gone: web; web; thing+: web"))
            healths = {component.name: component.health for component in report.components}
            assert healths == {"web": Health.HEALTHY, "gone": Health.MISSING, "thing": Health.MISSING}
            assert report.summary.verdict is Verdict.PARTIAL
            reasons = {failure.name: failure.reason for failure in report.failures}
            assert reasons == {"gone": "NotDefined", "thing": "Absent"}
            report = await validated(w, platform=platform("gone*: web; web"))
            assert report.summary.verdict is Verdict.FAILURE
            assert {finding.rule for finding in report.compliance} == {Rule.SINGLE_PATH}
            report = await validated(w, platform=platform("web"), is_strict=True)
            assert report.summary.verdict is Verdict.PARTIAL

    run(main())


def test_hooks_that_order_are_found_unless_they_say_they_are_internal() -> None:
    hook = {"version": "v1", "kind": "ConfigMap", "name": "web", "namespace": "default", "hookType": "PreSync"}
    gone = {**hook, "name": "gone", "hookType": "PostSync"}
    stranger = {**hook, "group": "nobody.test", "kind": "Stranger", "hookType": "PreSync"}

    async def main() -> None:
        async with world() as w:
            await begin(w, files())
            await patch(w, SYNC)
            await after(60)
            rows = [hook, gone, stranger]
            await patch(w, {"status": {"operationState": {"syncResult": {"resources": rows}}}})
            assert await hooks(w) == ["ConfigMap web", "ConfigMap gone", "Stranger web"]
            mark = {"metadata": {"annotations": {"windlass.dev/hook": "internal"}}}
            await w.sandbox.client().patch("configmaps", "web", mark, "default")
            assert await hooks(w) == ["ConfigMap gone", "Stranger web"]
            await patch(w, mark)
            assert await hooks(w) == []

    async def hooks(w: World) -> list[str]:
        found = (await validated(w)).compliance
        return [each.what.partition(" is ")[0] for each in found if each.rule is Rule.NO_HOOKS]

    run(main())


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        ({"helm.sh/hook": "pre-install, pre-upgrade"}, ["ConfigMap web is a PreSync hook"]),
        ({"helm.sh/hook": "test,post-upgrade"}, ["ConfigMap web is a PostSync hook"]),
        ({"helm.sh/hook": "pre-install", "argocd.argoproj.io/hook": "Sync"}, []),
        ({"argocd.argoproj.io/hook": "PostSync,Sync"}, ["ConfigMap web is a PostSync hook"]),
        ({"helm.sh/hook": "pre-install", "windlass.dev/hook": "internal"}, []),
        ({"helm.sh/hook": "crd-install"}, []),
        ({}, []),
    ],
)
def test_a_hook_of_an_earlier_operation_says_itself_what_it_is(annotations: dict[str, str], found: list[str]) -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files())
            await patch(w, SYNC)
            await after(60)
            row = {"version": "v1", "kind": "ConfigMap", "name": "web", "namespace": "default", "hook": True}
            await w.sandbox.client().patch("configmaps", "web", {"metadata": {"annotations": annotations}}, "default")
            await patch(w, {"status": {"resources": [row]}})
            findings = (await validated(w)).compliance
            assert [each.what for each in findings if each.rule is Rule.NO_HOOKS] == found

    run(main())


@pytest.mark.parametrize("whole", [True, False])
def test_out_of_time_is_4_with_a_report(whole: bool) -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files())
            wish = ValidateRequest("test", platform=None if whole else platform("web"))
            report = await validate_with_timeout(0, cluster(w), wish)
            assert (report.summary.verdict, report.summary.exit_code) == (Verdict.TIMEOUT, 4)
            assert [each.health for each in report.components] == [Health.UNKNOWN] * (not whole)
            assert "see --timeout" in report.notices[0]
            assert (await validate_with_timeout(60, cluster(w), wish)).summary.verdict is Verdict.FAILURE

    run(main())


def test_m20_a_failure_is_explained_by_its_pods() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"web/all.yaml": [workload(annotations=BROKEN, progressDeadlineSeconds=5)]})
            await patch(w, SYNC)
            await after(30)
            report = await validated(w, platform=platform("web"))
            [failure] = report.failures
            assert any("container main waits, ImagePullBackOff" in line for line in failure.diagnostics)
            assert "ImagePullBackOff" in [each.detected for each in report.recommendations]
            assert not report.notices

    run(main())


def test_m9_git_that_is_ahead_is_a_notice_and_with_strict_a_finding() -> None:
    async def main() -> None:
        async with world() as w:
            child = application("web")
            repository = await begin(
                w, {"root/web.yaml": [child], **files()}, application("platform-root", path="root")
            )
            await patch(w, SYNC, "platform-root")
            await after(5)
            await patch(w, SYNC)
            await after(30)
            assert not (await validated(w, platform=platform("web"))).notices
            child = {**child, "spec": {**child["spec"], "source": {**child["spec"]["source"], "targetRevision": "x"}}}
            repository.push({"root/web.yaml": [child], **files()})
            await patch(w, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}, "platform-root")
            await after(5)
            report = await validated(w, platform=platform("web"))
            assert (report.summary.verdict, len(report.notices)) == (Verdict.SUCCESS, 1)
            assert report.notices[0].startswith("argocd/platform-root: out of sync, git is ahead at ")
            strict = await validated(w, platform=platform("web"), is_strict=True)
            assert (strict.summary.verdict, strict.notices) == (Verdict.PARTIAL, ())
            assert [each.rule for each in strict.compliance if each.application == "argocd/platform-root"] == [
                Rule.UP_TO_DATE
            ]

    run(main())


def test_a_revision_is_reported() -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, files())
            await patch(w, SYNC)
            await after(60)
            report = await validated(w, platform=platform("web"))
            assert report.components[0].revisions == (repository.resolve("main"),) != (NEW,)

    run(main())


def test_a_cluster_without_argo_cd() -> None:
    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().delete("customresourcedefinitions.apiextensions.k8s.io", APPS)
            await after(5)
            for wish in ({}, {"platform": platform("web")}):
                with pytest.raises(WindlassError, match="not served here"):
                    await validated(w, **wish)

    run(main())


def test_a_cluster_with_nothing_in_it_is_healthy_and_nothing_is_healthy_where_all_is_missing() -> None:
    async def main() -> None:
        async with world() as w:
            assert (await validated(w)).summary.verdict is Verdict.SUCCESS
            assert (await validated(w, platform=platform("web"))).summary.verdict is Verdict.FAILURE

    run(main())
