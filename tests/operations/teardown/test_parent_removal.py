"""Who would make again what is removed: detached first and alone, or the removal is refused before any write."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operations.clusters import APPS, after, cluster
from tests.operations.teardown.teardowns import AUTOMATED, Stand, Witness, pod_of, stand
from tests.sandbox.controllers.clusters import World, run, world
from tests.sandbox.controllers.objects import CASCADE, URL, application, config
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.reporting.reports import Action
from windlass.operations import plan as plan_operation
from windlass.operations.planner import RunRequest
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.repositories import MemoryRepository

SETS = "applicationsets.argoproj.io"


async def parented(w: World, text: str, children: dict[str, list[str]], extra: dict[str, Any] | None = None) -> Stand:
    """Applications that define others, all of them self-healing."""
    s = stand(w, text)
    alone = sorted(set(s.platform.graph.names) - children.keys())
    files: dict[str, Any] = {f"{name}/all.yaml": config(name) for name in alone}
    for parent, names in children.items():
        files[f"{parent}/all.yaml"] = [application(name, **AUTOMATED) for name in names]
    files |= extra or {}
    w.argocd.repositories[URL] = MemoryRepository(files)
    below = {name for names in children.values() for name in names}
    for parent in children:
        if parent not in below:
            await w.sandbox.client().create(APPS, application(parent, namespace="argocd", **AUTOMATED))
    await after(30)
    return s


def test_a_self_healing_parent_goes_first_and_alone() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web: api", {"apps": ["web", "api"]})
            assert await s.names(APPS) == ["api", "apps", "web"]
            witness = Witness(s)
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal, report.unmet)
            assert s.deleted() == ["apps", "web", "api"]
            assert witness.deleted_too_early() == []
            await after(600)
            assert await s.names(APPS) == []

    run(main())


@pytest.mark.parametrize(("scope", "stranger"), [("app:web", "api"), ("platform", "other")])
def test_a_self_healing_parent_of_more_than_is_meant_stands_in_the_way(scope: str, stranger: str) -> None:
    async def main() -> None:
        async with world() as w:
            children = {"apps": sorted({"web", "api", stranger})}
            s = await parented(w, "web; api", children, {"other/all.yaml": config("other")})
            report = await s.torn_down(scope)
            assert report.summary.exit_code == 1
            (unmet,) = report.unmet
            assert unmet.name == "Application argocd/apps (argoproj.io)"
            assert "would recreate them" in unmet.why
            assert f"Application argocd/{stranger} (argoproj.io)" in unmet.why
            assert s.writes() == []

    run(main())


@pytest.mark.parametrize(("scope", "code", "notices", "in_the_way"), [("platform", 0, 1, 0), ("app:web", 1, 0, 1)])
def test_the_plan_names_parents_that_would_go_or_stand_in_the_way(
    scope: str, code: int, notices: int, in_the_way: int
) -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web; api", {"apps": ["web", "api"]})
            wish = RunRequest(Action.TEARDOWN, "development", s.platform, parse_scope(scope))
            report = (await plan_operation.plan(cluster(w), wish)).report
            assert (report.summary.exit_code, len(report.notices), len(report.unmet)) == (code, notices, in_the_way)
            told = (*report.notices, *(each.name for each in report.unmet))
            assert told[0].startswith("Application argocd/apps (argoproj.io)")
            assert s.writes() == []

    run(main())


def test_a_parent_that_only_acts_when_asked_is_in_nobodys_way() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web; api", {"apps": ["web", "api"]})
            await w.sandbox.client().patch(APPS, "apps", {"spec": {"syncPolicy": None}}, "argocd")
            await after(5)
            report = await s.torn_down("app:web")
            assert report.summary.exit_code == 0
            assert await s.names(APPS) == ["api", "apps"]

    run(main())


@pytest.mark.parametrize("heals", [True, False])
def test_a_parent_that_is_a_node_goes_first_if_it_heals_else_after_what_it_defines(heals: bool) -> None:
    async def main() -> None:
        async with world() as w:
            extra = {"all/own.yaml": [config("own"), *pod_of("own-pod")]}
            s = await parented(w, "web: api; api; all", {"all": ["web", "api"]}, extra)
            if not heals:
                await w.sandbox.client().patch(APPS, "all", {"spec": {"syncPolicy": None}}, "argocd")
                await after(1)
            witness = Witness(s)
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal, report.unmet)
            assert s.deleted() == (["all", "web", "api"] if heals else ["web", "api", "all"])
            assert [name for name in await s.names("configmaps") if not name.startswith("kube-")] == []
            assert await s.names("deployments.apps") == []
            assert witness.deleted_too_early() == []
            assert witness.gone.keys() == {"all", "web", "api"}

    run(main())


def test_a_node_that_defines_what_is_outside_the_scope_is_not_removed() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web; all", {"all": ["web"]})
            report = await s.torn_down("app:all")
            assert report.summary.exit_code == 1
            assert "would also delete Application argocd/web (argoproj.io)" in report.unmet[0].why
            assert s.writes() == []

    run(main())


def test_parents_of_parents_go_from_the_top() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web; api", {"top": ["middle"], "middle": ["web", "api"]})
            assert await s.names(APPS) == ["api", "middle", "top", "web"]
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal, report.unmet)
            assert s.deleted()[:2] == ["top", "middle"]
            await after(600)
            assert await s.names(APPS) == []

    run(main())


def test_applications_below_a_node_that_are_no_nodes_go_with_all_they_made() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "apps", {"apps": ["web"]}, {"web/all.yaml": pod_of("web")})
            await w.sandbox.client().patch(APPS, "web", {"metadata": {"finalizers": None}}, "argocd")
            await after(5)
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.names(APPS) == []
            assert await s.names("deployments.apps") == []

    run(main())


async def set_of(w: World, text: str) -> Stand:
    """All nodes are made by one ApplicationSet, which makes them again when they are gone."""
    s = stand(w, text)
    w.argocd.repositories[URL] = MemoryRepository({f"{name}/all.yaml": config(name) for name in s.platform.graph.names})
    child = application("{{name}}", **AUTOMATED)
    spec = {
        "generators": [{"list": {"elements": [{"name": name} for name in s.platform.graph.names]}}],
        "template": {"metadata": {"name": "{{name}}"}, "spec": child["spec"]},
    }
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
    await w.sandbox.client().create(SETS, {**head, "metadata": {"name": "many", "namespace": "argocd"}, "spec": spec})
    await after(15)
    assert await s.names(APPS) == sorted(s.platform.graph.names)
    return s


def test_a_set_that_is_wholly_meant_goes_first_and_leaves_its_applications() -> None:
    async def main() -> None:
        async with world() as w:
            s = await set_of(w, "web: api; api: db")
            witness = Witness(s)
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal, report.unmet)
            assert await s.find(SETS, "many", "argocd") is None
            assert next((entry.kind, entry.name) for entry in s.writes() if entry.verb == "delete") == (SETS, "many")
            assert s.deleted() == ["web", "api", "db"]
            assert witness.deleted_too_early() == []
            await after(600)
            assert await s.names(APPS) == []

    run(main())


def test_a_set_of_more_than_is_meant_stands_in_the_way() -> None:
    async def main() -> None:
        async with world() as w:
            s = await set_of(w, "web; api")
            report = await s.torn_down("app:web")
            assert report.summary.exit_code == 1
            assert [each.name for each in report.unmet] == ["ApplicationSet argocd/many (argoproj.io)"]
            assert s.writes() == []

    run(main())


def test_a_parent_that_cannot_be_removed_ends_the_run_before_anything_else_goes() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web", {"apps": ["web"]})
            change = {"metadata": {"finalizers": [CASCADE, "example.org/held"]}}
            await w.sandbox.client().patch(APPS, "apps", change, "argocd")
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert "could not be removed: it still exists after 60 s" in report.notices[-1]
            assert "example.org/held" in report.notices[-1]
            assert "web" in await s.names(APPS)

    run(main())


def test_a_parent_that_moves_meanwhile_is_detached_all_the_same() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web", {"apps": ["web"]})
            w.sandbox.server.faults.add(Fault(verb="patch", kind=APPS, name="apps", code=409, times=3))
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)

    run(main())
