"""Argo CD: operations, stale health, automated sync, deletion, sources; seen through our own client."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings.applications import APPLICATIONS
from tests.sandbox.controllers.clusters import after, begin, run, world
from tests.sandbox.controllers.objects import URL, application, config, workload
from windlass.kube.client.reflectors import Reflector
from windlass.sandbox.argocd.application_specs import REFRESH_ANNOTATION, Staleness, StaleStatus
from windlass.sandbox.argocd.repositories import (
    DirectoryRepository,
    GitRepository,
    MemoryRepository,
    Repositories,
)
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.controllers.clusters import World

APPS = "applications.argoproj.io"
SYNC = {"operation": {"initiatedBy": {"username": "windlass"}, "sync": {"revision": "main"}}}
SLOW = {f"{ANNOTATION_PREFIX}ready-after": "4s"}


async def get(w: World, name: str = "web") -> dict[str, Any]:
    return await w.sandbox.client().get(APPS, name, "argocd")


async def patch(w: World, change: dict[str, Any], name: str = "web") -> None:
    await w.sandbox.client().patch(APPS, name, change, "argocd")


def shown(app: dict[str, Any]) -> tuple[str, str, str]:
    status = app["status"]
    phase = status.get("operationState", {}).get("phase", "")
    return (phase, status["sync"]["status"], status["health"]["status"])


def test_a_sync_is_seen_through_the_reflector_as_it_was_recorded() -> None:
    """Operation wanted, phase, result's revision, revision, sync, health, whether reconciled since the end."""

    async def main() -> list[tuple[Any, ...]]:
        async with world() as w:
            repository = await begin(w, {"web/all.yaml": [config(), workload(annotations=SLOW)]})
            await patch(w, SYNC)
            await after(10)
            old = repository.resolve("main")
            new = repository.push({"web/all.yaml": [config(value="2"), workload(image="web:2", annotations=SLOW)]})
            seen: list[tuple[Any, ...]] = []

            async def follow() -> None:
                async for change in Reflector(w.kube, APPLICATIONS.in_namespace("argocd"), dict).changes():
                    seen.extend([columns(change.new, {old: "old", new: "new"})] if change.new else [])

            task = w.sandbox.start(follow(), name="following")
            await after(1)
            await patch(w, SYNC)
            await after(10)
            task.cancel()
            return list(dict.fromkeys(seen))

    assert run(main()) == [
        (False, "Succeeded", "old", "old", "Synced", "Healthy", True),
        (True, "Succeeded", "old", "old", "Synced", "Healthy", True),
        (True, "Running", "old", "old", "Synced", "Healthy", False),
        (False, "Succeeded", "new", "old", "Synced", "Healthy", False),
        (False, "Succeeded", "new", "old", "OutOfSync", "Progressing", False),
        (False, "Succeeded", "new", "new", "Synced", "Progressing", True),
        (False, "Succeeded", "new", "new", "Synced", "Healthy", True),
    ]


def columns(app: dict[str, Any], names: dict[str, str]) -> tuple[Any, ...]:
    status = app["status"]
    state, sync = status["operationState"], status["sync"]
    revisions = (names[state["syncResult"]["revision"]], names[sync["revision"]])
    reconciled = status["reconciledAt"] >= state.get("finishedAt", "~")
    return ("operation" in app, state["phase"], *revisions, sync["status"], status["health"]["status"], reconciled)


@pytest.mark.parametrize(
    ("how", "revision", "reconciled"),
    [
        (Staleness.OLD_STATUS, "old", "<"),
        (Staleness.LAGGING, "new", "<"),
        (Staleness.SAME_SECOND, "new", "="),
        (Staleness.WRONG_REVISION, "neither", "="),
    ],
)
@pytest.mark.parametrize("asks", [False, True])
def test_stale_health_on_demand(how: Staleness, revision: str, reconciled: str, asks: bool) -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, {"web/all.yaml": workload(annotations=SLOW)})
            await patch(w, SYNC)
            await after(10)
            old = repository.resolve("main")
            new = repository.push({"web/all.yaml": workload(image="web:2", annotations=SLOW)})
            w.argocd.stale_statuses["web"] = StaleStatus(how, seconds=2)
            await patch(w, SYNC)
            await after(1.5)
            app = await get(w)
            assert shown(app) == ("Succeeded", "Synced", "Healthy")
            status = app["status"]
            assert {old: "old", new: "new"}.get(status["sync"]["revision"], "neither") == revision
            before = status["reconciledAt"] < status["operationState"]["finishedAt"]
            assert before == (reconciled == "<")
            if asks:
                await patch(w, {"metadata": {"annotations": {REFRESH_ANNOTATION: "normal"}}})
            await after(0.5 if asks else 2)
            app = await get(w)
            assert shown(app) == ("Succeeded", "Synced", "Progressing")
            assert app["status"]["sync"]["revision"] == new
            assert REFRESH_ANNOTATION not in app["metadata"].get("annotations", {})
            await after(5)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Healthy")

    run(main())


@pytest.mark.parametrize("wish", [SYNC, {"metadata": {"annotations": {REFRESH_ANNOTATION: "normal"}}}])
def test_a_wish_can_be_overlooked_until_the_next_write(wish: dict[str, Any]) -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"web/all.yaml": workload()})
            w.argocd.dropped_updates["web"] = 1
            await patch(w, wish)
            await after(30)
            app = await get(w)
            assert ("operation" in app) == ("operation" in wish)
            assert (REFRESH_ANNOTATION in app["metadata"].get("annotations", {})) == ("metadata" in wish)
            await patch(w, {"metadata": {"annotations": {REFRESH_ANNOTATION: "again"}}})
            await after(5)
            app = await get(w)
            assert "operation" not in app
            assert REFRESH_ANNOTATION not in app["metadata"].get("annotations", {})

    run(main())


def test_health_can_be_claimed() -> None:
    async def main() -> None:
        async with world() as w:
            w.argocd.health_overrides["web"] = "Degraded"
            await begin(w, {"web/all.yaml": config()})
            assert (await get(w))["status"]["health"]["status"] == "Degraded"

    run(main())


def test_waves_wait_for_each_other_and_a_waiting_operation_can_be_terminated() -> None:
    async def main() -> None:
        async with world() as w:
            never = workload(annotations={f"{ANNOTATION_PREFIX}ready-after": "never"})
            await begin(w, {"web/all.yaml": [never, config("later", wave=1)]})
            await patch(w, SYNC)
            await after(30)
            state = (await get(w))["status"]["operationState"]
            assert (state["phase"], state["message"]) == ("Running", "waiting for healthy state of apps/Deployment/web")
            assert await w.sandbox.client().find("configmaps", "later", "default") is None
            await patch(w, {"status": {"operationState": {"phase": "Terminating"}}})
            await after(0.1)
            app = await get(w)
            assert "operation" not in app
            state = app["status"]["operationState"]
            assert (state["phase"], state["message"]) == ("Failed", "Operation terminated")

    run(main())


def test_waves_go_on_when_healthy_and_are_taken_down_in_reverse() -> None:
    async def main() -> None:
        async with world() as w:
            gone: list[str] = []
            await begin(w, {"web/all.yaml": [workload(annotations=SLOW), config("b", wave=1), config("c", wave=2)]})
            await patch(w, SYNC)
            await after(20)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Healthy")
            for kind in ("configmaps", "deployments.apps", APPS):
                w.sandbox.server.store.listen(
                    kind, "", lambda c: gone.append(c.new.name) if c.type == "DELETED" else None
                )
            await w.sandbox.client().delete(APPS, "web", "argocd")
            await after(20)
            assert gone == ["c", "b", "web", "web"]

    run(main())


def test_a_failed_sync_is_tried_again_as_often_as_told() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"web/all.yaml": config()}, application(namespace="nowhere"))
            await patch(w, {"operation": {"sync": {}, "retry": {"limit": 2, "backoff": {"duration": "5s"}}}})
            await after(3)
            state = (await get(w))["status"]["operationState"]
            assert (state["phase"], state["retryCount"]) == ("Running", 1)
            assert "Retrying attempt #1 at" in state["message"]
            await after(30)
            state = (await get(w))["status"]["operationState"]
            assert (state["phase"], state["retryCount"]) == ("Failed", 2)
            assert state["message"].endswith('namespaces "nowhere" not found (retried 2 times).')

    run(main())


def test_a_namespace_is_made_only_if_the_operation_says_so_and_stays() -> None:
    async def main() -> None:
        async with world() as w:
            policy = {"syncOptions": ["CreateNamespace=true"]}
            await begin(w, {"web/all.yaml": config()}, application(namespace="new", syncPolicy=policy))
            await patch(w, SYNC)
            await after(3)
            assert (await get(w))["status"]["operationState"]["phase"] == "Failed"
            await patch(w, {"operation": {"sync": policy}})
            await after(3)
            rows = (await get(w))["status"]["operationState"]["syncResult"]["resources"]
            assert [(row["kind"], row["syncPhase"]) for row in rows] == [
                ("Namespace", "PreSync"),
                ("ConfigMap", "Sync"),
            ]
            await w.sandbox.client().delete(APPS, "web", "argocd")
            await after(3)
            assert await w.sandbox.client().find("namespaces", "new")

    run(main())


def test_what_is_no_longer_wanted_is_pruned_only_if_asked() -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, {"web/all.yaml": [config(), config("extra")]})
            await patch(w, SYNC)
            await after(3)
            repository.push({"web/all.yaml": config()})
            await patch(w, SYNC)
            await after(3)
            app = await get(w)
            assert app["status"]["sync"]["status"] == "OutOfSync"
            assert [row.get("requiresPruning", False) for row in app["status"]["resources"]] == [True, False]
            await patch(w, {"operation": {"sync": {"prune": True}}})
            await after(3)
            assert (await get(w))["status"]["sync"]["status"] == "Synced"
            assert await w.sandbox.client().find("configmaps", "extra", "default") is None

    run(main())


def test_a_root_chart_pins_its_children_to_its_own_commit() -> None:
    """Children move only when the root moves them, one by one."""

    async def main() -> None:
        async with world() as w:
            children = {name: application(name) for name in ("one", "two")}
            for child in children.values():
                child["spec"]["source"]["targetRevision"] = "{{ .Values.revision }}"
            files: dict[str, Any] = {f"root/templates/{name}.yaml": child for name, child in children.items()}
            files |= {"root/Chart.yaml": "name: root\n", "root/values.yaml": "revision: main\n"}
            files |= {f"{name}/config.yaml": config(name) for name in children}
            root = application("root", namespace="argocd")
            root["spec"]["source"]["helm"] = {"parameters": [{"name": "revision", "value": "$ARGOCD_APP_REVISION"}]}
            repository = await begin(w, files, root)
            first = repository.resolve("main")
            second = repository.push({**files, "other.yaml": "{}"})
            chosen = [{"group": "argoproj.io", "kind": "Application", "name": "one"}]
            await patch(w, {"operation": {"sync": {"revision": first, "resources": chosen}}}, "root")
            await after(3)
            assert (await get(w, "one"))["spec"]["source"]["targetRevision"] == first
            assert await w.sandbox.client().find(APPS, "two", "argocd") is None
            await patch(w, {"operation": {"sync": {"revision": second}}}, "root")
            await after(3)
            assert [(await get(w, name))["spec"]["source"]["targetRevision"] for name in ("one", "two")] == [second] * 2

    run(main())


def test_a_root_shows_the_health_of_its_children_only_if_told_to() -> None:
    async def main(*, told: bool) -> str:
        async with world() as w:
            w.argocd.applications_have_health = told
            child = application("child", "broken")
            files = {
                "root/child.yaml": child,
                "broken/d.yaml": workload(annotations={f"{ANNOTATION_PREFIX}ready-after": "never"}),
            }
            await begin(w, files, application("root", namespace="argocd", syncPolicy={"automated": {}}))
            await after(5)
            await patch(w, SYNC, "child")
            await after(5)
            return str((await get(w, "root"))["status"]["health"]["status"])

    assert run(main(told=False)) == "Healthy"
    assert run(main(told=True)) == "Progressing"


def test_several_sources_have_several_revisions() -> None:
    async def main() -> None:
        async with world() as w:
            sources = [{"repoURL": URL, "path": path, "targetRevision": "main"} for path in ("one", "two")]
            app = application()
            del app["spec"]["source"]
            app["spec"]["sources"] = sources
            repository = await begin(w, {"one/a.yaml": config("a"), "two/b.yaml": config("b")}, app)
            commits = [repository.resolve("main")] * 2
            await patch(w, {"operation": {"sync": {"sources": sources, "revisions": commits}}})
            await after(3)
            status = (await get(w))["status"]
            assert status["sync"]["revisions"] == status["operationState"]["syncResult"]["revisions"] == commits
            assert status["sync"]["comparedTo"]["sources"] == sources
            assert shown({"status": status}) == ("Succeeded", "Synced", "Healthy")

    run(main())


def test_tracking_by_label_and_health_of_resources() -> None:
    async def main() -> None:
        async with world() as w:
            w.argocd.tracks_by_label = w.argocd.persists_health = True
            await begin(w, {"web/all.yaml": workload()}, application(syncPolicy={"automated": {"selfHeal": True}}))
            await after(5)
            assert (await get(w))["status"]["resources"][0]["health"] == {"status": "Healthy"}
            await w.sandbox.client().delete("deployments.apps", "web", "default")
            await after(5)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Healthy")

    run(main())


@pytest.mark.parametrize("kind", ["directory", "git"])
def test_manifests_from_a_directory_or_a_repository(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "repository"
    (folder / "web").mkdir(parents=True)
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {day: '2030-01-01'}\n---\n"
    (folder / "web" / "all.yaml").write_text(text + text.replace("one", "two"))
    if kind == "git":
        git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@test.invalid"]
        for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
            subprocess.run([*git, *words], check=True)

    async def main() -> None:
        async with world() as w:
            app = application()
            app["spec"]["source"]["repoURL"] = str(folder)
            await begin(w, {}, app)
            await patch(w, SYNC)
            await after(3)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Healthy")
            assert len((await get(w))["status"]["sync"]["revision"]) == 40
            found = w.argocd.repositories[str(folder)]
            assert isinstance(found, GitRepository if kind == "git" else DirectoryRepository)
            first, again = (w.argocd.repositories.resolve_sources([app["spec"]["source"]], [])[1] for _ in range(2))
            assert [id(item) for item in first] == [id(item) for item in again]  # rendered once

    run(main())


def test_a_chart_that_is_pushed_again_under_its_version_is_rendered_again() -> None:
    repositories = Repositories()
    repositories[URL] = repository = MemoryRepository()
    source = {"repoURL": URL, "path": "web", "targetRevision": "1.0.0"}
    for name in ("one", "two"):
        repository.push({"web/all.yaml": config(name)}, version="1.0.0")
        assert [item["metadata"]["name"] for item in repositories.resolve_sources([source], [])[1]] == [name]
