"""What Applications and objects say about who made what."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from windlass.argo.cd.applications import Application
from windlass.argo.cd.finalizers import KNOWN, controller_of
from windlass.argo.cd.resource_tracking import (
    CASCADE,
    cascades,
    family,
    found_object,
    instance_at,
    made_by,
    makers,
    makes_namespace,
    names_of,
    target_namespace,
)
from windlass.core.platform.teardown.inventory import Item
from windlass.kube.client.objects import Metadata
from windlass.kube.client.resources import Resource

HERE = {"server": "https://kubernetes.default.svc", "namespace": "own"}


def application(name: str = "web", *children: str, **spec: Any) -> Application:
    rows = [{"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": child} for child in children]
    meta = {"name": name, "namespace": "argocd"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"resources": rows}}, Application)


def view(*applications: Application) -> dict[tuple[str, str], Application]:
    return {(each.metadata.namespace, each.metadata.name): each for each in applications}


@pytest.mark.parametrize(
    ("namespaced", "kind", "mark", "owner"),
    [
        ("own", "Deployment", "web:apps/Deployment:own/web", "web"),
        ("own", "Deployment", "team_web:apps/Deployment:own/web", "team_web"),
        ("own", "ReplicaSet", "web:apps/Deployment:own/web", ""),
        ("own", "Deployment", "web:apps/Deployment:own/other", ""),
        ("own", "Deployment", "web:apps/Deployment:elsewhere/web", ""),
        ("", "Deployment", "web:apps/Deployment:own/web", "web"),
        ("own", "Deployment", "web", ""),
        ("own", "Deployment", "", ""),
    ],
)
def test_a_mark_counts_on_the_object_it_names(namespaced: str, kind: str, mark: str, owner: str) -> None:
    meta = Metadata(name="web", namespace=namespaced, annotations={"argocd.argoproj.io/tracking-id": mark})
    assert found_object(Resource("apps", "v1", "x", kind), meta).mark == owner


@pytest.mark.parametrize(
    ("annotations", "is_kept"),
    [
        ({}, False),
        ({"argocd.argoproj.io/sync-options": "Prune=false"}, False),
        ({"argocd.argoproj.io/sync-options": "Prune=false, Delete=false"}, True),
        ({"helm.sh/resource-policy": "keep"}, True),
    ],
)
def test_an_object_may_say_that_it_stays(annotations: dict[str, str], is_kept: bool) -> None:
    meta = Metadata(name="web", annotations=annotations, deletion_timestamp="now", finalizers=("x",))
    found = found_object(Resource("", "v1", "secrets", "Secret"), meta)
    assert (found.is_kept, found.is_deleting, found.finalizers, found.resource) == (is_kept, True, ("x",), "secrets")


@pytest.mark.parametrize(
    ("spec", "namespace"),
    [
        ({}, ""),
        ({"destination": HERE}, "own"),
        ({"destination": {**HERE, "server": "https://far.test"}}, ""),
        ({"destination": {"name": "in-cluster"}}, ""),
    ],
)
def test_where_it_deploys_to_in_this_cluster(spec: dict[str, Any], namespace: str) -> None:
    assert target_namespace(application(**spec)) == namespace


def test_it_says_whether_it_makes_its_namespace() -> None:
    assert makes_namespace(application(syncPolicy={"syncOptions": ["CreateNamespace=true"]}))
    assert not makes_namespace(application(syncPolicy={"syncOptions": ["CreateNamespace=false"]}))
    assert not makes_namespace(application())


@pytest.mark.parametrize(("name", "does"), [(CASCADE, True), (f"{CASCADE}/background", True), ("other", False)])
def test_with_a_finalizer_of_argo_cd_it_takes_along_what_it_made(name: str, does: bool) -> None:
    assert cascades(msgspec.convert({"metadata": {"name": "web", "finalizers": [name]}}, Application)) is does


def test_its_family_ends_where_nodes_begin() -> None:
    apps = view(application("top", "a", "b", "gone"), application("a", "c", "top"), application("b"), application("c"))
    members = family(apps["argocd", "top"], apps, {("argocd", "b")})
    assert sorted(member.metadata.name for member in members) == ["a", "c", "top"]


def test_makers_are_applications_that_define_others_and_sets() -> None:
    owner = {"kind": "ApplicationSet", "name": "many", "uid": "1"}
    meta = {"name": "web", "namespace": "argocd", "ownerReferences": [owner, {**owner, "kind": "Other"}]}
    made = msgspec.convert({"metadata": meta}, Application)
    itself = application("self", "self")
    root = application("root", "web", syncPolicy={"automated": {}})
    found = {(each.item.kind, each.item.name): each for each in makers(view(made, itself, root))}
    assert found.keys() == {("Application", "root"), ("ApplicationSet", "many")}
    assert all(each.makes_again for each in found.values())
    assert all(each.makes == {Item("argoproj.io", "Application", "argocd", "web")} for each in found.values())


def test_names() -> None:
    assert instance_at(("argocd", "web"), "argocd") == "web"
    assert instance_at(("team", "web"), "argocd") == "team_web"
    assert made_by(msgspec.convert({"metadata": {"name": "new"}}, Application)) == frozenset()
    items = [Item("", "Pod", "a", str(number)) for number in range(5)]
    assert names_of(items[:2]) == "Pod a/0, Pod a/1"
    assert names_of(items) == "Pod a/0, Pod a/1, Pod a/2 and 2 more"


def test_every_known_finalizer_has_a_controller_and_others_have_none() -> None:
    assert all(controller_of(name) is found for name, found in KNOWN)
    assert controller_of("resources-finalizer.argocd.argoproj.io/foreground") is KNOWN[0][1]
    assert controller_of("example.org/held") is None
