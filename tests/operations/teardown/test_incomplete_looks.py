"""Unknown is not empty: what cannot be listed counts as present, and each deletion has a look of its own."""

from __future__ import annotations

import pytest

from tests.operations.clusters import APPS, after
from tests.operations.teardown.teardowns import OWN, Stand, pod_of, stand
from tests.operations.teardown.test_cleanup import DEFINITIONS, NAMESPACES, create_widget, definition, once_deleted
from tests.operations.teardown.test_foreign_objects import WIDGETS, carrying
from tests.operations.teardown.test_problems import FREE, refused
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import application
from windlass.sandbox.apiserver.faults import Fault

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"}}


@pytest.mark.parametrize("code", [403, 500])
def test_a_definition_stays_whose_objects_cannot_be_listed(code: int) -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            await w.sandbox.client().create(DEFINITIONS, definition("web"))
            await after(1)
            fault = Fault(verb="list", kind="widgets.example.com", code=code, times=None)
            once_deleted(s, "web", create_widget(w), lambda: w.sandbox.server.faults.add(fault))
            report = await s.torn_down()
            assert report.summary.exit_code == 2
            assert "kept, because its objects could not be listed: injected fault" in report.removal.orphans[0]
            assert await s.find("widgets.example.com", "mine", "default")

    run(main())


def test_a_definition_that_gets_an_object_at_the_last_moment_stays() -> None:
    """The object is created after everything was listed, before the definition would be deleted."""

    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            await w.sandbox.client().create(DEFINITIONS, definition("web"))
            await after(1)
            w.sandbox.server.faults.add(
                Fault(verb="get", kind=DEFINITIONS, name="widgets.example.com", latency=5.0, skip=1, times=1)
            )
            once_deleted(s, "web", create_widget(w, wait=3))
            report = await s.torn_down()
            assert report.summary.exit_code == 2
            assert await s.find("widgets.example.com", "mine", "default")

    run(main())


@pytest.mark.parametrize(("code", "is_foreign"), [(403, True), (500, False), (0, False)])
def test_a_namespace_stays_whose_contents_cannot_be_listed(code: int, is_foreign: bool) -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web", web=pod_of("web"))
            s.apps["web"] = application("web", namespace="own", **OWN)
            await s.deployed()
            if is_foreign:
                await w.sandbox.client().create("secrets", {"metadata": {"name": "guest"}}, "own")
            if code:
                w.sandbox.server.faults.add(Fault(verb="list", kind="secrets", code=code, times=None))
            report = await s.torn_down()
            assert report.summary.exit_code == (2 if code else 0), (report.failures, report.removal)
            assert ("own" in await s.names(NAMESPACES)) is bool(code)
            if code:
                (line,) = report.removal.orphans
                assert line == "Namespace own: kept, because what is in it could not be listed: secrets own"

    run(main())


def test_a_namespace_that_is_older_than_what_deploys_to_it_stays() -> None:
    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().create(NAMESPACES, {"metadata": {"name": "own"}})
            await after(5)
            s = stand(w, "web")
            s.apps["web"] = application("web", namespace="own", **OWN)
            await s.deployed()
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert report.removal.retained == ("Namespace own: it is older than every Application that deploys to it",)
            assert "own" in await s.names(NAMESPACES)

    run(main())


def test_kinds_that_nobody_lets_us_look_at_are_told() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            w.sandbox.server.faults.add(Fault(verb="list", kind="secrets", code=403, reason="Forbidden", times=None))
            report = await s.torn_down()
            assert report.summary.exit_code == 0
            assert any("secrets" in str(event) and "could not be listed" in str(event) for event in s.events)

    run(main())


def test_objects_that_we_may_not_list_are_read_one_by_one() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            w.sandbox.server.faults.add(refused("list", "configmaps"))
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert [each.evidence and each.evidence.is_directly_verified for each in report.components] == [True]
            assert await s.find("configmaps", "web", "default") is None

    run(main())


def test_what_we_may_not_read_is_not_said_to_be_gone_and_not_deleted() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; other", other=[SECRET])
            await s.deployed()
            for verb in ("list", "get"):
                w.sandbox.server.faults.add(refused(verb, "configmaps"))
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert [(each.name, each.reason) for each in report.failures] == [("web", "Unreadable")]
            assert "ConfigMap default/web: injected fault: Forbidden" in report.failures[0].detail
            assert s.deleted() == ["platform-root", "other"]

    run(main())


@pytest.mark.parametrize(("times", "code"), [(40, 0), (None, 1)])
def test_no_gate_opens_while_objects_cannot_be_listed(times: int | None, code: int) -> None:
    """A server error is waited for, as long as the node may take."""

    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api", api=[SECRET])
            await s.deployed()
            faults = w.sandbox.server.faults
            once_deleted(s, "web", after(0), lambda: [faults.add(failing(verb, times)) for verb in ("list", "get")])
            held = {"metadata": {"finalizers": ["example.org/held"]}}
            await w.sandbox.client().patch("configmaps", "web", held, "default")
            w.sandbox.start(_freed(s), name="its controller")
            report = await s.torn_down()
            assert report.summary.exit_code == code, (report.failures, report.removal)
            assert ("api" in await s.names(APPS)) is bool(code)
            if code:
                assert "ConfigMap default/web: injected fault: InternalError" in report.failures[0].detail

    async def _freed(s: Stand) -> None:
        await after(10)
        await s.world.sandbox.client().patch(APPS, "web", FREE, "argocd")
        await after(10)
        await s.world.sandbox.client().patch("configmaps", "web", FREE, "default")

    def failing(verb: str, times: int | None) -> Fault:
        return Fault(verb=verb, kind="configmaps", code=500, times=times)

    run(main())


def test_objects_whose_kind_is_served_in_another_version_now_are_not_gone() -> None:
    """`web` was deleted without its object, which a finalizer holds; another client changes the served versions."""

    async def main() -> None:
        async with world() as w:
            s, calls = await carrying(w), w.sandbox.client()
            await calls.patch(WIDGETS, "web", {"metadata": {"finalizers": ["example.com/held"]}}, "own")
            for name in ("platform-root", "web"):
                await calls.patch(APPS, name, {"metadata": {"finalizers": None}}, "argocd")
                await calls.delete(APPS, name, "argocd")

            async def change_versions() -> None:
                (old,) = (await calls.get(DEFINITIONS, WIDGETS))["spec"]["versions"]
                new = {**old, "name": "v2", "storage": False}
                await calls.patch(DEFINITIONS, WIDGETS, {"spec": {"versions": [{**old, "served": False}, new]}})

            once_deleted(s, "other", change_versions())
            report = await s.torn_down()
            assert [(each.name, each.reason) for each in report.failures] == [("web", "Present")]
            assert "base" in await s.names(APPS)

    run(main())
