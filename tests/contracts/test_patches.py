"""Three kinds of patch, and what each does to mappings, lists and nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contracts.kinds import CONFIG_MAPS, DEPLOYMENTS, SERVICES, config_map, deployment, service
from tests.contracts.servers import JSON_PATCH, MERGE, STRATEGIC

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject


@pytest.fixture
def namespace(shared_namespace: str) -> str:
    """These tests need only names of their own."""
    return shared_namespace


@pytest.fixture
async def path(raw: Raw, namespace: str, name: str) -> str:
    collection = CONFIG_MAPS.in_namespace(namespace).path
    await raw.ok("POST", collection, config_map(name, {"x": "1", "y": "1"}, annotations={"a/b": "1"}))
    return f"{collection}/{name}"


@pytest.fixture
async def web(raw: Raw, namespace: str, name: str) -> str:
    collection = DEPLOYMENTS.in_namespace(namespace).path
    await raw.ok("POST", collection, deployment(name, 0, "main", "side"))
    return f"{collection}/{name}"


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        pytest.param({"data": {"z": "1"}}, {"x": "1", "y": "1", "z": "1"}, id="adds"),
        pytest.param({"data": {"x": "2"}}, {"x": "2", "y": "1"}, id="changes"),
        pytest.param({"data": {"x": None}}, {"y": "1"}, id="removes by null"),
        pytest.param({"data": {"gone": None}}, {"x": "1", "y": "1"}, id="removes what is not there"),
        pytest.param({"data": None}, None, id="removes the whole mapping"),
        pytest.param({}, {"x": "1", "y": "1"}, id="an empty patch"),
    ],
)
async def test_a_merge_patch(raw: Raw, path: str, patch: RawObject, data: RawObject | None) -> None:
    assert (await raw.ok("PATCH", path, patch, MERGE)).get("data") == data


async def test_a_merge_patch_replaces_lists(raw: Raw, namespace: str, customs: Customs, name: str) -> None:
    path = customs.widgets.in_namespace(namespace).path
    await raw.ok("POST", path, customs.widget(name, parts=[{"name": "x"}, {"name": "y"}]))
    changed = await raw.ok("PATCH", f"{path}/{name}", {"spec": {"parts": [{"name": "z"}]}}, MERGE)
    assert changed["spec"]["parts"] == [{"name": "z", "count": 1}]


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        pytest.param([{"op": "add", "path": "/data/z", "value": "1"}], {"x": "1", "y": "1", "z": "1"}, id="add"),
        pytest.param([{"op": "add", "path": "/data/x", "value": "2"}], {"x": "2", "y": "1"}, id="add over"),
        pytest.param([{"op": "replace", "path": "/data/x", "value": "2"}], {"x": "2", "y": "1"}, id="replace"),
        pytest.param([{"op": "remove", "path": "/data/x"}], {"y": "1"}, id="remove"),
        pytest.param([{"op": "copy", "from": "/data/x", "path": "/data/z"}], {"x": "1", "y": "1", "z": "1"}, id="copy"),
        pytest.param([{"op": "move", "from": "/data/x", "path": "/data/z"}], {"y": "1", "z": "1"}, id="move"),
        pytest.param(
            [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "remove", "path": "/data"}],
            None,
            id="test, remove",
        ),
    ],
)
async def test_a_json_patch(raw: Raw, path: str, operations: list[RawObject], data: RawObject | None) -> None:
    assert (await raw.ok("PATCH", path, operations, JSON_PATCH)).get("data") == data


async def test_a_json_patch_escapes_slashes(raw: Raw, path: str) -> None:
    operations = [{"op": "replace", "path": "/metadata/annotations/a~1b", "value": "2"}]
    changed = await raw.ok("PATCH", path, operations, JSON_PATCH)
    assert changed["metadata"]["annotations"] == {"a/b": "2"}


async def test_a_json_patch_is_done_whole_or_not_at_all(raw: Raw, path: str) -> None:
    operations = [{"op": "replace", "path": "/data/x", "value": "2"}, {"op": "test", "path": "/data/y", "value": "no"}]
    assert (await raw("PATCH", path, operations, JSON_PATCH)).status == 422
    assert (await raw.ok("GET", path))["data"] == {"x": "1", "y": "1"}


async def test_a_json_patch_that_replaces_a_missing_key_adds_it(raw: Raw, path: str) -> None:
    """Not what RFC 6902 says, but what the server does."""
    changed = await raw.ok("PATCH", path, [{"op": "replace", "path": "/data/z", "value": "1"}], JSON_PATCH)
    assert changed["data"]["z"] == "1"


async def test_a_json_patch_of_lists(raw: Raw, namespace: str, customs: Customs, name: str) -> None:
    path = customs.widgets.in_namespace(namespace).path
    await raw.ok("POST", path, customs.widget(name, steps=["b"]))
    operations = [
        {"op": "add", "path": "/spec/steps/0", "value": "a"},
        {"op": "add", "path": "/spec/steps/-", "value": "c"},
        {"op": "remove", "path": "/spec/steps/1"},
    ]
    changed = await raw.ok("PATCH", f"{path}/{name}", operations, JSON_PATCH)
    assert changed["spec"]["steps"] == ["a", "c"]


def containers(item: RawObject) -> dict[str, str]:
    return {c["name"]: c["image"] for c in item["spec"]["template"]["spec"]["containers"]}


def template(*found: RawObject, **more: Any) -> RawObject:
    return {"spec": {"template": {"spec": {"containers": list(found), **more}}}}


async def test_a_strategic_merge_patch_finds_containers_by_name(raw: Raw, web: str) -> None:
    changed = await raw.ok("PATCH", web, template({"name": "side", "image": "registry.invalid/new:2"}), STRATEGIC)
    assert containers(changed) == {"main": "registry.invalid/none:1", "side": "registry.invalid/new:2"}


async def test_a_strategic_merge_patch_adds_a_container(raw: Raw, web: str) -> None:
    changed = await raw.ok("PATCH", web, template({"name": "more", "image": "registry.invalid/more:1"}), STRATEGIC)
    assert sorted(containers(changed)) == ["main", "more", "side"]


async def test_a_strategic_merge_patch_deletes_a_container_by_directive(raw: Raw, web: str) -> None:
    changed = await raw.ok("PATCH", web, template({"name": "side", "$patch": "delete"}), STRATEGIC)
    assert sorted(containers(changed)) == ["main"]


async def test_a_strategic_merge_patch_replaces_by_directive(raw: Raw, web: str) -> None:
    patch = template({"name": "only", "image": "registry.invalid/only:1"}, {"$patch": "replace"})
    assert containers(await raw.ok("PATCH", web, patch, STRATEGIC)) == {"only": "registry.invalid/only:1"}


async def test_a_strategic_merge_patch_of_environment_variables(raw: Raw, web: str) -> None:
    await raw.ok("PATCH", web, template({"name": "main", "env": [{"name": "A", "value": "1"}]}), STRATEGIC)
    changed = await raw.ok("PATCH", web, template({"name": "main", "env": [{"name": "B", "value": "2"}]}), STRATEGIC)
    env = changed["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {entry["name"]: entry["value"] for entry in env} == {"A": "1", "B": "2"}


async def test_a_strategic_merge_patch_restarts_a_rollout_as_kubectl_does(raw: Raw, web: str) -> None:
    stamp = {"kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:00Z"}
    patch = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
    changed = await raw.ok("PATCH", web, patch, STRATEGIC)
    assert changed["spec"]["template"]["metadata"]["annotations"] == stamp
    assert changed["metadata"]["generation"] == 2
    assert sorted(containers(changed)) == ["main", "side"]


async def test_a_strategic_merge_patch_removes_by_null_and_merges_mappings(raw: Raw, web: str) -> None:
    await raw.ok("PATCH", web, {"metadata": {"labels": {"a": "1", "b": "1"}}}, STRATEGIC)
    changed = await raw.ok("PATCH", web, {"metadata": {"labels": {"a": None}}}, STRATEGIC)
    assert changed["metadata"]["labels"] == {"b": "1"}


async def test_a_strategic_merge_patch_keeps_only_the_keys_of_a_strategy(raw: Raw, web: str) -> None:
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert (await raw.ok("PATCH", web, patch, STRATEGIC))["spec"]["strategy"] == {"type": "Recreate"}


async def test_a_strategic_merge_patch_finds_ports_of_a_service_by_number(raw: Raw, namespace: str, name: str) -> None:
    path = SERVICES.in_namespace(namespace).path
    await raw.ok("POST", path, service(name, ("http", 80), ("admin", 81)))
    patch = {"spec": {"ports": [{"port": 80, "name": "web"}]}}
    changed = await raw.ok("PATCH", f"{path}/{name}", patch, STRATEGIC)
    assert {entry["port"]: entry["name"] for entry in changed["spec"]["ports"]} == {80: "web", 81: "admin"}


async def test_a_strategic_merge_patch_adds_finalizers(raw: Raw, path: str) -> None:
    for name in ("contracts.windlass.dev/a", "contracts.windlass.dev/b"):
        changed = await raw.ok("PATCH", path, {"metadata": {"finalizers": [name]}}, STRATEGIC)
    assert sorted(changed["metadata"]["finalizers"]) == ["contracts.windlass.dev/a", "contracts.windlass.dev/b"]
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["contracts.windlass.dev/a"]}}
    changed = await raw.ok("PATCH", path, gone, STRATEGIC)
    assert changed["metadata"]["finalizers"] == ["contracts.windlass.dev/b"]
    await raw.ok("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
