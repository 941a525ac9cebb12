"""Projects that permit less than everything, and Applications in other namespaces than Argo CD's."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.sandbox.controllers.clusters import after, begin, run, world
from tests.sandbox.controllers.objects import CASCADE, URL, application, config
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.argocd import projects
from windlass.sandbox.argocd.comparison import ComparedResource
from windlass.sandbox.argocd.repositories import ComparisonFailure

APPS, PROJECTS = "applications.argoproj.io", "appprojects.argoproj.io"
HERE = {"server": "https://kubernetes.default.svc", "namespace": "default"}
OPEN: dict[str, Any] = {"sourceRepos": ["*"], "destinations": [HERE]}


def project(**rules: Any) -> dict[str, Any]:
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
    return {**head, "metadata": {"name": "small", "namespace": "argocd"}, "spec": {**OPEN, **rules}}


def elsewhere(name: str = "web", **spec: Any) -> dict[str, Any]:
    body = application(name, **spec)
    return {**body, "metadata": {**body["metadata"], "namespace": "team"}}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, ""),
        ({"sourceRepos": ["https://git.test/*"]}, ""),
        ({"sourceRepos": ["*", f"!{URL}"]}, f"application repo {URL} is not permitted in project 'small'"),
        ({"sourceRepos": []}, f"application repo {URL} is not permitted in project 'small'"),
        ({"destinations": [{"name": "in-cluster", "namespace": "def*"}]}, ""),
        ({"destinations": [{"server": "*", "namespace": "other"}]}, "do not match any of the allowed destinations"),
        ({"destinations": [{**HERE, "namespace": "*"}, {**HERE, "namespace": "!default"}]}, "do not match any"),
    ],
)  # fmt: skip
def test_sources_and_destinations(rules: dict[str, Any], expected: str) -> None:
    app = application(project="small")
    if not expected:
        projects.require_permitted(app, project(**rules))
        return
    with pytest.raises(ComparisonFailure, match=re.escape(expected)) as found:
        projects.require_permitted(app, project(**rules))
    assert (found.value.condition, found.value.message) == ("InvalidSpecError", f"InvalidSpecError: {found.value}")


@pytest.mark.parametrize(
    ("item", "rules", "expected"),
    [
        (("", "ConfigMap", "default"), {}, ""),
        (("", "ConfigMap", "other"), {}, "namespace other is not permitted in project 'small'"),
        (("", "Namespace", ""), {}, "resource :Namespace is not permitted in project small"),
        (("", "Namespace", ""), {"clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}]}, ""),
        (("apps", "Deployment", "default"), {"namespaceResourceWhitelist": []}, "resource apps:Deployment is not"),
        (("apps", "Deployment", "default"), {"namespaceResourceBlacklist": [{"group": "apps", "kind": "*"}]}, "is not"),
    ],
)  # fmt: skip
def test_kinds_and_their_namespaces(item: tuple[str, str, str], rules: dict[str, Any], expected: str) -> None:
    group, kind, namespace = item
    found = projects.refusal(
        ComparedResource(group, "v1", kind, "", namespace, "x"), application(project="small"), project(**rules)
    )
    assert expected in found
    assert bool(expected) == bool(found)


def test_an_application_that_its_project_does_not_permit_until_it_does() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create(PROJECTS, project(sourceRepos=["https://git.test/other.git"]))
            await begin(w, {"web/all.yaml": config()}, application(project="small", syncPolicy={"automated": {}}))
            status = (await calls.get(APPS, "web", "argocd"))["status"]
            assert (status["sync"]["status"], status["health"]["status"]) == ("Unknown", "Unknown")
            (row,) = status["conditions"]
            assert row["type"] == "InvalidSpecError"
            await calls.patch(APPS, "web", {"operation": {"sync": {"revision": "main"}}}, "argocd")
            await after(3)
            state = (await calls.get(APPS, "web", "argocd"))["status"]["operationState"]
            assert (state["phase"], state["message"]) == ("Error", f"InvalidSpecError: {row['message']}")
            assert await calls.find("configmaps", "web", "default") is None
            await calls.patch(PROJECTS, "small", {"spec": {"sourceRepos": ["*"]}}, "argocd")
            await after(5)
            status = (await calls.get(APPS, "web", "argocd"))["status"]
            assert (status["sync"]["status"], status["health"]["status"]) == ("Synced", "Healthy")
            assert "conditions" not in status

    run(main())


def test_objects_that_a_project_does_not_permit_end_the_sync_before_anything_is_applied() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create(PROJECTS, project(destinations=[{**HERE, "namespace": "*"}]))
            role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"}}
            await begin(w, {"web/all.yaml": [config(), role]}, application(project="small", namespace="new"))
            wish = {"operation": {"sync": {"syncOptions": ["CreateNamespace=true"]}}}
            await calls.patch(APPS, "web", wish, "argocd")
            await after(3)
            status = (await calls.get(APPS, "web", "argocd"))["status"]
            state = status["operationState"]
            assert (state["phase"], state["message"]) == ("Failed", "one or more synchronization tasks are not valid")
            assert [row["message"] for row in state["syncResult"]["resources"]] == [
                "resource :Namespace is not permitted in project small",
                "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project small",
            ]
            assert [row["status"] for row in status["resources"]] == ["OutOfSync", "Unknown"]
            assert await calls.find("namespaces", "new") is None

    run(main())


def test_an_application_without_its_project_cannot_be_deleted_with_its_objects() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create(PROJECTS, project())
            await begin(w, {"web/all.yaml": config()}, application(project="small", syncPolicy={"automated": {}}))
            await after(3)
            await calls.delete(PROJECTS, "small", "argocd")
            await calls.delete(APPS, "web", "argocd")
            await after(60)
            (row,) = (await calls.get(APPS, "web", "argocd"))["status"]["conditions"]
            assert (row["type"], row["message"]) == ("DeletionError", 'appproject.argoproj.io "small" not found')
            assert await calls.find("configmaps", "web", "default")
            await calls.create(PROJECTS, project())
            await after(5)
            assert await calls.find(APPS, "web", "argocd") is await calls.find("configmaps", "web", "default") is None

    run(main())


def test_applications_of_other_namespaces_count_only_if_argocd_and_their_project_say_so() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create("namespaces", {"metadata": {"name": "team"}})
            await begin(w, {"web/all.yaml": config()}, elsewhere(), application("web", "web"))
            assert "status" not in await calls.get(APPS, "web", "team")
            w.argocd.application_namespaces = ("te*",)
            w.argocd.restart()
            await after(1)
            (row,) = (await calls.get(APPS, "web", "team"))["status"]["conditions"]
            why = "application 'web' in namespace 'team' is not permitted to use project 'default'"
            assert (row["type"], row["message"]) == ("UnknownError", why)
            await calls.patch(PROJECTS, "default", {"spec": {"sourceNamespaces": ["team"]}}, "argocd")
            await calls.patch(APPS, "web", {"operation": {"sync": {}}}, "team")
            await after(3)
            found = await calls.get("configmaps", "web", "default")
            mark = found["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"]
            assert mark == "team_web:/ConfigMap:default/web"
            assert (await calls.get(APPS, "web", "team"))["status"]["sync"]["status"] == "Synced"
            assert (await calls.get(APPS, "web", "argocd"))["status"]["sync"]["status"] == "OutOfSync"
            await calls.delete(APPS, "web", "team")
            await after(3)
            assert await calls.find("configmaps", "web", "default") is None

    run(main())


def test_by_label_the_namespace_is_part_of_the_instance_name() -> None:
    async def main() -> None:
        async with world() as w:
            w.argocd.application_namespaces, w.argocd.tracks_by_label = ("team",), True
            calls = w.sandbox.client()
            await calls.create("namespaces", {"metadata": {"name": "team"}})
            await calls.patch(PROJECTS, "default", {"spec": {"sourceNamespaces": ["*"]}}, "argocd")
            await begin(w, {"web/all.yaml": config()}, elsewhere(syncPolicy={"automated": {"selfHeal": True}}))
            await after(3)
            found = await calls.get("configmaps", "web", "default")
            assert found["metadata"]["labels"]["app.kubernetes.io/instance"] == "team_web"

    run(main())


def test_a_change_of_the_spec_is_noticed_at_once() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await begin(w, {"web/a.yaml": config(), "other/b.yaml": config("b")})
            await calls.patch(APPS, "web", {"spec": {"source": {"path": "other"}}}, "argocd")
            await after(1)
            status = (await calls.get(APPS, "web", "argocd"))["status"]
            assert status["sync"]["comparedTo"]["source"]["path"] == "other"
            assert [row["name"] for row in status["resources"]] == ["b"]
            await calls.patch(APPS, "web", {"spec": {"syncPolicy": {"automated": {}}}}, "argocd")
            await after(3)
            assert (await calls.get(APPS, "web", "argocd"))["status"]["operationState"]["phase"] == "Succeeded"
            assert (await calls.get(APPS, "web", "argocd"))["metadata"]["finalizers"] == [CASCADE]

    run(main())


def test_what_the_controllers_cannot_do_without_is_required_and_the_rest_is_told() -> None:
    async def main() -> None:
        async with world() as w:
            calls, app = w.sandbox.client(), application()
            for name in ("destination", "project"):
                spec = {key: value for key, value in app["spec"].items() if key != name}
                with pytest.raises(StatusError, match=f"spec.{name}: Required value"):
                    await calls.create(APPS, {**app, "spec": spec})
            del app["spec"]["source"]
            await begin(w, {}, app)
            (row,) = (await calls.get(APPS, "web", "argocd"))["status"]["conditions"]
            assert "spec.source.repoURL" in row["message"]
            await calls.patch(APPS, "web", {"operation": {"sync": {}}}, "argocd")
            await after(3)
            assert (await calls.get(APPS, "web", "argocd"))["status"]["operationState"]["phase"] == "Error"

    run(main())


def test_a_source_that_is_only_referred_to_gives_no_objects_and_has_a_revision() -> None:
    async def main() -> None:
        async with world() as w:
            app = application(syncPolicy={"automated": {}})
            source = app["spec"].pop("source")
            values = {"repoURL": URL, "targetRevision": "main", "ref": "values"}
            app["spec"]["sources"] = [source, values]
            await begin(w, {"web/all.yaml": config(), "other.yaml": config("other")}, app)
            await after(3)
            status = (await w.sandbox.client().get(APPS, "web", "argocd"))["status"]
            assert [row["name"] for row in status["resources"]] == ["web"]
            assert len(status["sync"]["revisions"]) == 2

    run(main())
