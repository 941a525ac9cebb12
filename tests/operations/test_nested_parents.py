"""Parents that are nodes themselves, nested or automated: what they define moves after them, each in its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import builders
from tests.operations.clusters import after, begin
from tests.operations.test_parents import CHART, ROOT, deployed, planned, refresh, results
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application, config, workload
from windlass.argo.cd.root_application import NAME

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.model.applications import Platform
    from windlass.sandbox.argocd.repositories import MemoryRepository

APPS = "applications.argoproj.io"
COMMIT = "$ARGOCD_APP_REVISION"
SLOW = {"sandbox.windlass.dev/ready-after": "5s"}
NODES = "web: base; base: ; middle:"
"""The children of `middle` do not depend on it: only what defines them tells that they come after it."""


def pinned(name: str, **spec: Any) -> dict[str, Any]:
    body = application(name, **spec)
    body["spec"]["source"]["targetRevision"] = COMMIT
    return body


def files(value: str, *, own: bool = False, **policy: Any) -> dict[str, Any]:
    """The root defines `middle`, which defines `base` and `web`; each at the commit that defines it."""
    return {
        **CHART,
        "root/templates/middle.yaml": pinned("middle", **policy),
        "middle/apps.yaml": [pinned("base"), pinned("web"), *([config("own", value)] if own else [])],
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
            await begin(w, files("1"), application("middle"))
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


def test_applications_that_define_each_other_do_not_hang() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            tree = {"base/apps.yaml": [application("web")], "web/apps.yaml": [application("base"), config("web")]}
            await begin(w, tree, application("base"), application("web"))
            await after(5)
            report = await deployed(w, builders.platform("web: base; base:"))
            assert report.summary.exit_code == 0, report.failures

    clusters.run(main())
