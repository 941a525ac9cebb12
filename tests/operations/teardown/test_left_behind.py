"""An Application that was deleted without cascade counts by its objects: they block, and go in their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.clusters import APPS, after
from tests.operations.teardown.teardowns import AUTOMATED, Stand, Witness, pod_of, stand
from tests.operations.teardown.test_cleanup import DEFINITIONS
from tests.operations.teardown.test_problems import FREE, LEASES, refused
from tests.sandbox.controllers.clusters import World, run, world
from tests.sandbox.controllers.objects import URL, application
from windlass.core.platform.outcomes import Result
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.repositories import MemoryRepository

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.store import StoreChange

DEPLOYMENTS = "deployments.apps"


async def orphaned(w: World, *, by_label: bool = False) -> Stand:
    """`web` runs, and its Application is gone."""
    w.argocd.tracks_by_label = by_label
    s = stand(w, "top: web; web: api; api: db", web=pod_of("web"))
    await s.deployed()
    for name in ("top", "web"):
        if name == "web":
            await w.sandbox.client().patch(APPS, name, FREE, "argocd")
        await w.sandbox.client().delete(APPS, name, "argocd")
        await after(10)
    assert await s.names(DEPLOYMENTS) == ["web"]
    return s


@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("scope", ["app:api", "app:db"])
def test_objects_of_a_dependent_block_a_scope_as_the_dependent_does(scope: str, by_label: bool) -> None:
    async def main() -> None:
        async with world() as w:
            s = await orphaned(w, by_label=by_label)
            before = len(s.writes())
            report = await s.torn_down(scope)
            assert report.summary.exit_code == 1
            why = {each.name: each.why for each in report.unmet}
            if scope == "app:api":
                assert why == {
                    "web": (
                        "still depends on it: "
                        "its Application is gone, but ConfigMap default/web, Deployment default/web (apps) still exists"
                    )
                }
            assert len(s.writes()) == before

    run(main())


@pytest.mark.parametrize("scope", ["platform", "app:web"])
def test_what_is_left_of_a_node_goes_in_its_turn(scope: str) -> None:
    async def main() -> None:
        async with world() as w:
            s = await orphaned(w)
            gone: list[str] = []

            def notice(change: StoreChange) -> None:
                if change.type == "DELETED":
                    gone.append(f"{change.new.kind_id} {change.new.name}")

            for kind in (APPS, DEPLOYMENTS, "pods"):
                w.sandbox.server.store.listen(kind, "", notice)
            report = await s.torn_down(scope)
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            results = {each.name: each.result for each in report.components}
            assert results["web"] is Result.SUCCEEDED
            assert await s.names(DEPLOYMENTS) == []
            if scope == "platform":
                assert gone.index(f"{DEPLOYMENTS} web") < gone.index(f"{APPS} api")
                assert not [line for line in gone[gone.index(f"{APPS} api") :] if line.startswith("pods")]
            else:
                assert await s.names(APPS) == ["api", "db", "platform-root"]

    run(main())


def test_an_application_that_vanishes_after_the_plan_is_removed_with_what_it_left() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api", web=pod_of("web"))
            await s.deployed()

            def vanish(change: StoreChange) -> None:
                if (change.type, change.new.name) == ("DELETED", "platform-root"):
                    forget()
                    w.sandbox.start(_orphan(), name="another client")

            async def _orphan() -> None:
                await w.sandbox.client().patch(APPS, "web", FREE, "argocd")
                await w.sandbox.client().delete(APPS, "web", "argocd")

            forget = w.sandbox.server.store.listen(APPS, "", vanish)
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.names(DEPLOYMENTS) == []

    run(main())


@pytest.mark.parametrize("code", [403, 500])
def test_a_dependent_counts_as_present_if_not_everything_can_be_listed(code: int) -> None:
    """The Deployment of `web` still runs; nothing but the list of that kind would show it."""

    async def main() -> None:
        async with world() as w:
            s = await orphaned(w)
            await w.sandbox.client().delete("configmaps", "web", "default")
            w.sandbox.server.faults.add(Fault(verb="list", kind=DEPLOYMENTS, code=code, reason="Forbidden", times=None))
            before = len(s.writes())
            for report in (await s.torn_down("app:api"), await s.foretold(scope="app:api")):
                assert report.summary.exit_code == 1, (report.failures, report.removal)
                (unmet,) = report.unmet
                assert (unmet.name, unmet.needed_by, unmet.is_known) == ("web", ("api",), False)
                assert unmet.why.startswith(
                    "may still depend on it: its Application is gone, but its objects could not be listed: "
                    "deployments.apps (injected fault"
                )
                advice = {each.detected: each.command for each in report.recommendations}
                assert advice["NotVerified"] == "windlass rbac --for teardown"
            assert len(s.writes()) == before

    run(main())


@pytest.mark.parametrize("unlisted", ["secrets", DEFINITIONS])
def test_what_cannot_be_listed_blocks_only_where_a_dependent_may_have_such_objects(unlisted: str) -> None:
    """A definition alone does not make a dependent present, nor does anything if all dependents have Applications."""

    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; api: db")
            await s.deployed()
            if unlisted == DEFINITIONS:
                assert (await s.torn_down("app:web")).summary.exit_code == 0
            w.sandbox.server.faults.add(refused("list", unlisted))
            report = await s.torn_down("app:api" if unlisted == DEFINITIONS else "app:web")
            assert (report.unmet, report.summary.exit_code) == ((), 0), (report.failures, report.removal)

    run(main())


def test_a_parent_that_comes_before_the_lock_is_held_stands_in_the_way() -> None:
    """It would create `web` again, and cannot be deleted, for it defines `api` as well."""

    async def main() -> None:
        async with world() as w:
            s = stand(w, "web; api")
            await s.deployed()
            await w.sandbox.client().patch(LEASES, "windlass", {"spec": {"holderIdentity": "dead"}}, "argocd")
            w.sandbox.start(_made(w), name="another client")
            report = await s.torn_down("app:web")
            assert report.summary.exit_code == 1
            assert [each.name for each in report.unmet] == ["Application argocd/apps (argoproj.io)"]
            assert s.deleted() == []

    async def _made(w: World) -> None:
        await after(5)
        files = [application(name) for name in ("web", "api")]
        repository = w.argocd.repositories[URL]
        assert isinstance(repository, MemoryRepository)
        repository.push({"apps/all.yaml": files})
        await w.sandbox.client().create(APPS, application("apps", namespace="argocd", **AUTOMATED))

    run(main())


def test_nodes_that_a_gone_parent_defined_go_in_their_own_turn() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "apps: ; web: db", web=pod_of("web"), db=pod_of("db"))
            await s.deployed()
            await w.sandbox.client().patch(APPS, "apps", FREE, "argocd")
            await w.sandbox.client().delete(APPS, "apps", "argocd")
            for name in ("web", "db"):
                mark = {"argocd.argoproj.io/tracking-id": f"apps:argoproj.io/Application:argocd/{name}"}
                await w.sandbox.client().patch(APPS, name, {"metadata": {"annotations": mark}}, "argocd")
            await after(10)
            witness = Witness(s)
            report = await s.torn_down()
            assert report.summary.exit_code == 0, report.failures
            assert [name for name in s.deleted() if name in {"web", "db"}] == ["web", "db"]
            assert not witness.deleted_too_early()

    run(main())
