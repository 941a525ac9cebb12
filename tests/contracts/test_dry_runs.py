"""A dry run answers as the real thing would, and nothing of it stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import CONFIG_MAPS, DEPLOYMENTS, config_map, deployment
from tests.contracts.servers import APPLY, JSON_PATCH, MERGE

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.fixture
def path(namespace: str) -> str:
    return CONFIG_MAPS.in_namespace(namespace).path


@pytest.fixture
async def created(raw: Raw, path: str) -> RawObject:
    item: RawObject = await raw.ok("POST", path, config_map("a", {"x": "1"}))
    return item


async def test_a_dry_creation_gives_a_uid_but_no_version(raw: Raw, path: str) -> None:
    answer = await raw("POST", f"{path}?dryRun=All", config_map("a", {"x": "1"}))
    assert answer.status == 201
    meta = answer.json["metadata"]
    assert meta["uid"]
    assert meta["creationTimestamp"]
    assert "resourceVersion" not in meta
    assert (await raw("GET", f"{path}/a")).status == 404


async def test_a_dry_creation_generates_a_name(raw: Raw, path: str) -> None:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-"}}
    found = await raw.ok("POST", f"{path}?dryRun=All", item)
    assert found["metadata"]["name"].startswith("run-")


async def test_a_dry_creation_defaults_and_validates(raw: Raw, namespace: str, customs: Customs) -> None:
    widgets = f"{customs.widgets.in_namespace(namespace).path}?dryRun=All"
    assert (await raw.ok("POST", widgets, customs.widget("a")))["spec"]["replicas"] == 1
    assert (await raw("POST", widgets, customs.widget("a", size="huge"))).status == 422
    deployments = f"{DEPLOYMENTS.in_namespace(namespace).path}?dryRun=All"
    found = await raw.ok("POST", deployments, deployment("a"))
    assert found["spec"]["strategy"]["type"] == "RollingUpdate"
    assert found["metadata"]["generation"] == 1


async def test_a_dry_creation_of_what_is_there_is_refused(raw: Raw, path: str, created: RawObject) -> None:
    answer = await raw("POST", f"{path}?dryRun=All", config_map(created["metadata"]["name"]))
    assert (answer.status, answer.reason) == (409, "AlreadyExists")


@pytest.mark.parametrize("how", ["replace", "merge patch", "JSON patch", "apply"])
async def test_a_dry_change_shows_the_result_and_keeps_the_version(
    raw: Raw, path: str, created: RawObject, how: str
) -> None:
    target = f"{path}/a?dryRun=All&fieldManager=dry"
    match how:
        case "replace":
            shown = await raw.ok("PUT", target, config_map("a", {"x": "2"}))
        case "merge patch":
            shown = await raw.ok("PATCH", target, {"data": {"x": "2"}}, MERGE)
        case "JSON patch":
            shown = await raw.ok("PATCH", target, [{"op": "replace", "path": "/data/x", "value": "2"}], JSON_PATCH)
        case _:
            shown = await raw.ok("PATCH", f"{target}&force=true", config_map("a", {"x": "2"}), APPLY)
    assert shown["data"] == {"x": "2"}
    assert shown["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    assert "dry" in [entry["manager"] for entry in shown["metadata"]["managedFields"]]
    assert await raw.ok("GET", f"{path}/a") == created


async def test_a_dry_change_is_not_told_to_watchers(raw: Raw, path: str, created: RawObject) -> None:
    query = f"resourceVersion={created['metadata']['resourceVersion']}&fieldSelector=metadata.name%3Da"
    async with raw.watch(f"{path}?{query}") as watching:
        await raw.ok("PATCH", f"{path}/a?dryRun=All", {"data": {"x": "2"}}, MERGE)
        await raw.ok("PATCH", f"{path}/a", {"data": {"x": "3"}}, MERGE)
        event = await watching.event()
    assert event["object"]["data"] == {"x": "3"}


async def test_a_dry_apply_finds_conflicts(raw: Raw, path: str, created: RawObject) -> None:
    assert created
    answer = await raw("PATCH", f"{path}/a?dryRun=All&fieldManager=dry", config_map("a", {"x": "2"}), APPLY)
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_a_dry_apply_of_what_is_not_there_shows_what_it_would_be(raw: Raw, path: str) -> None:
    answer = await raw("PATCH", f"{path}/a?dryRun=All&fieldManager=dry", config_map("a", {"x": "1"}), APPLY)
    assert answer.status == 201
    assert answer.json["metadata"]["uid"]
    assert (await raw("GET", f"{path}/a")).status == 404


@pytest.mark.parametrize("where", ["query", "body"])
async def test_a_dry_deletion_leaves_the_object(raw: Raw, path: str, created: RawObject, where: str) -> None:
    if where == "query":
        answer = await raw("DELETE", f"{path}/a?dryRun=All")
    else:
        answer = await raw("DELETE", f"{path}/a", {**OPTIONS, "dryRun": ["All"]})
    assert answer.status == 200
    assert answer.json["status"] == "Success"
    assert await raw.ok("GET", f"{path}/a") == created


async def test_beside_options_in_the_body_those_in_the_query_are_not_looked_at(
    raw: Raw, path: str, created: RawObject
) -> None:
    """Who asks for a dry run in the query and sends a body, too, deletes in earnest."""
    assert created
    await raw.ok("DELETE", f"{path}/a?dryRun=All", OPTIONS)
    assert (await raw("GET", f"{path}/a")).status == 404


async def test_a_dry_deletion_checks_its_preconditions(raw: Raw, path: str, created: RawObject) -> None:
    assert created
    options = {**OPTIONS, "dryRun": ["All"], "preconditions": {"resourceVersion": "1"}}
    assert (await raw("DELETE", f"{path}/a", options)).status == 409
