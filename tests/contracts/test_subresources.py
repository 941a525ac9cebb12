"""Spec and status have doors of their own, generation counts what was asked for, and scale is one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import DEPLOYMENTS, deployment
from tests.contracts.servers import APPLY, JSON_PATCH, MERGE, until

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject


@pytest.fixture
def namespace(shared_namespace: str) -> str:
    """These tests need only names of their own."""
    return shared_namespace


@pytest.fixture
def widgets(customs: Customs, namespace: str) -> str:
    return customs.widgets.in_namespace(namespace).path


@pytest.fixture
async def widget(raw: Raw, widgets: str, customs: Customs, name: str) -> RawObject:
    created: RawObject = await raw.ok("POST", widgets, customs.widget(name))
    return created


async def test_status_given_at_creation_is_dropped(raw: Raw, widgets: str, customs: Customs, name: str) -> None:
    created = await raw.ok("POST", widgets, {**customs.widget(name), "status": {"phase": "Ready"}})
    assert "status" not in created
    assert created["metadata"]["generation"] == 1


@pytest.mark.parametrize("how", ["replace", "merge patch", "JSON patch"])
async def test_a_write_of_the_object_leaves_its_status(
    raw: Raw, widgets: str, widget: RawObject, how: str, name: str
) -> None:
    path = f"{widgets}/{name}"
    before = await raw.ok("PATCH", f"{path}/status", {"status": {"phase": "Ready"}}, MERGE)
    change = {"spec": {"size": "large"}, "status": {"phase": "Waiting"}}
    match how:
        case "replace":
            after = await raw.ok("PUT", path, {**before, **change})
        case "merge patch":
            after = await raw.ok("PATCH", path, change, MERGE)
        case _:
            operations = [
                {"op": "replace", "path": "/spec/size", "value": "large"},
                {"op": "remove", "path": "/status"},
            ]
            after = await raw.ok("PATCH", path, operations, JSON_PATCH)
    assert after["status"] == {"phase": "Ready"}
    assert after["spec"]["size"] == "large"
    assert widget["metadata"]["generation"] == 1


@pytest.mark.parametrize("how", ["replace", "merge patch", "JSON patch"])
async def test_a_write_of_the_status_leaves_the_rest(
    raw: Raw, widgets: str, widget: RawObject, how: str, name: str
) -> None:
    path = f"{widgets}/{name}/status"
    change = {"spec": {"size": "large"}, "status": {"phase": "Ready"}}
    match how:
        case "replace":
            labelled = {**widget["metadata"], "labels": {"new": "label"}}
            after = await raw.ok("PUT", path, {**widget, **change, "metadata": labelled})
        case "merge patch":
            after = await raw.ok("PATCH", path, {**change, "metadata": {"labels": {"new": "label"}}}, MERGE)
        case _:
            after = await raw.ok(
                "PATCH", path, [{"op": "add", "path": "/status", "value": change["status"]}], JSON_PATCH
            )
    assert after["status"] == {"phase": "Ready"}
    assert after["spec"] == widget["spec"]
    assert "labels" not in after["metadata"]
    assert after["metadata"]["generation"] == 1
    assert int(after["metadata"]["resourceVersion"]) > int(widget["metadata"]["resourceVersion"])


async def test_a_write_of_the_status_respects_the_version(raw: Raw, widgets: str, widget: RawObject, name: str) -> None:
    await raw.ok("PATCH", f"{widgets}/{name}", {"metadata": {"labels": {"x": "1"}}}, MERGE)
    answer = await raw("PUT", f"{widgets}/{name}/status", {**widget, "status": {"phase": "Ready"}})
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_the_status_door_shows_the_whole_object(raw: Raw, widgets: str, widget: RawObject, name: str) -> None:
    assert await raw.ok("GET", f"{widgets}/{name}/status") == widget


GENERATIONS = [
    pytest.param("", {"spec": {"size": "large"}}, 2, id="a change of the spec"),
    pytest.param("", {"spec": {"size": "small"}}, 1, id="a spec that stays the same"),
    pytest.param("", {"metadata": {"labels": {"x": "1"}}}, 1, id="labels"),
    pytest.param("", {"metadata": {"annotations": {"x": "1"}}}, 1, id="annotations"),
    pytest.param("", {"metadata": {"finalizers": ["contracts.windlass.dev/x"]}}, 1, id="finalizers"),
    pytest.param("/status", {"status": {"phase": "Ready"}}, 1, id="status"),
    pytest.param("/scale", {"spec": {"replicas": 3}}, 2, id="scale"),
]


@pytest.mark.parametrize(("sub", "change", "generation"), GENERATIONS)
async def test_generation_of_a_kind_with_a_status_door(
    raw: Raw, widgets: str, widget: RawObject, sub: str, change: RawObject, generation: int, name: str
) -> None:
    assert widget["metadata"]["generation"] == 1
    await raw.ok("PATCH", f"{widgets}/{name}{sub}", change, MERGE)
    assert (await raw.ok("GET", f"{widgets}/{name}"))["metadata"]["generation"] == generation
    await raw("PATCH", f"{widgets}/{name}", {"metadata": {"finalizers": None}}, MERGE)


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        pytest.param({"spec": {"size": "large"}}, 2, id="a change of the spec"),
        pytest.param({"status": {"phase": "Ready"}}, 2, id="status, which is like any field"),
        pytest.param({"metadata": {"labels": {"x": "1"}}}, 1, id="labels"),
        pytest.param({"metadata": {"annotations": {"x": "1"}}}, 1, id="annotations"),
    ],
)
async def test_generation_of_a_kind_without_a_status_door(
    raw: Raw, namespace: str, customs: Customs, change: RawObject, generation: int, name: str
) -> None:
    path = customs.gadgets.in_namespace(namespace).path
    await raw.ok("POST", path, customs.gadget(name))
    changed = await raw.ok("PATCH", f"{path}/{name}", change, MERGE)
    assert changed["metadata"]["generation"] == generation


async def test_status_of_a_kind_without_a_status_door_can_be_created_and_patched(
    raw: Raw, namespace: str, customs: Customs, name: str
) -> None:
    path = customs.gadgets.in_namespace(namespace).path
    created = await raw.ok("POST", path, {**customs.gadget(name), "status": {"phase": "Ready"}})
    assert created["status"] == {"phase": "Ready"}
    changed = await raw.ok("PATCH", f"{path}/{name}", {"status": {"phase": "Waiting"}}, MERGE)
    assert changed["status"] == {"phase": "Waiting"}


async def test_generation_of_a_deployment(raw: Raw, namespace: str, name: str) -> None:
    path = DEPLOYMENTS.in_namespace(namespace).path
    item = deployment(name)
    item["spec"]["paused"] = True
    created = await raw.ok("POST", path, item)
    assert created["metadata"]["generation"] == 1
    labelled = await raw.ok("PATCH", f"{path}/{name}", {"metadata": {"labels": {"x": "1"}}}, MERGE)
    assert labelled["metadata"]["generation"] == 1
    annotated = await raw.ok("PATCH", f"{path}/{name}", {"metadata": {"annotations": {"x": "1"}}}, MERGE)
    assert annotated["metadata"]["generation"] == 2, "annotations of a Deployment go on to its ReplicaSets"
    scaled = await raw.ok("PATCH", f"{path}/{name}", {"spec": {"minReadySeconds": 1}}, MERGE)
    assert scaled["metadata"]["generation"] == 3


async def test_the_scale_of_a_deployment(raw: Raw, namespace: str, name: str) -> None:
    path = DEPLOYMENTS.in_namespace(namespace).path
    created = await raw.ok("POST", path, deployment(name, 1))
    scale = await raw.ok("GET", f"{path}/{name}/scale")
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["metadata"]["uid"] == created["metadata"]["uid"]
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"]["selector"] == f"app={name}"
    scaled = await raw.ok("PATCH", f"{path}/{name}/scale", {"spec": {"replicas": 2}}, MERGE)
    assert scaled["spec"] == {"replicas": 2}
    found = await raw.ok("GET", f"{path}/{name}")
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (2, 2)


async def test_the_status_door_of_a_deployment_lets_annotations_through(raw: Raw, namespace: str, name: str) -> None:
    path = DEPLOYMENTS.in_namespace(namespace).path
    await raw.ok("POST", path, deployment(name, 1))
    wish = {"metadata": {"annotations": {"example.org/a": "b"}, "labels": {"c": "d"}}, "spec": {"replicas": 5}}
    changed = await raw.ok("PATCH", f"{path}/{name}/status", wish, MERGE)
    assert changed["metadata"]["annotations"]["example.org/a"] == "b"
    assert "c" not in changed["metadata"].get("labels", {})
    assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (1, 1)


async def test_a_scale_of_zero_has_an_empty_spec(raw: Raw, namespace: str, name: str) -> None:
    path = DEPLOYMENTS.in_namespace(namespace).path
    await raw.ok("POST", path, deployment(name, 1))
    assert (await raw.ok("PATCH", f"{path}/{name}/scale", {"spec": {"replicas": 0}}, MERGE))["spec"] == {}
    assert (await raw.ok("GET", f"{path}/{name}"))["spec"]["replicas"] == 0


async def test_the_scale_of_a_custom_object(raw: Raw, widgets: str, widget: RawObject, name: str) -> None:
    await raw.ok("PATCH", f"{widgets}/{name}/status", {"status": {"replicas": 1, "selector": "app=a"}}, MERGE)
    scale = await raw.ok("GET", f"{widgets}/{name}/scale")
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 1, "selector": "app=a"}
    assert scale["metadata"]["uid"] == widget["metadata"]["uid"]
    await raw.ok("PUT", f"{widgets}/{name}/scale", {**scale, "spec": {"replicas": 4}})
    assert (await raw.ok("GET", f"{widgets}/{name}"))["spec"]["replicas"] == 4


async def test_a_scale_respects_the_version(raw: Raw, widgets: str, widget: RawObject, name: str) -> None:
    assert widget
    scale = await raw.ok("GET", f"{widgets}/{name}/scale")
    await raw.ok("PATCH", f"{widgets}/{name}", {"metadata": {"labels": {"x": "1"}}}, MERGE)
    answer = await raw("PUT", f"{widgets}/{name}/scale", {**scale, "spec": {"replicas": 4}})
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_a_custom_scale_is_held_to_the_schema(raw: Raw, widgets: str, widget: RawObject, name: str) -> None:
    assert widget
    answer = await raw("PATCH", f"{widgets}/{name}/scale", {"spec": {"replicas": 11}}, MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_conditions_of_a_status_can_be_applied_by_their_controller(
    raw: Raw, widgets: str, widget: RawObject, customs: Customs, name: str
) -> None:
    assert widget
    body = {"apiVersion": f"{customs.group}/v1", "kind": "Widget", "metadata": {"name": name}}
    for status in ("False", "True"):
        conditions = [{"type": "Ready", "status": status}]
        answer = await raw.ok(
            "PATCH", f"{widgets}/{name}/status?fieldManager=c", {**body, "status": {"conditions": conditions}}, APPLY
        )
        assert answer["status"]["conditions"] == conditions


@pytest.mark.controllers
async def test_a_deployment_is_observed(raw: Raw, namespace: str, name: str) -> None:
    path = DEPLOYMENTS.in_namespace(namespace).path
    await raw.ok("POST", path, deployment(name, 0))

    async def is_observed() -> bool:
        found = await raw.ok("GET", f"{path}/{name}")
        return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])

    await until(is_observed, "the observation")
