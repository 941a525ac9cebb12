"""Deleting an object with finalizers only marks it; it goes when the last of them is taken off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import CONFIG_MAPS, config_map
from tests.contracts.servers import APPLY, JSON_PATCH, MERGE

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

HOLD = "contracts.windlass.dev/hold"
MORE = "contracts.windlass.dev/more"


@pytest.fixture
def path(namespace: str) -> str:
    return CONFIG_MAPS.named("a", namespace).path


@pytest.fixture
async def held(raw: Raw, path: str, namespace: str) -> RawObject:
    item = config_map("a", {"x": "1"}, finalizers=[HOLD])
    created: RawObject = await raw.ok("POST", CONFIG_MAPS.in_namespace(namespace).path, item)
    return created


@pytest.fixture
async def deleting(raw: Raw, path: str, held: RawObject) -> RawObject:
    assert held
    marked: RawObject = await raw.ok("DELETE", path)
    return marked


async def test_a_delete_marks_and_answers_with_the_object(raw: Raw, path: str, held: RawObject) -> None:
    answer = await raw("DELETE", path)
    assert answer.status == 200
    marked = answer.json
    assert (marked["kind"], marked["metadata"]["uid"]) == ("ConfigMap", held["metadata"]["uid"])
    assert marked["metadata"]["deletionTimestamp"] >= held["metadata"]["creationTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert int(marked["metadata"]["resourceVersion"]) > int(held["metadata"]["resourceVersion"])
    assert (await raw.ok("GET", path)) == marked


async def test_deleting_twice_changes_nothing_more(raw: Raw, path: str, deleting: RawObject) -> None:
    again = await raw.ok("DELETE", path)
    assert again["metadata"]["deletionTimestamp"] == deleting["metadata"]["deletionTimestamp"]
    assert again["metadata"]["resourceVersion"] == deleting["metadata"]["resourceVersion"]


@pytest.mark.parametrize("how", ["merge patch", "JSON patch", "replace"])
async def test_taking_off_the_last_finalizer_removes_the_object(
    raw: Raw, path: str, deleting: RawObject, how: str
) -> None:
    match how:
        case "merge patch":
            answer = await raw("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        case "JSON patch":
            answer = await raw("PATCH", path, [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH)
        case _:
            del deleting["metadata"]["finalizers"]
            answer = await raw("PUT", path, deleting)
    assert answer.status == 200
    assert answer.json["metadata"]["name"] == "a"
    assert "finalizers" not in answer.json["metadata"]
    assert (await raw("GET", path)).status == 404


async def test_taking_off_one_of_two_leaves_it(raw: Raw, path: str, namespace: str) -> None:
    item = config_map("a", None, finalizers=[HOLD, MORE])
    await raw.ok("POST", CONFIG_MAPS.in_namespace(namespace).path, item)
    await raw.ok("DELETE", path)
    left = await raw.ok("PATCH", path, {"metadata": {"finalizers": [MORE]}}, MERGE)
    assert left["metadata"]["finalizers"] == [MORE]
    assert (await raw("GET", path)).status == 200


async def test_taking_off_finalizers_without_deletion_leaves_it(raw: Raw, path: str, held: RawObject) -> None:
    assert held
    await raw.ok("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    assert (await raw("GET", path)).status == 200


async def test_no_finalizer_may_be_added_while_deleting(raw: Raw, path: str, deleting: RawObject) -> None:
    assert deleting
    answer = await raw("PATCH", path, {"metadata": {"finalizers": [HOLD, MORE]}}, MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    cause = answer.causes[0]
    assert (cause["field"], cause["reason"]) == ("metadata.finalizers", "FieldValueForbidden")
    assert "no new finalizers can be added if the object is being deleted" in cause["message"]


async def test_an_object_being_deleted_can_still_be_changed(raw: Raw, path: str, deleting: RawObject) -> None:
    changed = await raw.ok("PATCH", path, {"data": {"x": "2"}}, MERGE)
    assert changed["data"] == {"x": "2"}
    assert changed["metadata"]["deletionTimestamp"] == deleting["metadata"]["deletionTimestamp"]


async def test_a_deletion_cannot_be_taken_back(raw: Raw, path: str, deleting: RawObject) -> None:
    same = await raw.ok("PATCH", path, {"metadata": {"deletionTimestamp": None}}, MERGE)
    assert same["metadata"]["deletionTimestamp"] == deleting["metadata"]["deletionTimestamp"]


async def test_nobody_else_may_have_its_name_meanwhile(
    raw: Raw, path: str, deleting: RawObject, namespace: str
) -> None:
    assert deleting
    answer = await raw("POST", CONFIG_MAPS.in_namespace(namespace).path, config_map("a"))
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert "object is being deleted" in answer.message
    assert (await raw("GET", path)).status == 200


async def test_a_finalizer_needs_a_qualified_name(raw: Raw, namespace: str) -> None:
    path = CONFIG_MAPS.in_namespace(namespace).path
    answer = await raw("POST", path, config_map("b", None, finalizers=["hold"]))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "metadata.finalizers" in answer.message


async def test_watchers_see_the_mark_as_a_change_and_the_end_as_a_deletion(
    raw: Raw, path: str, held: RawObject, namespace: str
) -> None:
    query = f"resourceVersion={held['metadata']['resourceVersion']}&fieldSelector=metadata.name%3Da"
    async with raw.watch(f"{CONFIG_MAPS.in_namespace(namespace).path}?{query}") as w:
        await raw.ok("DELETE", path)
        await raw.ok("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        events = [await w.event() for _ in range(2)]
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
    assert all("deletionTimestamp" in event["object"]["metadata"] for event in events)


async def test_finalizers_are_applied_one_by_one(raw: Raw, path: str, held: RawObject) -> None:
    both = await raw.ok("PATCH", f"{path}?fieldManager=two", config_map("a", None, finalizers=[MORE]), APPLY)
    assert held["metadata"]["finalizers"] == [HOLD]
    assert sorted(both["metadata"]["finalizers"]) == [HOLD, MORE]
    less = await raw.ok("PATCH", f"{path}?fieldManager=two", config_map("a"), APPLY)
    assert less["metadata"]["finalizers"] == [HOLD]


async def test_marking_a_custom_object_bumps_its_generation(raw: Raw, namespace: str, customs: Customs) -> None:
    path = customs.widgets.in_namespace(namespace).path
    item = customs.widget("a")
    item["metadata"]["finalizers"] = [HOLD]
    created = await raw.ok("POST", path, item)
    marked = await raw.ok("DELETE", f"{path}/a")
    assert (created["metadata"]["generation"], marked["metadata"]["generation"]) == (1, 2)
    await raw.ok("PATCH", f"{path}/a", {"metadata": {"finalizers": []}}, MERGE)
    assert (await raw("GET", f"{path}/a")).status == 404
