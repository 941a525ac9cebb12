"""Who writes with an old idea of an object is told so, and nothing happens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import CONFIG_MAPS, config_map
from tests.contracts.servers import JSON_PATCH, MERGE

if TYPE_CHECKING:
    from tests.contracts.servers import Answer, Raw
    from windlass.kube.client.objects import RawObject

OTHER_UID = "00000000-0000-4000-8000-000000000000"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
DELETE_OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.fixture
async def collection(namespace: str) -> str:
    return CONFIG_MAPS.in_namespace(namespace).path


@pytest.fixture
async def created(raw: Raw, collection: str) -> RawObject:
    item: RawObject = await raw.ok("POST", collection, config_map("a", {"k": "1"}))
    return item


@pytest.fixture
async def outdated(raw: Raw, collection: str, created: RawObject) -> RawObject:
    """An object as it was before somebody changed it."""
    await raw.ok("PATCH", f"{collection}/a", {"data": {"k": "2"}}, MERGE)
    return created


def is_modified_conflict(answer: Answer) -> None:
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'
    assert answer.json["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_created_object_has_uid_version_and_time(created: RawObject, namespace: str) -> None:
    meta = created["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"[1-9][0-9]*", meta["resourceVersion"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert (meta["namespace"], meta["name"]) == (namespace, "a")
    assert "generation" not in meta, "kinds without a spec have none"


async def test_every_write_gives_a_greater_version(raw: Raw, collection: str, created: RawObject) -> None:
    versions = [int(created["metadata"]["resourceVersion"])]
    for value in "23":
        changed = await raw.ok("PATCH", f"{collection}/a", {"data": {"k": value}}, MERGE)
        versions.append(int(changed["metadata"]["resourceVersion"]))
    assert versions == sorted(set(versions))


async def test_a_write_that_changes_nothing_gives_no_new_version(raw: Raw, collection: str, created: RawObject) -> None:
    same = await raw.ok("PATCH", f"{collection}/a", {"data": {"k": "1"}}, MERGE)
    assert same["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    same = await raw.ok("PUT", f"{collection}/a", created)
    assert same["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_replacing_an_outdated_version_is_a_conflict(raw: Raw, collection: str, outdated: RawObject) -> None:
    is_modified_conflict(await raw("PUT", f"{collection}/a", outdated))
    assert (await raw.ok("GET", f"{collection}/a"))["data"] == {"k": "2"}


async def test_replacing_without_a_version_overwrites(raw: Raw, collection: str, outdated: RawObject) -> None:
    del outdated["metadata"]["resourceVersion"]
    replaced = await raw.ok("PUT", f"{collection}/a", outdated)
    assert replaced["data"] == {"k": "1"}


async def test_replacing_keeps_uid_and_creation_time_when_they_are_left_out(
    raw: Raw, collection: str, created: RawObject
) -> None:
    replaced = await raw.ok("PUT", f"{collection}/a", config_map("a", {"k": "new"}))
    for field in ("uid", "creationTimestamp"):
        assert replaced["metadata"][field] == created["metadata"][field]


async def test_replacing_with_another_uid_is_a_conflict(raw: Raw, collection: str, created: RawObject) -> None:
    created["metadata"]["uid"] = OTHER_UID
    answer = await raw("PUT", f"{collection}/a", created)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer.message
    assert OTHER_UID in answer.message


async def test_a_merge_patch_that_names_an_outdated_version_is_a_conflict(
    raw: Raw, collection: str, outdated: RawObject
) -> None:
    version = outdated["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"k": "3"}}
    is_modified_conflict(await raw("PATCH", f"{collection}/a", patch, MERGE))


async def test_a_merge_patch_that_names_the_current_version_is_done(
    raw: Raw, collection: str, created: RawObject
) -> None:
    patch = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"k": "3"}}
    assert (await raw.ok("PATCH", f"{collection}/a", patch, MERGE))["data"] == {"k": "3"}


async def test_a_merge_patch_with_another_uid_is_invalid(raw: Raw, collection: str, created: RawObject) -> None:
    """Unlike a replacement, for which it is a conflict."""
    answer = await raw("PATCH", f"{collection}/a", {"metadata": {"uid": OTHER_UID}}, MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert {cause["field"] for cause in answer.causes} == {"metadata.uid"}
    assert (await raw.ok("GET", f"{collection}/a"))["metadata"]["uid"] == created["metadata"]["uid"]


async def test_a_json_patch_can_test_the_version(raw: Raw, collection: str, outdated: RawObject) -> None:
    version = outdated["metadata"]["resourceVersion"]
    patch = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/data/k", "value": "3"},
    ]
    answer = await raw("PATCH", f"{collection}/a", patch, JSON_PATCH)
    assert (answer.status, answer.reason) == (422, "Invalid")


@pytest.mark.parametrize("field", ["resourceVersion", "uid"])
async def test_a_delete_whose_precondition_fails_is_a_conflict(
    raw: Raw, collection: str, outdated: RawObject, field: str
) -> None:
    value = {"uid": OTHER_UID, "resourceVersion": outdated["metadata"]["resourceVersion"]}[field]
    answer = await raw("DELETE", f"{collection}/a", {**DELETE_OPTIONS, "preconditions": {field: value}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    name = {"uid": "UID", "resourceVersion": "ResourceVersion"}[field]
    assert f"the {name} in the precondition ({value}) does not match the {name} in record (" in answer.message
    assert (await raw("GET", f"{collection}/a")).status == 200


async def test_a_delete_whose_preconditions_hold_is_done(raw: Raw, collection: str, created: RawObject) -> None:
    conditions = {name: created["metadata"][name] for name in ("uid", "resourceVersion")}
    answer = await raw("DELETE", f"{collection}/a", {**DELETE_OPTIONS, "preconditions": conditions})
    assert answer.status == 200
    assert (await raw("GET", f"{collection}/a")).status == 404


async def test_a_delete_answers_with_a_status_that_names_the_uid(raw: Raw, collection: str, created: RawObject) -> None:
    answer = await raw.ok("DELETE", f"{collection}/a")
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]}


async def test_creating_a_name_twice_is_refused(raw: Raw, collection: str, created: RawObject) -> None:
    answer = await raw("POST", collection, config_map("a"))
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'configmaps "a" already exists'
    assert answer.json["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_recreated_object_has_another_uid_and_a_greater_version(
    raw: Raw, collection: str, created: RawObject
) -> None:
    await raw.ok("DELETE", f"{collection}/a")
    again = await raw.ok("POST", collection, config_map("a"))
    assert again["metadata"]["uid"] != created["metadata"]["uid"]
    assert int(again["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


async def test_a_generated_name_has_five_more_characters(raw: Raw, collection: str) -> None:
    names = set()
    for _ in range(5):
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-"}}
        created = await raw.ok("POST", collection, item)
        assert created["metadata"]["generateName"] == "run-"
        names.add(created["metadata"]["name"])
    assert len(names) == 5
    assert all(re.fullmatch(r"run-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


async def test_a_name_wins_over_a_name_to_be_generated(raw: Raw, collection: str) -> None:
    created = await raw.ok("POST", collection, config_map("exact", generateName="run-"))
    assert created["metadata"]["name"] == "exact"


async def test_what_a_client_may_not_choose_is_overwritten(raw: Raw, collection: str) -> None:
    given = {"uid": OTHER_UID, "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x", "generation": 7}
    created = await raw.ok("POST", collection, config_map("b", None, **given))
    assert created["metadata"]["uid"] != OTHER_UID
    assert not created["metadata"]["creationTimestamp"].startswith("2001")
    assert "selfLink" not in created["metadata"]
