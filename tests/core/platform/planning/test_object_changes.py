"""Which objects and fields a sync changes, from two renderings and Argo CD's comparison with the live objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.platform.planning.field_changes import (
    ABSENT,
    HIDDEN,
    MAX_DEPTH,
    FieldChange,
    changed_fields,
    with_fields,
    with_manifest_change,
)
from windlass.core.platform.planning.object_changes import (
    MAX_CHANGED_FIELDS,
    MAX_CHANGED_OBJECTS,
    ApplicationChange,
    ChangedObject,
    ComparedObject,
    Effect,
    ObjectEffect,
    RenderedApplication,
    changes_summary,
    desired_objects,
    limited_objects,
    object_changes,
)

Body = dict[str, Any]


def deployment(image: str = "web:1", **spec: Any) -> Body:
    containers = [{"name": "main", "image": image}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}, **spec},
    }


def live(manifest: Body, **spec: Any) -> Body:
    """As the API server shows it: with a namespace, defaults in each container, and a status."""
    containers = [{**each, "imagePullPolicy": "Always"} for each in manifest["spec"]["template"]["spec"]["containers"]]
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "namespace": "web", "uid": "1"},
        "spec": {**manifest["spec"], "paused": False, "template": {"spec": {"containers": containers}}, **spec},
        "status": {"replicas": 1},
    }


def compared(item: Body | None, predicted: Body | None = None, raw: Body | None = None, **more: Any) -> ComparedObject:
    kind = more.pop("kind", "apps/Deployment")
    return ComparedObject(kind, "web", "web", raw or item, item, predicted or item, **more)


def changes(before: list[Body], after: list[Body], *objects: ComparedObject) -> list[ChangedObject]:
    rendered = RenderedApplication(tuple(before), tuple(after), objects, "web")
    return list(object_changes(desired_objects(rendered), str))


def fields(before: Any, after: Any, raw: Any = ABSENT) -> list[tuple[str, str | None, str | None]]:
    return [(each.path, each.before, each.after) for each in changed_fields(before, after, raw, str)]


def test_a_commit_that_renders_the_same_changes_nothing() -> None:
    assert changes([deployment()], [deployment()], compared(live(deployment()))) == []


def test_only_what_the_commit_changes_is_listed_and_defaults_of_the_server_are_not() -> None:
    [change] = changes([deployment()], [deployment("web:2", replicas=3)], compared(live(deployment())))
    assert (change.kind, change.namespace, change.name, change.effect) == (
        *("apps/Deployment", "web", "web"),
        ObjectEffect.UPDATE,
    )
    assert change.fields == (
        FieldChange("spec.replicas", "1", "3"),
        FieldChange("spec.template.spec.containers[main].image", "web:1", "web:2"),
    )


def test_drift_of_the_live_object_is_part_of_what_a_sync_changes() -> None:
    drifted = live(deployment(), replicas=7)
    [change] = changes([deployment()], [deployment()], compared(drifted, live(deployment())))
    assert change.fields == (FieldChange("spec.replicas", "7", "1"),)


def test_a_commit_that_brings_what_is_live_already_changes_nothing() -> None:
    edited = live(deployment("web:2"))
    assert changes([deployment()], [deployment("web:2")], compared(edited, live(deployment()))) == []


def test_a_field_that_argo_cd_ignores_is_not_listed() -> None:
    raw = live(deployment(), replicas=9)
    normalized = {**raw, "spec": {name: value for name, value in raw["spec"].items() if name != "replicas"}}
    assert changes([deployment()], [deployment(replicas=3)], compared(normalized, raw=raw)) == []


def test_objects_are_created_and_removed() -> None:
    created = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
    found = changes([deployment()], [created], compared(live(deployment())))
    assert [(each.kind, each.name, each.effect) for each in found] == [
        ("ConfigMap", "new", ObjectEffect.CREATE),
        ("apps/Deployment", "web", ObjectEffect.REMOVE),
    ]


def test_an_object_that_argo_cd_itself_adds_is_not_removed() -> None:
    assert changes([], [], compared(live(deployment()))) == []
    [change] = changes([], [], compared(live(deployment()), has_target=False))
    assert change.effect is ObjectEffect.REMOVE


def test_an_object_that_exists_and_is_new_in_git_gets_the_fields_of_its_manifest() -> None:
    found = changes([], [deployment("web:2")], compared(live(deployment()), has_target=False))
    assert [field.path for field in found[0].fields] == ["spec.template.spec.containers[main].image"]


@pytest.mark.parametrize("annotation", ["argocd.argoproj.io/hook", "helm.sh/hook"])
def test_hooks_are_left_out(annotation: str) -> None:
    hook = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "run", "annotations": {annotation: "PreSync"}},
    }
    assert changes([], [hook]) == []


def test_an_object_of_the_whole_cluster_has_no_namespace() -> None:
    role: Body = {"apiVersion": "rbac/v1", "kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [1]}
    item = ComparedObject("rbac/ClusterRole", "", "r", role, role, role)
    [change] = changes([role], [{**role, "rules": [2]}], item)
    assert str(change) == "rbac/ClusterRole r"


def test_values_of_a_secret_are_never_shown() -> None:
    def secret(value: str, **data: str) -> Body:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": {"key": value, **data}}

    item = compared(secret("live-value"), secret("wanted-value"), kind="Secret")
    [change] = changes([secret("x")], [secret("x", added="new-value")], item)
    assert change.fields == (FieldChange("data.added", None, HIDDEN), FieldChange("data.key", HIDDEN, HIDDEN))


@pytest.mark.parametrize(
    ("path", "is_hidden"),
    [
        (("env", "DB_PASSWORD", "value"), True),
        (("auth", "apiKey"), True),
        (("data", "client-secret"), True),
        (("volumes", "secretName"), False),
        (("env", "DB_PASSWORD", "valueFrom", "secretKeyRef", "key"), False),
        (("spec", "image"), False),
    ],
)
def test_values_under_names_of_secrets_are_hidden(path: tuple[str, ...], is_hidden: bool) -> None:
    def nested(value: Any) -> Any:
        for name in reversed(path):
            value = {name: value}
        return value

    [(_, before, after)] = fields(nested("old-value"), nested("new-value"))
    assert (before, after) == ((HIDDEN, HIDDEN) if is_hidden else ("old-value", "new-value"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": 1}, {"a": None}, [("a", "1", "null")], id="null is a value"),
        pytest.param({"a": ""}, {}, [("a", '""', None)], id="an empty text is shown"),
        pytest.param({"a.b/c": "1"}, {"a.b/c": "2"}, [("[a.b/c]", "1", "2")], id="a key with a dot"),
        pytest.param({"args": ["-a"]}, {"args": ["-b"]}, [("args", '["-a"]', '["-b"]')], id="a list of texts"),
        pytest.param({"l": [{"x": 1}]}, {"l": [{"x": 2}]}, [("l[0].x", "1", "2")], id="by position"),
        pytest.param({"l": [{"x": 1}]}, {"l": []}, [("l", '[{"x": 1}]', "[]")], id="as a whole"),
        pytest.param(
            {"l": [{"name": "a", "x": 1}, {"name": "b"}]},
            {"l": [{"name": "b"}, {"name": "a", "x": 2}]},
            [("l[a].x", "1", "2")],
            id="by name, in any order",
        ),
        pytest.param(
            {"p": [{"containerPort": 1, "protocol": "TCP"}]},
            {"p": [{"containerPort": 2}]},
            [("p[1]", '{"containerPort": 1, "protocol": "TCP"}', None), ("p[2]", None, '{"containerPort": 2}')],
            id="by port",
        ),
        pytest.param({"t": "1\n2\n3"}, {"t": "1\nx\n3"}, [("t (line 2)", "2", "x")], id="lines"),
        pytest.param({"t": "1\n2"}, {"t": "1\n2\n3"}, [("t (line 3)", '""', "3")], id="a line is added"),
    ],
)
def test_fields_are_named_by_their_path(before: Body, after: Body, expected: list[tuple[str, str, str]]) -> None:
    assert fields(before, after) == expected


def test_what_is_listed_is_limited() -> None:
    many = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    before, after = ({**many, "data": {f"k{i}": value for i in range(1_000)}} for value in "xy")
    [change] = changes([before], [after], compared(before, kind="ConfigMap"))
    assert (len(change.fields), change.is_truncated) == (MAX_CHANGED_FIELDS, True)
    objects, is_truncated = limited_objects(ChangedObject("K", "", str(i), ObjectEffect.CREATE) for i in range(1_000))
    assert (len(objects), is_truncated) == (MAX_CHANGED_OBJECTS, True)


def test_what_is_nested_deeply_is_compared_as_one_value() -> None:
    before: Any = 1
    after: Any = 2
    for _ in range(3 * MAX_DEPTH):
        before, after = {"a": before}, {"a": after}
    [(path, _, _)] = fields(before, after)
    assert path.count("a") == MAX_DEPTH + 1
    assert fields(before, with_manifest_change(before, before, after)) == fields(before, after)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"kind": 1, "metadata": {"name": "x"}},
        {"kind": "K", "metadata": []},
        {"kind": "K", "metadata": {"name": ""}},
    ],
)
def test_what_is_no_object_is_left_out(odd: Body) -> None:
    assert changes([odd], [odd]) == []


def test_the_summary_counts_applications_by_what_happens_to_them() -> None:
    effects = [Effect.CHANGES, *[Effect.PIN] * 12]
    assert changes_summary(ApplicationChange(str(i), each) for i, each in enumerate(effects)) == (
        "1 changes, 12 only move their pin"
    )
    effects = [Effect.CREATES, Effect.CREATES, Effect.NONE, Effect.UNKNOWN]
    assert changes_summary(ApplicationChange(str(i), each) for i, each in enumerate(effects)) == (
        "2 create their objects, 1 changes no object, which objects change is not known for 1"
    )
    assert changes_summary([]) == ""


JSON = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_values_differ_exactly_if_a_field_is_listed(before: Any, after: Any) -> None:
    assert bool(fields(before, after)) == (before != after)


@given(JSON, JSON)
def test_an_object_that_is_as_its_manifest_becomes_the_next_manifest(before: Any, after: Any) -> None:
    result = with_manifest_change(before, before, after)
    assert {str(each) for each in _leaves(result)} == {str(each) for each in _leaves(after)}


@given(JSON, JSON)
def test_fields_of_a_manifest_are_in_the_result(live_value: Any, manifest: Any) -> None:
    result = with_fields(live_value, manifest)
    assert with_fields(result, manifest) == result


def _leaves(value: Any) -> list[Any]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if children is None else [leaf for child in children for leaf in _leaves(child)]
