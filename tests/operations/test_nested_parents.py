"""Parents that are nodes themselves, nested or automated: what they define moves after them, each in its turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests import builders
from tests.operations.clusters import after, begin, cluster
from tests.operations.test_parents import CHART, ROOT, deployed, planned, refresh, results
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application, config, workload
from windlass.argo.cd.root_application import NAME
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.reporting.reports import Action
from windlass.operations.plan import plan
from windlass.operations.planner import Moved, RunRequest

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.model.applications import Platform
    from windlass.sandbox.argocd.repositories import MemoryRepository

APPS = "applications.argoproj.io"
COMMIT = "{{ .Values.targetRevision }}"
OWN_COMMIT = {"parameters": [{"name": "targetRevision", "value": "$ARGOCD_APP_REVISION"}]}
SLOW = {"sandbox.windlass.dev/ready-after": "5s"}
NODES = "web: base; base: ; middle:"
"""The children of `middle` do not depend on it: only what defines them tells that they come after it."""


def pinned(name: str, **spec: Any) -> dict[str, Any]:
    body = application(name, **spec)
    body["spec"]["source"]["targetRevision"] = COMMIT
    return body


def chart(body: dict[str, Any], helm: dict[str, Any] = OWN_COMMIT) -> dict[str, Any]:
    """The Application with the parameter that pins its children."""
    body["spec"]["source"]["helm"] = helm
    return body


def files(value: str, *, own: bool = False, **policy: Any) -> dict[str, Any]:
    """The root defines `middle`, which defines `base` and `web`; each at the commit that defines it."""
    return {
        **CHART,
        "root/templates/middle.yaml": chart(pinned("middle", **policy)),
        "middle/Chart.yaml": CHART["root/Chart.yaml"],
        "middle/templates/apps.yaml": [pinned("base"), pinned("web"), *([config("own", value)] if own else [])],
        "base/all.yaml": [workload(name="base", image=f"base:{value}", annotations=SLOW)],
        "web/all.yaml": [config("web", value)],
    }


async def first(w: World, nodes: str = NODES, **options: Any) -> MemoryRepository:
    repository = await begin(w, files("1", **options))
    await w.sandbox.client().delete(APPS, "web", "argocd")
    report = await deployed(w, builders.platform(nodes), root=ROOT)
    assert report.summary.exit_code == 0, report.failures
    await after(60)
    return repository


def operations(w: World, name: str) -> list[list[str] | None]:
    """What each operation on an Application was to sync: `None` for everything."""
    found: list[list[str] | None] = []
    for change in w.sandbox.server.store.changes_since(APPS, 1000):
        asked = change.new.load().get("operation")
        before = change.old.load().get("operation") if change.old else None
        if change.new.name == name and asked and asked != before:
            rows = asked["sync"].get("resources")
            found.append(sorted(row["name"] for row in rows) if rows else None)
    return found


async def revisions(w: World, *names: str) -> set[str]:
    return {(await w.sandbox.client().get(APPS, name, "argocd"))["status"]["sync"]["revision"] for name in names}


async def assert_unchanged(w: World, platform: Platform) -> None:
    before, refreshes = w.kube.counts.writes, 1  # of the root, which follows a branch
    report = await deployed(w, platform, "run-3", root=ROOT)
    assert set(results(report).values()) == {"unchanged"}
    assert (w.kube.counts.writes - before, report.metrics.calls.refreshes) == (refreshes, refreshes)


@pytest.mark.parametrize("own", [True, False])
def test_a_parent_that_is_a_node_syncs_what_is_its_own_and_never_everything(own: bool) -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await first(w, own=own)
            assert operations(w, "middle") == [*([["own"]] if own else []), ["base"], ["web"]]

    clusters.run(main())


@pytest.mark.parametrize("nodes", [NODES, "web: base; base:"])
def test_what_moves_because_its_parent_moves_is_planned_after_it(nodes: str) -> None:
    """It looks in sync: its parent was compared at the commit before. The parent may be a node, or none."""

    async def main() -> None:
        async with clusters.world() as w:
            repository = await first(w)
            commit = repository.push(files("2"))
            await refresh(w, NAME)
            platform = builders.platform(nodes)
            steps = {step.name: (step.why, step.after) for step in (await planned(w, platform, root=ROOT)).steps}
            is_node = "middle" in nodes
            why = "argocd/middle, which defines it, is updated first"
            assert steps["base"] == (why, ("middle",) if is_node else ())
            assert steps["web"] == (why, ("base", "middle") if is_node else ("base",))
            report = await deployed(w, platform, "run-2", root=ROOT)
            assert report.summary.exit_code == 0, report.failures
            assert set(results(report).values()) == {"succeeded"}
            assert await revisions(w, "middle", "base", "web") == {commit}
            assert operations(w, "middle")[2:] == [["base"], ["web"]]
            await after(60)
            await assert_unchanged(w, platform)

    clusters.run(main())


def test_a_parent_whose_last_operation_failed_is_not_synced_for_its_children() -> None:
    """Nothing of its own is out of sync: its children are synced in their turn, and that is its next operation."""

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, files("1"), chart(application("middle")))
            operation = {"initiatedBy": {"username": "jane"}, "sync": {"revision": "nowhere"}}
            await w.sandbox.client().patch(APPS, "middle", {"operation": operation}, "argocd")
            await after(10)
            report = await deployed(w, builders.platform(NODES))
            assert report.summary.exit_code == 0, report.failures
            assert operations(w, "middle")[1:] == [["base"], ["web"]]

    clusters.run(main())


def test_an_automated_parent_is_waited_for() -> None:
    """It updates what it defines by itself, as soon as it is updated; one command suffices all the same."""
    policy: dict[str, Any] = {"syncPolicy": {"automated": {}}}

    async def main() -> None:
        async with clusters.world() as w:
            repository = await first(w, **policy)
            commit = repository.push(files("2", **policy))
            platform = builders.platform(NODES)
            report = await deployed(w, platform, "run-2", root=ROOT)
            assert report.summary.exit_code == 0, report.failures
            assert await revisions(w, "middle", "base", "web") == {commit}
            told = "argocd/middle syncs itself: it updates the definitions of base, web at once, in no order"
            assert told in report.notices
            await after(60)
            await assert_unchanged(w, platform)

    clusters.run(main())


def moving_files(value: str) -> dict[str, Any]:
    """`outer` syncs itself and defines `middle`, whose parameter pins `base` and `web` to the commit of `outer`."""
    body = application("middle")
    parameters = [{"name": "targetRevision", "value": COMMIT}]
    return {
        **{path: content for path, content in files(value).items() if not path.startswith("root/")},
        "outer/Chart.yaml": CHART["root/Chart.yaml"],
        "outer/templates/middle.yaml": chart(body, {"parameters": parameters}),
    }


async def begin_nested(w: World) -> MemoryRepository:
    outer = application("outer", syncPolicy={"automated": {"selfHeal": True}})
    repository = await begin(w, moving_files("1"), chart(outer))
    await after(60)
    return repository


@pytest.mark.parametrize("is_approved", [True, False])
def test_children_stay_at_one_commit_although_their_parent_is_changed_during_the_run(is_approved: bool) -> None:
    """Without a plan a dependent would otherwise start at a commit that its dependency does not have."""

    async def main() -> None:
        async with clusters.world() as w:
            repository = await begin_nested(w)
            platform, commit = builders.platform("web: base; base:"), repository.resolve("main")
            request = RunRequest(Action.DEPLOY, "staging", platform, Scope())
            approved = (await plan(cluster(w), request)).summary if is_approved else None
            async with asyncio.TaskGroup() as tasks:
                run = tasks.create_task(deployed(w, platform, approved_plan=approved))
                await after(3)  # `base` is being synced
                repository.push(moving_files("2"))
                await refresh(w, "outer")
            assert run.result().summary.exit_code == 0, run.result().failures
            assert await revisions(w, "base", "web") == {commit}
            parameters = (await w.sandbox.client().get(APPS, "middle", "argocd"))["spec"]["source"]["helm"]
            assert parameters != OWN_COMMIT
            assert parameters["parameters"][0]["value"] == repository.resolve("main") != commit

    clusters.run(main())


def test_a_plan_is_refused_if_the_sources_of_a_parent_have_changed_since() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            repository = await begin(w, files("1"), chart(application("middle")))
            platform = builders.platform("web: base; base:")
            approved = (await plan(cluster(w), RunRequest(Action.DEPLOY, "staging", platform, Scope()))).summary
            change = {"spec": {"source": {"helm": {"parameters": [{"name": "targetRevision", "value": "main"}]}}}}
            await w.sandbox.client().patch(APPS, "middle", change, "argocd")
            await refresh(w, "middle")
            commit = repository.resolve("main")
            assert await revisions(w, "middle") == {commit}  # the same one as in the plan
            with pytest.raises(Moved, match="base would be synced otherwise: its definition has changed"):
                await deployed(w, platform, approved_plan=approved)
            assert await w.sandbox.client().find(APPS, "base", "argocd") is None

    clusters.run(main())


def test_applications_that_define_each_other_do_not_hang() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            tree = {"base/apps.yaml": [application("web")], "web/apps.yaml": [application("base"), config("web")]}
            await begin(w, tree, application("base"), application("web"))
            await after(5)
            report = await deployed(w, builders.platform("web: base; base:"))
            assert report.summary.exit_code == 0, report.failures

    clusters.run(main())
