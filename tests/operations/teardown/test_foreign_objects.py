"""What is not the platform's is not destroyed with it: a node that would do so is left alone, unless it may."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operations.clusters import APPS, after
from tests.operations.teardown.teardowns import AUTOMATED, Stand, pod_of, stand
from tests.operations.teardown.test_cleanup import DEFINITIONS, NAMESPACES, definition, once_deleted
from tests.operations.teardown.test_parent_removal import parented
from tests.sandbox.controllers.clusters import World, run, world
from tests.sandbox.controllers.objects import URL, application, config
from windlass.core.platform.outcomes import Result
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.repositories import MemoryRepository

WIDGETS = "widgets.example.com"
KEPT = {"argocd.argoproj.io/sync-options": "Delete=false"}


def widget(name: str, **meta: Any) -> dict[str, Any]:
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    return {**head, "metadata": {"name": name, "namespace": "own", **meta}}


def manifest(body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **body}


async def carrying(w: World, annotations: dict[str, str] | None = None) -> Stand:
    """`base` carries a definition and a namespace, `web` an object of that kind in it and a workload with a Service."""
    crd = manifest(definition("base"))
    crd["metadata"] = {"name": crd["metadata"]["name"], "annotations": annotations or {}}
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own", "annotations": annotations or {}}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    s = stand(w, "web: base; base: below; other", base=[place, crd], web=[widget("web"), service, *pod_of("web")])
    s.apps["web"] = application("web", namespace="own")
    await s.deployed()
    return s


def test_what_belongs_to_the_platform_by_mark_or_owner_is_not_foreign() -> None:
    async def main() -> None:
        async with world() as w:
            s = await carrying(w)
            owner = await w.sandbox.client().get(WIDGETS, "web", "own")
            reference = {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "name": "web",
                "uid": owner["metadata"]["uid"],
            }
            made = config("made")
            made["metadata"]["ownerReferences"] = [reference]
            await w.sandbox.client().create("configmaps", made, "own")
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert "own" not in await s.names(NAMESPACES)
            assert WIDGETS not in await s.names(DEFINITIONS)

    run(main())


FOREIGN = {
    "an object in the namespace": ("secrets", {"metadata": {"name": "guest"}}, "Secret own/guest"),
    "an object of the kind": (WIDGETS, widget("mine"), "Widget own/mine (example.com)"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_node_that_would_destroy_foreign_objects_is_left_alone(case: str) -> None:
    kind, body, name = FOREIGN[case]

    async def main() -> None:
        async with world() as w:
            s = await carrying(w)
            await w.sandbox.client().create(kind, body, "own")
            foretold = await s.foretold()
            assert any(
                "base would be left alone (ForeignObjects)" in line and name in line for line in foretold.notices
            )
            report = await s.torn_down()
            assert report.summary.exit_code == 2, (report.failures, report.removal)
            (failure,) = report.failures
            assert (failure.name, failure.reason, failure.blocks) == ("base", "ForeignObjects", ("below",))
            assert name in failure.detail
            assert failure.diagnostics == (f"{name} is not managed by an application that is removed",)
            assert {each.name: each.result for each in report.components} == {
                "web": Result.SUCCEEDED,
                "other": Result.SUCCEEDED,
                "base": Result.FAILED,
                "below": Result.SKIPPED,
            }
            assert await s.find(kind, body["metadata"]["name"], "own")
            assert await s.names(APPS) == ["base", "below"]
            assert s.deleted() == ["platform-root", "other", "web"] or s.deleted() == ["platform-root", "web", "other"]

    run(main())


def test_what_helm_installed_and_argocd_never_synced_is_not_deleted() -> None:
    """Helm labels its objects with the name of the release, as Argo CD does if it tracks by label."""

    async def main() -> None:
        async with world() as w:
            s, installed = stand(w, "web"), config("web")
            installed["metadata"]["labels"] = {"app.kubernetes.io/instance": "web"}
            await w.sandbox.client().create("configmaps", installed, "default")
            w.argocd.repositories[URL] = MemoryRepository(s.files())
            await w.sandbox.client().create(APPS, application("web"))
            await after(5)
            report = await s.torn_down()
            assert [(each.name, each.reason) for each in report.failures] == [("web", "Present")]
            assert await s.find("configmaps", "web", "default")
            assert s.deleted("configmaps") == []

    run(main())


def test_a_foreign_custom_resource_of_the_kind_event_is_not_taken_for_an_event() -> None:
    async def main() -> None:
        async with world() as w:
            s = await carrying(w)
            crd = definition("nobody", "Event")
            crd["metadata"].pop("annotations")
            await w.sandbox.client().create(DEFINITIONS, crd)
            body = {"apiVersion": "example.com/v1", "kind": "Event", "metadata": {"name": "guest"}}
            await w.sandbox.client().create("events.example.com", body, "own")
            report = await s.torn_down()
            assert [(each.name, each.reason) for each in report.failures] == [("base", "ForeignObjects")]
            assert await s.find("events.example.com", "guest", "own")

    run(main())


@pytest.mark.parametrize("kind", ["secrets", WIDGETS])
@pytest.mark.parametrize("code", [403, 500])
def test_what_cannot_be_listed_counts_as_foreign(kind: str, code: int) -> None:
    async def main() -> None:
        async with world() as w:
            s = await carrying(w)
            await w.sandbox.client().create("secrets", {"metadata": {"name": "guest"}}, "own")
            await w.sandbox.client().create(WIDGETS, widget("mine"), "own")
            for each in ("secrets", WIDGETS):
                w.sandbox.server.faults.add(Fault(verb="list", kind=each, code=code, times=None))
            report = await s.torn_down()
            assert report.summary.exit_code == 2, (report.failures, report.removal)
            assert [(each.name, each.reason) for each in report.failures] == [("base", "ForeignObjects")]
            assert "could not be listed" in report.failures[0].detail
            assert any(
                "may contain objects of others: injected fault" in line for line in report.failures[0].diagnostics
            )
            assert await s.find(kind, "guest" if kind == "secrets" else "mine", "own")

    run(main())


def test_a_look_that_fails_for_a_moment_is_repeated() -> None:
    async def main() -> None:
        async with world() as w:
            s = await carrying(w)
            w.sandbox.server.faults.add(Fault(verb="list", kind="secrets", namespace="own", code=500, times=20))
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)

    run(main())


@pytest.mark.parametrize(("verb", "kind"), [("delete", APPS), ("list", "persistentvolumes")])
def test_each_attempt_of_a_delete_is_preceded_by_a_look(verb: str, kind: str) -> None:
    """The server fails for a while after the first look; meanwhile another client creates an object."""

    async def main() -> None:
        async with world() as w:
            s = await carrying(w)

            async def create() -> None:
                await after(20)
                await w.sandbox.client().create("secrets", {"metadata": {"name": "guest"}}, "own")

            def fail() -> None:
                w.sandbox.server.faults.add(Fault(verb=verb, kind=kind, code=503, times=60))

            once_deleted(s, "web", create(), fail)
            report = await s.torn_down()
            assert [(each.name, each.reason) for each in report.failures] == [("base", "ForeignObjects")]
            assert await s.find("secrets", "guest", "own")

    run(main())


def test_foreign_objects_go_with_a_node_that_may_destroy_them() -> None:
    async def main() -> None:
        async with world() as w:
            s = await carrying(w)
            for kind, body, _ in FOREIGN.values():
                await w.sandbox.client().create(kind, body, "own")
            outside = {**widget("outside"), "metadata": {"name": "outside"}}
            await w.sandbox.client().create(WIDGETS, outside, "default")
            assert not any("left alone" in line for line in (await s.foretold(foreign=("base",))).notices)
            report = await s.torn_down(foreign=("base",))
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert "own" not in await s.names(NAMESPACES)
            assert WIDGETS not in await s.names(DEFINITIONS)

    run(main())


def test_what_is_marked_to_be_kept_destroys_nothing() -> None:
    async def main() -> None:
        async with world() as w:
            s = await carrying(w, KEPT)
            for kind, body, _ in FOREIGN.values():
                await w.sandbox.client().create(kind, body, "own")
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.find("secrets", "guest", "own")
            assert await s.find(WIDGETS, "mine", "own")

    run(main())


def test_a_scope_does_not_destroy_what_belongs_to_the_rest_of_the_platform() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "base; web", base=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}}])
            await w.sandbox.client().create(NAMESPACES, {"metadata": {"name": "own"}})
            s.apps["web"] = application("web", namespace="own")
            await s.deployed()
            report = await s.torn_down("app:base")
            assert report.summary.exit_code == 2, (report.failures, report.removal)
            assert "ConfigMap own/web" in report.failures[0].detail
            assert await s.names(APPS) == ["base", "platform-root", "web"]

    run(main())


def test_applications_below_a_node_do_not_make_their_objects_foreign() -> None:
    async def main() -> None:
        async with world() as w:
            place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}}
            s = stand(w, "apps", apps=[place, application("child", namespace="own", **AUTOMATED)])
            s.extra["child/all.yaml"] = [config("child")]
            await s.deployed()
            await after(30)
            assert await s.find("configmaps", "child", "own")
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert "own" not in await s.names(NAMESPACES)

    run(main())


def test_a_parent_that_must_go_first_and_would_destroy_foreign_objects_ends_the_run() -> None:
    async def main() -> None:
        async with world() as w:
            place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}}
            s = await parented(w, "web; all", {"all": ["web"]}, {"all/own.yaml": place})
            await w.sandbox.client().create("secrets", {"metadata": {"name": "guest"}}, "own")
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert (
                "all must be removed first, and would destroy foreign objects: Secret own/guest" in report.notices[-1]
            )
            assert s.deleted() == []
            assert (await s.torn_down(foreign=("all",))).summary.exit_code == 0

    run(main())
