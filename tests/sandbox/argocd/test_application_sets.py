"""ApplicationSets and roots: parents that make their children again, and how each is detached from them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.controllers.clusters import after, begin, run, world
from tests.sandbox.controllers.objects import CASCADE, URL, application, config
from windlass.sandbox.apiserver.requests import RequestOptions
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.argocd.repositories import MemoryRepository

APPS, SETS = "applications.argoproj.io", "applicationsets.argoproj.io"
ELEMENTS = [{"name": "one", "values": {"team": "red"}}, {"name": "two", "values": {"team": "blue"}}]
FILES = {f"apps/{name}/c.yaml": config(name) for name in ("one", "two")}


def application_set(*generators: dict[str, Any], name: str = "{{name}}", **spec: Any) -> dict[str, Any]:
    child = application(name, "apps/" + name, syncPolicy={"automated": {}})
    meta = {"name": child["metadata"]["name"], "labels": {"team": "{{ .values.team }}"}}
    generators = generators or ({"list": {"elements": ELEMENTS}},)
    template = {"metadata": meta, "spec": child["spec"]}
    body = {"generators": list(generators), "template": template, **spec}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
    return {**head, "metadata": {"name": "all", "namespace": "argocd"}, "spec": body}


def test_a_list_becomes_applications_with_an_owner_and_a_finalizer() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, FILES, application_set())
            await after(5)
            calls = w.sandbox.client()
            apps = await calls.list(APPS)
            assert [app["metadata"]["name"] for app in apps] == ["one", "two"]
            assert [app["metadata"]["labels"]["team"] for app in apps] == ["red", "blue"]
            assert {app["status"]["health"]["status"] for app in apps} == {"Healthy"}
            (owner,) = apps[0]["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["controller"]) == ("ApplicationSet", "all", True)
            assert apps[0]["metadata"]["finalizers"] == [CASCADE]
            rows = (await calls.get(SETS, "all", "argocd"))["status"]["conditions"]
            assert {row["type"]: row["status"] for row in rows} == {
                "ErrorOccurred": "False",
                "ParametersGenerated": "True",
                "ResourcesUpToDate": "True",
            }

    run(main())


def test_folders_become_applications_and_new_ones_follow_when_asked_for() -> None:
    async def main() -> None:
        async with world() as w:
            rows = [{"path": "apps/*"}, {"path": "apps/two", "exclude": True}]
            git = {"git": {"repoURL": URL, "revision": "main", "directories": rows, "values": {"team": "red"}}}
            repository = await begin(w, FILES, application_set(git, name="{{path.basename}}"))
            calls = w.sandbox.client()
            assert [app["metadata"]["name"] for app in await calls.list(APPS)] == ["one"]
            repository.push({**FILES, "apps/three/c.yaml": config("three")})
            note = {"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}}
            await calls.patch(SETS, "all", note, "argocd")
            await after(1)
            assert [app["metadata"]["name"] for app in await calls.list(APPS)] == ["one", "three"]
            assert "annotations" not in (await calls.get(SETS, "all", "argocd"))["metadata"]
            repository.push({"apps/one/c.yaml": config("one")})
            await after(200)
            assert [app["metadata"]["name"] for app in await calls.list(APPS)] == ["one"]

    run(main())


def test_a_source_that_is_not_there_is_told_in_conditions() -> None:
    async def main() -> None:
        async with world() as w:
            git = {"git": {"repoURL": "https://git.test/none.git", "directories": [{"path": "*"}]}}
            await begin(w, FILES, application_set(git))
            rows = (await w.sandbox.client().get(SETS, "all", "argocd"))["status"]["conditions"]
            assert {row["type"]: row["status"] for row in rows}["ErrorOccurred"] == "True"
            assert "repository not found" in rows[0]["message"]

    run(main())


@pytest.mark.parametrize("policy", ["sync", "create-only"])
def test_a_child_that_is_deleted_comes_back_and_one_that_is_changed_is_put_right(policy: str) -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, FILES, application_set(syncPolicy={"applicationsSync": policy}))
            await after(5)
            calls = w.sandbox.client()
            old = await calls.get(APPS, "one", "argocd")
            await calls.delete(APPS, "one", "argocd")
            await calls.patch(APPS, "two", {"spec": {"project": "other"}}, "argocd")
            await after(5)
            new = await calls.get(APPS, "one", "argocd")
            assert new["metadata"]["uid"] != old["metadata"]["uid"]
            kept = (await calls.get(APPS, "two", "argocd"))["spec"]["project"]
            assert kept == ("default" if policy == "sync" else "other")

    run(main())


def test_a_child_that_came_back_before_argo_cd_saw_it_go_can_be_deleted_again() -> None:
    async def main() -> None:
        async with world() as w:
            w.argocd.lag = 2.0
            await begin(w, FILES, application_set())
            await after(5)
            calls, uids = w.sandbox.client(), set[str]()
            for _ in range(3):
                uids.add((await calls.get(APPS, "one", "argocd"))["metadata"]["uid"])
                await calls.delete(APPS, "one", "argocd")
                await after(20)
            assert (await calls.get(APPS, "one", "argocd"))["metadata"]["uid"] not in uids
            assert len(uids) == 3

    run(main())


@pytest.mark.parametrize(
    ("policy", "propagation", "apps", "maps"),
    [
        ({}, "Background", 0, 0),
        ({"preserveResourcesOnDeletion": True}, "Background", 0, 2),
        ({"applicationsSync": "create-update"}, "Background", 2, 2),
        ({}, "Orphan", 2, 2),
    ],
)
def test_what_stays_when_a_set_is_deleted(policy: Any, propagation: str, apps: int, maps: int) -> None:
    async def main() -> None:
        async with world() as w:
            body = application_set(syncPolicy=policy)
            body["metadata"]["finalizers"] = [CASCADE]  # as where somebody asked for it: otherwise nothing waits
            await begin(w, FILES, body)
            await after(5)
            calls = w.sandbox.client()
            await calls.delete(SETS, "all", "argocd", options=RequestOptions(propagation=propagation))
            await after(10)
            assert await calls.list(SETS) == []
            assert len(await calls.list(APPS)) == apps
            found = [row["metadata"]["name"] for row in await calls.list("configmaps", "default")]
            assert len({"one", "two"} & set(found)) == maps

    run(main())


@pytest.mark.parametrize("heals", [False, True])
def test_a_root_that_heals_itself_makes_its_children_again(heals: bool) -> None:
    async def main() -> None:
        async with world() as w:
            files = {"root/one.yaml": application("one", "apps/one"), **FILES}
            policy = {"automated": {"selfHeal": heals}}
            await begin(w, files, application("root", namespace="argocd", syncPolicy=policy))
            await after(5)
            calls = w.sandbox.client()
            old = await calls.get(APPS, "one", "argocd")
            await calls.delete(APPS, "one", "argocd")
            await after(20)
            found = await calls.find(APPS, "one", "argocd")
            assert (found is not None) == heals
            assert not found or found["metadata"]["uid"] != old["metadata"]["uid"]
            await calls.patch(APPS, "root", {"metadata": {"finalizers": None}}, "argocd")
            await calls.delete(APPS, "root", "argocd")
            await after(5)
            with pytest.raises(StatusError):
                await calls.get(APPS, "root", "argocd")
            assert (await calls.find(APPS, "one", "argocd") is not None) == heals

    run(main())


def test_a_set_whose_controller_lags_makes_no_child_twice() -> None:
    async def main() -> None:
        async with world() as w:
            w.argocd.repositories[URL] = MemoryRepository(FILES)
            calls = w.sandbox.client()
            await calls.create(SETS, application_set())
            await after(30)
            made = [e for e in w.sandbox.server.journal.entries if (e.verb, e.kind) == ("create", APPS)]
            assert [(entry.name, entry.code) for entry in made] == [("one", 201), ("two", 201)]

    run(main())
