"""What Applications and objects say about who made what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import typed_object
from windlass.argo.cd.applications import Application
from windlass.argo.cd.finalizers import KNOWN_FINALIZERS, find_controller
from windlass.argo.cd.resource_tracking import (
    CASCADE_FINALIZER,
    application_subtree,
    creates_namespace,
    has_cascade_finalizer,
    instance_name,
    managed_resource_keys,
    observed_object,
    parent_objects,
    summarize_keys,
    target_namespace,
)
from windlass.core.platform.teardown.inventory import ResourceKey
from windlass.kube.client.objects import ObjectMeta
from windlass.kube.client.resources import Resource

HERE = {"server": "https://kubernetes.default.svc", "namespace": "own"}


def application(name: str = "web", *children: str, **spec: Any) -> Application:
    rows = [{"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": child} for child in children]
    meta = {"name": name, "namespace": "argocd"}
    return typed_object({"metadata": meta, "spec": spec, "status": {"resources": rows}}, Application)


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
    meta = ObjectMeta(name="web", namespace=namespaced, annotations={"argocd.argoproj.io/tracking-id": mark})
    assert observed_object(Resource("apps", "v1", "x", kind), meta).tracking_instance == owner


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
    meta = ObjectMeta(name="web", annotations=annotations, deletion_timestamp="now", finalizers=("x",))
    found = observed_object(Resource("", "v1", "secrets", "Secret"), meta)
    assert (found.is_kept, found.is_deleting, found.finalizers, found.resource_name) == (
        is_kept,
        True,
        ("x",),
        "secrets",
    )


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
    assert creates_namespace(application(syncPolicy={"syncOptions": ["CreateNamespace=true"]}))
    assert not creates_namespace(application(syncPolicy={"syncOptions": ["CreateNamespace=false"]}))
    assert not creates_namespace(application())


@pytest.mark.parametrize(
    ("name", "does"), [(CASCADE_FINALIZER, True), (f"{CASCADE_FINALIZER}/background", True), ("other", False)]
)
def test_with_a_finalizer_of_argo_cd_it_takes_along_what_it_made(name: str, does: bool) -> None:
    assert has_cascade_finalizer(typed_object({"metadata": {"name": "web", "finalizers": [name]}}, Application)) is does


def test_its_family_ends_where_nodes_begin() -> None:
    apps = view(application("top", "a", "b", "gone"), application("a", "c", "top"), application("b"), application("c"))
    members = application_subtree(apps["argocd", "top"], apps, {("argocd", "b")})
    assert sorted(member.metadata.name for member in members) == ["a", "c", "top"]


def test_makers_are_applications_that_define_others_and_sets() -> None:
    owner = {"kind": "ApplicationSet", "name": "many", "uid": "1"}
    meta = {"name": "web", "namespace": "argocd", "ownerReferences": [owner, {**owner, "kind": "Other"}]}
    made = typed_object({"metadata": meta}, Application)
    itself = application("self", "self")
    root = application("root", "web", syncPolicy={"automated": {}})
    found = {(each.key.kind, each.key.name): each for each in parent_objects(view(made, itself, root))}
    assert found.keys() == {("Application", "root"), ("ApplicationSet", "many")}
    assert all(each.recreates_children for each in found.values())
    assert all(
        each.child_keys == {ResourceKey("argoproj.io", "Application", "argocd", "web")} for each in found.values()
    )


def test_names() -> None:
    assert instance_name(("argocd", "web"), "argocd") == "web"
    assert instance_name(("team", "web"), "argocd") == "team_web"
    assert managed_resource_keys(typed_object({"metadata": {"name": "new"}}, Application)) == frozenset()
    items = [ResourceKey("", "Pod", "a", str(number)) for number in range(5)]
    assert summarize_keys(items[:2]) == "Pod a/0, Pod a/1"
    assert summarize_keys(items) == "Pod a/0, Pod a/1, Pod a/2 and 2 more"


def test_every_known_finalizer_has_a_controller_and_others_have_none() -> None:
    assert all(find_controller(name) is found for name, found in KNOWN_FINALIZERS)
    assert find_controller("resources-finalizer.argocd.argoproj.io/foreground") is KNOWN_FINALIZERS[0][1]
    assert find_controller("example.org/held") is None
