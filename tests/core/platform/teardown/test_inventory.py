"""What belongs to whom, what may go after it, and what is left: by two looks at a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from windlass.core.platform.teardown import inventory
from windlass.core.platform.teardown.inventory import (
    ObservedObject,
    PresentObjects,
    RemovedApplications,
    ResourceKey,
    Unreadable,
)


def item(text: str) -> ResourceKey:
    """`Kind namespace/name`, or `Kind name`; the group follows a dot."""
    kind, _, place = text.partition(" ")
    namespace, _, name = place.rpartition("/")
    kind, _, group = kind.partition(".")
    return ResourceKey(group, kind, namespace, name)


def found(text: str, **changes: Any) -> ObservedObject:
    return ObservedObject(item(text), uid=text, **changes)


def leaving(*makers: str, made: str = "", **changes: Any) -> RemovedApplications:
    return RemovedApplications(frozenset(makers), frozenset({item(made)} if made else ()), **changes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Pod a/b", "Pod a/b"),
        ("ClusterRole.rbac x", "ClusterRole x (rbac)"),
        ("Deployment.apps a/b", "Deployment a/b (apps)"),
    ],
)
def test_an_item_is_named_as_people_do(text: str, words: str) -> None:
    assert str(item(text)) == words


@pytest.mark.parametrize(
    ("each", "whom", "is_theirs"),
    [
        (found("Pod a/b", tracking_instance="web"), leaving("web"), True),
        (found("Pod a/b", tracking_instance="api"), leaving("web"), False),
        (found("Pod a/b"), leaving("web"), False),
        (found("Pod a/b"), leaving("web", made="Pod a/b"), True),
        (found("Pod a/b", tracking_instance="api"), leaving("web", made="Pod a/b"), False),
        (found("Pod a/b", label_instance="web"), leaving("web"), False),
        (found("Pod a/b", label_instance="web"), leaving("web", tracks_by_label=True), True),
        (found("Pod a/b", label_instance="web", tracking_instance="api"), leaving("web", tracks_by_label=True), False),
        (found("Pod a/b", tracking_instance="web"), leaving("web", excluded_keys=frozenset({item("Pod a/b")})), False),
    ],
)
def test_an_object_is_of_who_marked_it_or_said_that_he_made_it(
    each: ObservedObject, whom: RemovedApplications, is_theirs: bool
) -> None:
    assert whom.manages(each) is is_theirs


@pytest.mark.parametrize(
    ("each", "are_marks"),
    [
        (found("Pod a/b", label_instance="web"), True),
        (found("Pod a/b", label_instance="web", tracking_instance="web"), False),
        (found("Pod a/b"), False),
        (found("Pod a/other", label_instance="web"), False),
    ],
)
def test_labels_are_marks_where_nothing_else_is(each: ObservedObject, are_marks: bool) -> None:
    made = [item("Pod a/b"), item("Pod a/c")]
    assert inventory.uses_label_tracking([each], made) is are_marks
    assert not inventory.uses_label_tracking([each, found("Pod a/c", tracking_instance="web")], made)


def test_what_is_owned_belongs_with_its_owner_also_in_a_circle() -> None:
    looked = [
        found("Deployment a/web", tracking_instance="web", owner_uids=("Pod a/web-1",)),
        found("Pod a/web-1", owner_uids=("ReplicaSet a/web",)),
        found("ReplicaSet a/web", owner_uids=("Deployment a/web",)),
        found("Application a/child", owner_uids=("Deployment a/web",)),
        found("Pod a/other", owner_uids=("ReplicaSet a/other",)),
    ]
    whom = leaving("web", excluded_keys=frozenset({item("Application a/child")}))
    assert inventory.owned_uids(looked, whom) == {"Deployment a/web", "ReplicaSet a/web", "Pod a/web-1"}


def test_left_is_what_was_theirs_or_still_says_so_and_only_the_top_of_it() -> None:
    looked = [
        found("Service a/web", tracking_instance="web"),
        found("EndpointSlice a/web-1", owner_uids=("Service a/web",)),
        found("Secret a/made-by-it"),
        found("Secret a/foreign"),
        found("PersistentVolumeClaim a/data"),
    ]
    before = {"Secret a/made-by-it", "EndpointSlice a/web-1", "PersistentVolumeClaim a/data"}
    whom = leaving("web", excluded_keys=frozenset({item("PersistentVolumeClaim a/data")}))
    left = inventory.remaining_objects(looked, before, whom)
    assert [str(each.key) for each in left] == ["Secret a/made-by-it", "Service a/web"]


def test_a_definition_is_idle_without_objects_of_its_kind() -> None:
    definitions = [found(f"CustomResourceDefinition.apiextensions.k8s.io {name}") for name in ("a.x", "b.x")]
    looked = [*definitions, found("A n/one", resource_name="a.x")]
    left = [*definitions, found("Secret n/s")]
    kept = replace(definitions[1], key=ResourceKey(*inventory.CRD_GROUP_KIND, "", "c.x"), is_kept=True)
    assert [each.key.name for each in inventory.unused_crds(PresentObjects(tuple(looked)), [*left, kept])] == ["b.x"]


@pytest.mark.parametrize(
    ("unreadable", "unused"),
    [
        (Unreadable("a.x", "Forbidden", "x", "a.x"), ["b.x"]),
        (Unreadable("x/v1", "its API server does not respond", "x"), []),
        (Unreadable("y/v1", "its API server does not respond", "y"), ["a.x", "b.x"]),
    ],
)
def test_a_definition_whose_objects_cannot_be_listed_is_not_idle(unreadable: Unreadable, unused: list[str]) -> None:
    definitions = [found(f"CustomResourceDefinition.apiextensions.k8s.io {name}") for name in ("a.x", "b.x")]
    listed = PresentObjects(tuple(definitions), (unreadable,))
    assert [each.key.name for each in inventory.unused_crds(listed, definitions)] == unused
    assert str(unreadable) == f"{unreadable.what}: {unreadable.error}"


def test_what_an_application_left_behind_is_found_by_its_mark() -> None:
    listed = PresentObjects((
        found("Deployment.apps n/web", tracking_instance="web"),
        found("ConfigMap n/label", label_instance="web"),
        found("Pod n/web", tracking_instance="web", owner_uids=("x",)),
        found("ConfigMap n/kept", tracking_instance="web", is_kept=True),
        found("CustomResourceDefinition.apiextensions.k8s.io a.x", tracking_instance="web"),
        found("PersistentVolumeClaim n/data", tracking_instance="web"),
        found("ConfigMap n/other", tracking_instance="other"),
    ))  # fmt: skip
    by_mark = inventory.left_behind_objects(listed, {"web": "node"}, by_label=False)
    assert by_mark == {"node": (item("Deployment.apps n/web"),)}
    by_label = inventory.left_behind_objects(listed, {"web": "node"}, by_label=True)
    assert by_label == {"node": (item("ConfigMap n/label"), item("Deployment.apps n/web"))}


def test_what_is_in_every_namespace_does_not_count() -> None:
    looked = [
        found("ServiceAccount own/default"),
        found("ConfigMap own/kube-root-ca.crt"),
        found("Lease.coordination.k8s.io own/leader"),
        found("ConfigMap own/mine"),
        found("ConfigMap other/theirs"),
    ]
    assert [str(each) for each in inventory.namespace_contents(looked, "own")] == ["ConfigMap own/mine"]


def test_namespaces_of_others_and_of_the_cluster_are_not_own_ones() -> None:
    wanted = ["own", "own", "shared", "default", "", "argocd", "kube-system"]
    assert inventory.exclusive_namespaces(wanted, {"shared"}, "argocd") == ("own",)


@pytest.mark.parametrize(
    ("text", "is_container"),
    [("Namespace own", True), ("CustomResourceDefinition.apiextensions.k8s.io a.x", True), ("Namespace.x own", False)],
)
def test_a_container_takes_its_contents_along(text: str, is_container: bool) -> None:
    assert item(text).is_container is is_container
