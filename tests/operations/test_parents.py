"""What defines the nodes: a parent that Argo CD cannot render fails them all, with one cause; never exit code 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import builders
from tests.operations.clusters import after, begin, cluster
from tests.run_contexts import run_context
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import URL, application, config
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import Act, Event, told
from windlass.argo.cd.root_application import NAME, RootApplication, RootLabelMissing
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.reporting.reports import Action
from windlass.operations.deploy import deploy
from windlass.operations.plan import plan
from windlass.operations.planner import RunRequest
from windlass.operations.validate import ValidateRequest, validate

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.reporting.reports import Report
    from windlass.sandbox.argocd.repositories import MemoryRepository

APPS, SETS = "applications.argoproj.io", "applicationsets.argoproj.io"
PLATFORM = builders.platform("next: web; web: ; alone:")
ROOT = RootApplication(URL, "main", "root", {})
CHART = {"root/Chart.yaml": {"name": "root", "version": "1.0.0"}}
FILES: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in ("web", "next", "alone", "more")}
CHILDREN = {f"root/templates/{name}.yaml": application(name) for name in ("web", "next")}
RESULTS = {"web": "failed", "next": "failed", "alone": "unchanged"}


async def deployed(w: World, platform: Platform = PLATFORM, run_id: str = "run-1", **request: Any) -> Report:
    return await deploy(run_context(w.kube, run_id), RunRequest(Action.DEPLOY, "staging", platform, Scope(), **request))


async def planned(w: World, platform: Platform = PLATFORM, **request: Any) -> Report:
    found = await plan(cluster(w), RunRequest(Action.DEPLOY, "staging", platform, Scope(), **request))
    return found.report


async def validated(w: World, platform: Platform = PLATFORM) -> Report:
    return await validate(cluster(w), ValidateRequest("staging", platform))


def results(report: Report) -> dict[str, str]:
    return {each.name: str(each.result) for each in report.components}


async def refresh(w: World, name: str) -> None:
    annotation = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
    await w.sandbox.client().patch(APPS, name, annotation, "argocd")
    await after(2)


async def everything_deployed(w: World) -> MemoryRepository:
    """Two nodes that the root defines, and one that was created by hand."""
    repository = await begin(w, {**CHART, **CHILDREN, **FILES}, application("alone"))
    assert (await deployed(w, root=ROOT)).summary.exit_code == 0
    await after(60)
    return repository


BREAKS = ["commit", "git"]


async def break_parent(w: World, repository: MemoryRepository, how: str) -> None:
    if how == "commit":
        repository.push({**CHART, "root/templates/web.yaml": "{not yaml", **FILES})
    else:
        del w.argocd.repositories[URL]


@pytest.mark.parametrize("how", BREAKS)
def test_a_root_that_cannot_be_rendered_fails_what_it_defines_with_one_cause(how: str) -> None:
    """Its children look defined and in sync: Argo CD keeps the resources of the last comparison."""

    async def main() -> None:
        async with clusters.world() as w:
            await break_parent(w, await everything_deployed(w), how)
            report = await deployed(w, run_id="run-2", root=ROOT)
            found = results(report)
            assert (found["web"], found["next"]) == ("failed", "failed")
            root = next(each for each in report.failures if each.name == f"argocd/{NAME}")
            assert (root.reason, root.blocks[-2:]) == ("ParentBroken", ("next", "web"))
            assert "ComparisonError" in root.detail
            assert report.summary.exit_code in {1, 2}
            advice = next(each for each in report.recommendations if each.application == f"argocd/{NAME}")
            assert advice.command == f"kubectl -n argocd get application {NAME} -o yaml"

    clusters.run(main())


def test_plan_and_validate_say_it_too() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await break_parent(w, await everything_deployed(w), "commit")
            await refresh(w, NAME)
            report = await planned(w, root=ROOT)
            assert results(report) == RESULTS
            assert [(each.name, each.blocks) for each in report.failures] == [(f"argocd/{NAME}", ("next", "web"))]
            assert report.summary.exit_code == 2
            checked = await validated(w)
            assert {each.name: str(each.health) for each in checked.components} == {
                "web": "Unknown",
                "next": "Unknown",
                "alone": "Healthy",
            }
            assert [(each.name, each.reason, each.blocks) for each in checked.failures] == [
                (f"argocd/{NAME}", "ParentBroken", ("next", "web"))
            ]
            assert checked.summary.exit_code == 2

    clusters.run(main())


def test_a_repository_that_is_down_for_seconds_is_waited_for() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            repository = await everything_deployed(w)
            del w.argocd.repositories[URL]
            await refresh(w, NAME)

            async def repaired() -> None:
                await after(12)
                w.argocd.repositories[URL] = repository

            w.sandbox.start(repaired(), name="the git server comes back")
            report = await deployed(w, builders.platform("next: web; web:"), "run-2", root=ROOT)
            assert report.summary.exit_code == 0, report.failures

    clusters.run(main())


def test_a_controller_that_does_not_answer_is_a_failure() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await everything_deployed(w)
            w.argocd.pause()
            report = await deployed(w, run_id="run-2", root=ROOT)
            assert {each.name: each.reason for each in report.failures} == {
                f"argocd/{NAME}": "NotAnswering",
                "alone": "NotAnswering",
            }
            assert set(results(report).values()) == {"failed"}
            assert report.summary.exit_code == 1

    clusters.run(main())


def test_dependents_are_skipped_for_the_same_cause_and_other_branches_run() -> None:
    """`last` is not defined by the broken root, but depends on a node that is."""
    platform = builders.platform("last: next; next: web; web: ; alone:")

    async def main() -> None:
        async with clusters.world() as w:
            repository = await begin(w, {**CHART, **CHILDREN, **FILES, "last/all.yaml": [config("last")]})
            await w.sandbox.client().delete(APPS, "web", "argocd")
            assert (await deployed(w, builders.platform("next: web; web:"), root=ROOT)).summary.exit_code == 0
            for name in ("last", "alone"):
                await w.sandbox.client().create(APPS, application(name))
            await after(60)
            files = {path: text for path, text in FILES.items() if path != "web/all.yaml"}
            repository.push(
                {**CHART, "root/templates/web.yaml": "{not yaml", **files, "last/all.yaml": [config("last")]}
            )
            report = await deployed(w, platform, "run-2", root=ROOT)
            assert results(report) == {"web": "failed", "next": "failed", "last": "skipped", "alone": "succeeded"}
            [failure] = report.failures
            assert (failure.name, failure.blocks) == (f"argocd/{NAME}", ("last", "next", "web"))
            assert next(each for each in report.components if each.name == "last").causes == (f"argocd/{NAME}",)
            assert report.summary.exit_code == 2

    clusters.run(main())


def application_set(path: str) -> dict[str, Any]:
    generator = {"git": {"repoURL": URL, "revision": "main", "directories": [{"path": path}]}}
    template = {"metadata": {"name": "{{path.basename}}"}, "spec": application("{{path.basename}}")["spec"]}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "tenants"}}
    return {**head, "spec": {"generators": [generator], "template": template}}


def test_what_left_git_is_not_defined() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            repository = await everything_deployed(w)
            children = {path: text for path, text in CHILDREN.items() if "next" not in path}
            repository.push({**CHART, **children, **FILES})
            report = await deployed(w, run_id="run-2", root=ROOT)
            assert results(report) == {"web": "unchanged", "next": "failed", "alone": "unchanged"}
            [failure] = report.failures
            assert (failure.name, failure.reason) == ("next", "NotDefined")
            assert report.summary.exit_code == 2
            await after(60)
            assert [each.reason for each in (await planned(w, root=ROOT)).failures] == ["NotDefined"]
            checked = await validated(w)
            assert [(each.name, each.reason) for each in checked.failures] == [("next", "NotDefined")]
            assert checked.summary.exit_code == 2

    clusters.run(main())


def test_a_root_that_defines_no_node_is_compared_again_before_it_is_believed() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            platform = builders.platform("next: web; web:")
            repository = await begin(w, {**CHART, **FILES})
            report = await deployed(w, platform, root=ROOT)
            assert {each.reason for each in report.failures} == {"NotDefined"}
            repository.push({**CHART, **CHILDREN, **FILES})
            report = await deployed(w, platform, "run-2", root=ROOT)
            assert results(report) == {"web": "succeeded", "next": "succeeded"}

    clusters.run(main())


@pytest.mark.parametrize(("seconds", "code"), [(50, 0), (2000, 1)])
def test_a_root_that_cannot_be_rendered_at_the_end_of_a_run_fails_it_after_the_grace_period(
    seconds: float, code: int
) -> None:
    """As `validate` right after the run would: applications are synced to a commit, the root follows a branch."""

    async def work(play: Play) -> None:
        ended = await play.run(Act(events=(Event(5.0, "git-down", seconds=seconds),)))
        assert ended.report is not None
        assert ended.report.summary.exit_code == code, ended.report.failures
        causes = {"argocd/platform-root": "ParentBroken"} if code else {}
        assert {each.name: each.reason for each in ended.report.failures} == causes

    acted(told("b: a", parts={"a": {"kind": "Deployment", "ready_after": 30.0}}, validates=True), work)


def test_what_nothing_defines_is_said_at_once() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await everything_deployed(w)
            platform = builders.platform("next: web; web: ; alone: ; gone:")
            for report in (await planned(w, platform, root=ROOT), await deployed(w, platform, "run-2", root=ROOT)):
                assert [(each.name, each.reason) for each in report.failures] == [("gone", "NotDefined")]
                assert report.summary.exit_code == 2

    clusters.run(main())


def test_what_only_git_defines_is_a_notice() -> None:
    notice = "defined in git, but not in the platform file, so neither deployed nor checked: argocd/more"

    async def main() -> None:
        async with clusters.world() as w:
            more = {"root/templates/more.yaml": application("more")}
            await begin(w, {**CHART, **CHILDREN, **more, **FILES}, application("alone"))
            assert notice not in (await deployed(w, root=ROOT)).notices, "nothing is known before the root exists"
            await after(60)
            for report in (
                await planned(w, root=ROOT),
                await deployed(w, run_id="run-2", root=ROOT),
                await validated(w),
            ):
                assert notice in report.notices
                assert report.summary.exit_code == 0

    clusters.run(main())


async def patched_root(w: World, change: dict[str, Any]) -> None:
    await w.sandbox.client().patch(APPS, NAME, change, "argocd")
    await after(1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"syncPolicy": {"automated": {"prune": True}}}, "automated sync was switched on"),
        ({"project": "other"}, "project other -> default"),
        ({"destination": {"namespace": "elsewhere"}}, "its destination differs"),
        ({"sources": [{"repoURL": URL, "path": "web", "targetRevision": "main"}]}, "it has several sources"),
        ({"source": {"directory": {"recurse": True}}}, "recurse other values -> nothing"),
    ],
)
def test_a_root_that_another_client_changed_is_named_and_written_again(change: dict[str, Any], told: str) -> None:
    text = f"{NAME}, the root Application, is changed first: {told}"

    async def main() -> None:
        async with clusters.world() as w:
            await everything_deployed(w)
            before = (await w.sandbox.client().get(APPS, NAME, "argocd"))["spec"]
            await patched_root(w, {"spec": change})
            assert text in (await planned(w, root=ROOT)).notices
            report = await deployed(w, run_id="run-2", root=ROOT)
            assert text in report.notices
            assert report.summary.exit_code == 0, report.failures
            found = (await w.sandbox.client().get(APPS, NAME, "argocd"))["spec"]
            assert {**found, "syncPolicy": found.get("syncPolicy") or None} == {**before, "syncPolicy": None}
            assert text not in (await planned(w, root=ROOT)).notices

    clusters.run(main())


def test_a_root_that_lost_its_label_is_refused_before_anything_is_written() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await everything_deployed(w)
            await patched_root(w, {"metadata": {"labels": None}})
            writes = w.kube.counts.writes
            for refused in (planned(w, root=ROOT), deployed(w, run_id="run-2", root=ROOT)):
                with pytest.raises(RootLabelMissing, match="lacks the label app"):
                    await refused
            assert w.kube.counts.writes == writes

    clusters.run(main())


def test_another_application_with_the_name_of_the_root_is_a_parent_like_any_other() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await everything_deployed(w)
            await patched_root(w, {"metadata": {"labels": None}})
            report = await deployed(w, run_id="run-2", root=RootApplication("https://git.test/other", "main", ".", {}))
            assert (
                f"argocd/{NAME} is not managed by windlass: it is used as it is, as any other parent" in report.notices
            )
            assert report.summary.exit_code == 0, report.failures

    clusters.run(main())


def test_a_root_that_was_deleted_alone_is_created_again_and_new_commits_are_deployed() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await everything_deployed(w)
            await w.sandbox.client().delete(APPS, NAME, "argocd")
            await after(1)
            text = f"{NAME}, the root Application, is created first"
            report = await deployed(w, run_id="run-2", root=ROOT)
            assert text in report.notices
            assert report.summary.exit_code == 0, report.failures
            assert (await w.sandbox.client().get(APPS, NAME, "argocd"))["spec"]["source"]["repoURL"] == URL

    clusters.run(main())
