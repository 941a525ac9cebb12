"""Server-side apply: every field has owners, a conflict names them, and what is no longer applied goes away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contracts.kinds import CONFIG_MAPS, DEPLOYMENTS, config_map, deployment
from tests.contracts.servers import APPLY, JSON_PATCH, MERGE

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Answer, Raw
    from windlass.kube.client.objects import RawObject


class Applying:
    """Applies one object under several managers."""

    def __init__(self, raw: Raw, path: str) -> None:
        self.raw = raw
        self.path = path

    async def __call__(self, manager: str, item: RawObject, *, force: bool = False, sub: str = "") -> Answer:
        query = f"fieldManager={manager}{'&force=true' if force else ''}"
        return await self.raw("PATCH", f"{self.path}{sub}?{query}", item, APPLY)

    async def ok(self, manager: str, item: RawObject, *, force: bool = False, sub: str = "") -> RawObject:
        answer = await self(manager, item, force=force, sub=sub)
        assert answer.status in {200, 201}, answer.body
        found: RawObject = answer.json
        return found


@pytest.fixture
def applying(raw: Raw, namespace: str) -> Applying:
    return Applying(raw, CONFIG_MAPS.named("a", namespace).path)


@pytest.fixture
def applying_widget(raw: Raw, namespace: str, customs: Customs) -> Applying:
    return Applying(raw, customs.widgets.named("a", namespace).path)


def managers(item: RawObject) -> dict[tuple[str, str, str], Any]:
    """(manager, operation, subresource) to the fields it owns."""
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in item["metadata"].get("managedFields", [])
    }


def owned(*keys: str) -> RawObject:
    """Ownership of keys of `data`, by someone who said nothing else."""
    return {"f:data": {f"f:{key}": {} for key in keys}}


async def test_apply_creates_what_is_not_there(applying: Applying) -> None:
    answer = await applying("one", config_map("a", {"x": "1"}))
    assert answer.status == 201
    assert answer.json["data"] == {"x": "1"}
    again = await applying("one", config_map("a", {"x": "1"}))
    assert again.status == 200
    assert again.json["metadata"]["resourceVersion"] == answer.json["metadata"]["resourceVersion"]


async def test_an_entry_of_managed_fields_says_who_when_and_what(applying: Applying) -> None:
    created = await applying.ok("one", config_map("a", {"x": "1"}, labels={"l": "1"}))
    [entry] = created["metadata"]["managedFields"]
    assert entry.pop("time") == created["metadata"]["creationTimestamp"]
    assert entry == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:x": {}}, "f:metadata": {"f:labels": {"f:l": {}}}},
    }


async def test_managers_with_different_fields_do_not_meet(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1"}))
    both = await applying.ok("two", config_map("a", {"y": "2"}))
    assert both["data"] == {"x": "1", "y": "2"}
    assert managers(both) == {("one", "Apply", ""): owned("x"), ("two", "Apply", ""): owned("y")}


async def test_changing_a_field_of_another_manager_is_a_conflict_that_names_both(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1"}))
    answer = await applying("two", config_map("a", {"x": "2"}))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    assert answer.causes == [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}]
    assert (await applying.raw.ok("GET", applying.path))["data"] == {"x": "1"}


async def test_several_conflicts_are_listed_by_manager_and_field(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1", "y": "1"}))
    await applying.ok("other", config_map("a", {"z": "1"}))
    answer = await applying("two", config_map("a", {"x": "2", "y": "2", "z": "2"}))
    assert answer.message.startswith("Apply failed with 3 conflicts: ")
    found = {(cause["message"], cause["field"]) for cause in answer.causes}
    assert found == {
        ('conflict with "one"', ".data.x"),
        ('conflict with "one"', ".data.y"),
        ('conflict with "other"', ".data.z"),
    }


async def test_a_conflict_with_an_update_names_its_api_version(applying: Applying, raw: Raw, namespace: str) -> None:
    await raw.ok("POST", f"{CONFIG_MAPS.in_namespace(namespace).path}?fieldManager=writer", config_map("a", {"x": "1"}))
    answer = await applying("two", config_map("a", {"x": "2"}))
    [cause] = answer.causes
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.x")
    assert cause["message"].startswith('conflict with "writer" using v1')


async def test_force_takes_the_field_from_its_owner(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1", "y": "1"}))
    taken = await applying.ok("two", config_map("a", {"x": "2"}), force=True)
    assert taken["data"] == {"x": "2", "y": "1"}
    assert managers(taken) == {("one", "Apply", ""): owned("y"), ("two", "Apply", ""): owned("x")}


async def test_applying_the_same_value_shares_the_field(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1"}))
    shared = await applying.ok("two", config_map("a", {"x": "1"}))
    assert managers(shared) == {("one", "Apply", ""): owned("x"), ("two", "Apply", ""): owned("x")}
    left = await applying.ok("one", config_map("a", {}))
    assert left["data"] == {"x": "1"}, "the other owner still wants it"
    assert managers(left)["two", "Apply", ""] == owned("x")


async def test_a_field_that_is_no_longer_applied_is_removed(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1", "y": "1"}))
    less = await applying.ok("one", config_map("a", {"x": "1"}))
    assert less["data"] == {"x": "1"}
    assert managers(less) == {("one", "Apply", ""): owned("x")}


async def test_a_manager_that_applies_nothing_any_more_is_forgotten(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1"}))
    await applying.ok("two", config_map("a", {"y": "1"}))
    less = await applying.ok("two", config_map("a"))
    assert less["data"] == {"x": "1"}
    assert managers(less) == {("one", "Apply", ""): owned("x")}


async def test_an_update_takes_ownership_of_what_it_changes(applying: Applying, raw: Raw) -> None:
    await applying.ok("one", config_map("a", {"x": "1", "y": "1"}))
    changed = await raw.ok("PATCH", f"{applying.path}?fieldManager=hand", {"data": {"x": "2"}}, MERGE)
    assert managers(changed) == {("one", "Apply", ""): owned("y"), ("hand", "Update", ""): owned("x")}
    answer = await applying("one", config_map("a", {"x": "1", "y": "1"}))
    assert answer.status == 409
    assert [cause["field"] for cause in answer.causes] == [".data.x"]


async def test_an_update_that_repeats_a_value_takes_nothing(applying: Applying, raw: Raw) -> None:
    await applying.ok("one", config_map("a", {"x": "1"}))
    same = await raw.ok("PATCH", f"{applying.path}?fieldManager=hand", {"data": {"x": "1"}}, MERGE)
    assert managers(same) == {("one", "Apply", ""): owned("x")}


async def test_an_applied_field_that_someone_removed_comes_back(applying: Applying, raw: Raw) -> None:
    await applying.ok("one", config_map("a", {"x": "1", "y": "1"}))
    await raw.ok("PATCH", f"{applying.path}?fieldManager=hand", {"data": {"x": None}}, MERGE)
    back = await applying.ok("one", config_map("a", {"x": "1", "y": "1"}))
    assert back["data"] == {"x": "1", "y": "1"}


async def test_the_last_applied_wins_for_one_manager(applying: Applying) -> None:
    await applying.ok("one", config_map("a", {"x": "1"}))
    changed = await applying.ok("one", config_map("a", {"x": "2"}))
    assert changed["data"] == {"x": "2"}


@pytest.mark.parametrize("how", ["create", "replace", "merge patch", "JSON patch"])
async def test_every_write_names_its_manager(raw: Raw, namespace: str, how: str) -> None:
    collection = CONFIG_MAPS.in_namespace(namespace).path
    if how == "create":
        written = await raw.ok("POST", f"{collection}?fieldManager=hand", config_map("a", {"x": "1"}))
        assert managers(written) == {("hand", "Update", ""): {"f:data": {".": {}, "f:x": {}}}}
        return
    await raw.ok("POST", f"{collection}?fieldManager=first", config_map("a", {"x": "1"}))
    path = f"{collection}/a?fieldManager=hand"
    match how:
        case "replace":
            written = await raw.ok("PUT", path, config_map("a", {"x": "2"}))
        case "merge patch":
            written = await raw.ok("PATCH", path, {"data": {"x": "2"}}, MERGE)
        case _:
            written = await raw.ok("PATCH", path, [{"op": "replace", "path": "/data/x", "value": "2"}], JSON_PATCH)
    assert managers(written) == {("first", "Update", ""): {"f:data": {}}, ("hand", "Update", ""): owned("x")}


async def test_the_default_manager_is_the_beginning_of_the_user_agent(raw: Raw, namespace: str) -> None:
    written = await raw.ok("POST", CONFIG_MAPS.in_namespace(namespace).path, config_map("a", {"x": "1"}))
    assert [key[0] for key in managers(written)] == ["windlass"], "we call ourselves windlass/VERSION"


async def test_apply_with_an_outdated_version_is_a_conflict(applying: Applying) -> None:
    created = await applying.ok("one", config_map("a", {"x": "1"}))
    version = created["metadata"]["resourceVersion"]
    changed = await applying.ok("one", config_map("a", {"x": "2"}, resourceVersion=version))
    assert changed["data"] == {"x": "2"}
    answer = await applying("one", config_map("a", {"x": "3"}, resourceVersion=version))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "the object has been modified" in answer.message
    assert not answer.causes


async def test_apply_with_the_version_of_what_is_gone_creates_it_anew(applying: Applying, raw: Raw) -> None:
    created = await applying.ok("one", config_map("a", {"x": "1"}))
    await raw.ok("DELETE", applying.path)
    item = config_map("a", {"x": "2"}, resourceVersion=created["metadata"]["resourceVersion"])
    assert (await applying("one", item)).status == 201


async def test_apply_with_the_uid_of_what_is_gone_is_a_conflict(applying: Applying, raw: Raw) -> None:
    created = await applying.ok("one", config_map("a", {"x": "1"}))
    await raw.ok("DELETE", applying.path)
    answer = await applying("one", config_map("a", {"x": "2"}, uid=created["metadata"]["uid"]))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "uid mismatch" in answer.message


async def test_apply_may_not_bring_managed_fields(applying: Applying) -> None:
    answer = await applying("one", config_map("a", None, managedFields=[{"manager": "x"}]))
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "metadata.managedFields must be nil"


async def test_an_empty_list_of_managed_fields_forgets_them(applying: Applying, raw: Raw) -> None:
    await applying.ok("one", config_map("a", {"x": "1"}))
    bare = await raw.ok("PATCH", applying.path, {"metadata": {"managedFields": [{}]}}, MERGE)
    assert managers(bare) == {}
    taken = await applying.ok("two", config_map("a", {"x": "1"}))
    assert ("two", "Apply", "") in managers(taken)


async def test_list_items_with_a_key_are_owned_one_by_one(applying_widget: Applying, customs: Customs) -> None:
    await applying_widget.ok("one", customs.widget("a", parts=[{"name": "x", "count": 2}]))
    both = await applying_widget.ok("two", without_size(customs.widget("a", parts=[{"name": "y"}])))
    assert both["spec"]["parts"] == [{"name": "x", "count": 2}, {"name": "y", "count": 1}]
    assert managers(both)["two", "Apply", ""] == {"f:spec": {"f:parts": {'k:{"name":"y"}': {".": {}, "f:name": {}}}}}, (
        "a default inside an item belongs to nobody"
    )
    answer = await applying_widget("two", without_size(customs.widget("a", parts=[{"name": "x", "count": 3}])))
    assert [cause["field"] for cause in answer.causes] == ['.spec.parts[name="x"].count']
    less = await applying_widget.ok("one", customs.widget("a"))
    assert less["spec"]["parts"] == [{"name": "y", "count": 1}]


async def test_an_atomic_list_has_one_owner(applying_widget: Applying, customs: Customs) -> None:
    created = await applying_widget.ok("one", customs.widget("a", steps=["b", "c"]))
    assert managers(created)["one", "Apply", ""]["f:spec"]["f:steps"] == {}
    answer = await applying_widget("two", without_size(customs.widget("a", steps=["b", "c", "d"])))
    assert [cause["field"] for cause in answer.causes] == [".spec.steps"]
    taken = await applying_widget.ok("two", without_size(customs.widget("a", steps=["d"])), force=True)
    assert taken["spec"]["steps"] == ["d"]


async def test_items_of_a_set_are_owned_one_by_one(applying_widget: Applying, customs: Customs) -> None:
    await applying_widget.ok("one", customs.widget("a", tags=["x", "y"]))
    both = await applying_widget.ok("two", without_size(customs.widget("a", tags=["y", "z"])))
    assert sorted(both["spec"]["tags"]) == ["x", "y", "z"]
    assert managers(both)["two", "Apply", ""] == {"f:spec": {"f:tags": {'v:"y"': {}, 'v:"z"': {}}}}
    less = await applying_widget.ok("one", customs.widget("a"))
    assert sorted(less["spec"]["tags"]) == ["y", "z"]


async def test_defaulted_fields_belong_to_nobody_until_someone_names_them(
    applying_widget: Applying, customs: Customs
) -> None:
    created = await applying_widget.ok("one", customs.widget("a"))
    assert created["spec"]["replicas"] == 1
    assert managers(created) == {("one", "Apply", ""): {"f:spec": {"f:size": {}}}}
    scaled = await applying_widget.ok("two", without_size(customs.widget("a", replicas=3)))
    assert scaled["spec"]["replicas"] == 3


async def test_status_applied_through_its_subresource_is_owned_there(
    applying_widget: Applying, customs: Customs
) -> None:
    await applying_widget.ok("one", customs.widget("a"))
    status = {**without_size(customs.widget("a")), "status": {"phase": "Ready"}}
    written = await applying_widget.ok("operator", status, sub="/status")
    assert written["status"] == {"phase": "Ready"}
    assert managers(written) == {
        ("one", "Apply", ""): {"f:spec": {"f:size": {}}},
        ("operator", "Apply", "status"): {"f:status": {"f:phase": {}}},
    }


async def test_conditions_are_applied_one_by_one_by_their_type(applying_widget: Applying, customs: Customs) -> None:
    await applying_widget.ok("one", customs.widget("a"))
    bare = without_size(customs.widget("a"))
    ready, synced = ({"type": kind, "status": "True"} for kind in ("Ready", "Synced"))
    await applying_widget.ok("x", {**bare, "status": {"conditions": [ready]}}, sub="/status")
    both = await applying_widget.ok("y", {**bare, "status": {"conditions": [synced]}}, sub="/status")
    assert both["status"]["conditions"] == [ready, synced]


async def test_apply_of_the_whole_object_ignores_its_status(applying_widget: Applying, customs: Customs) -> None:
    created = await applying_widget.ok("one", {**customs.widget("a"), "status": {"phase": "Ready"}})
    assert "status" not in created
    assert managers(created) == {("one", "Apply", ""): {"f:spec": {"f:size": {}}}}


async def test_containers_of_a_deployment_are_owned_by_their_names(raw: Raw, namespace: str) -> None:
    applying = Applying(raw, DEPLOYMENTS.named("a", namespace).path)
    await applying.ok("one", deployment("a", 0, "main"))
    template = {"spec": {"containers": [{"name": "side", "image": "registry.invalid/side:1"}]}}
    more = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": template}}
    both = await applying.ok("two", more)
    assert [c["name"] for c in both["spec"]["template"]["spec"]["containers"]] == ["main", "side"]
    template["spec"]["containers"] = [{"name": "main", "image": "registry.invalid/none:2"}]
    answer = await applying("two", more)
    assert [c["field"] for c in answer.causes] == ['.spec.template.spec.containers[name="main"].image']


async def test_replicas_given_up_to_an_autoscaler_stay_as_they_are(raw: Raw, namespace: str) -> None:
    applying = Applying(raw, DEPLOYMENTS.named("a", namespace).path)
    await applying.ok("one", deployment("a", 1))
    await raw.ok("PATCH", f"{applying.path}/scale?fieldManager=scaler", {"spec": {"replicas": 2}}, MERGE)
    item = deployment("a")
    del item["spec"]["replicas"]
    given_up = await applying.ok("one", item)
    assert given_up["spec"]["replicas"] == 2
    assert managers(given_up)["scaler", "Update", "scale"] == {"f:spec": {"f:replicas": {}}}


def without_size(widget: RawObject) -> RawObject:
    """The same widget without the field that the first manager owns."""
    spec = {name: value for name, value in widget["spec"].items() if name != "size"}
    return {**{key: value for key, value in widget.items() if key != "spec"}, **({"spec": spec} if spec else {})}
