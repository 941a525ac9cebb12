"""What is owned goes with its owner, after it, before it, or not at all, as the deletion says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import CONFIG_MAPS, DEPLOYMENTS, config_map, deployment, owner
from tests.contracts.servers import MERGE, until
from windlass.kube.client.resources import PODS

if TYPE_CHECKING:
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

HOLD = "contracts.windlass.dev/hold"
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.fixture
def path(namespace: str) -> str:
    return CONFIG_MAPS.in_namespace(namespace).path


@pytest.fixture
async def parent(raw: Raw, path: str) -> RawObject:
    created: RawObject = await raw.ok("POST", path, config_map("parent"))
    return created


async def child_of(raw: Raw, path: str, *owners: RawObject, name: str = "child", **more: object) -> RawObject:
    item = config_map(name, None, ownerReferences=list(owners), **more)
    created: RawObject = await raw.ok("POST", path, item)
    return created


async def is_gone(raw: Raw, path: str) -> bool:
    return (await raw("GET", path)).status == 404


@pytest.mark.controllers
async def test_background_deletes_the_owner_at_once_and_the_owned_after_it(
    raw: Raw, path: str, parent: RawObject
) -> None:
    await child_of(raw, path, owner(parent))
    answer = await raw.ok("DELETE", f"{path}/parent?propagationPolicy=Background")
    assert answer["status"] == "Success"
    assert await is_gone(raw, f"{path}/parent")
    await until(lambda: is_gone(raw, f"{path}/child"), "the cascade")


@pytest.mark.controllers
async def test_background_is_the_default(raw: Raw, path: str, parent: RawObject) -> None:
    await child_of(raw, path, owner(parent))
    await raw.ok("DELETE", f"{path}/parent")
    await until(lambda: is_gone(raw, f"{path}/child"), "the cascade")


async def test_foreground_marks_the_owner_with_a_finalizer(raw: Raw, path: str) -> None:
    parent = await raw.ok("POST", path, config_map("parent", None, finalizers=[HOLD]))
    marked = await raw.ok("DELETE", f"{path}/parent", {**OPTIONS, "propagationPolicy": "Foreground"})
    assert marked["metadata"]["uid"] == parent["metadata"]["uid"]
    assert "deletionTimestamp" in marked["metadata"]
    assert sorted(marked["metadata"]["finalizers"]) == [HOLD, "foregroundDeletion"]


@pytest.mark.controllers
async def test_foreground_keeps_the_owner_until_those_that_block_it_are_gone(
    raw: Raw, path: str, parent: RawObject
) -> None:
    await child_of(raw, path, owner(parent, blockOwnerDeletion=True), finalizers=[HOLD])
    await raw.ok("DELETE", f"{path}/parent", {**OPTIONS, "propagationPolicy": "Foreground"})

    async def is_marked() -> bool:
        return "deletionTimestamp" in (await raw.ok("GET", f"{path}/child"))["metadata"]

    await until(is_marked, "the deletion of the child")
    waiting = await raw.ok("GET", f"{path}/parent")
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    await raw.ok("PATCH", f"{path}/child", {"metadata": {"finalizers": None}}, MERGE)
    await until(lambda: is_gone(raw, f"{path}/parent"), "the end of the parent")


@pytest.mark.controllers
async def test_foreground_does_not_wait_for_those_that_do_not_block(raw: Raw, path: str, parent: RawObject) -> None:
    await child_of(raw, path, owner(parent), finalizers=[HOLD])
    await raw.ok("DELETE", f"{path}/parent", {**OPTIONS, "propagationPolicy": "Foreground"})
    await until(lambda: is_gone(raw, f"{path}/parent"), "the end of the parent")
    await raw.ok("PATCH", f"{path}/child", {"metadata": {"finalizers": None}}, MERGE)
    await until(lambda: is_gone(raw, f"{path}/child"), "the cascade")


async def test_orphan_marks_the_owner_with_a_finalizer(raw: Raw, path: str) -> None:
    await raw.ok("POST", path, config_map("parent", None, finalizers=[HOLD]))
    marked = await raw.ok("DELETE", f"{path}/parent", {**OPTIONS, "propagationPolicy": "Orphan"})
    assert sorted(marked["metadata"]["finalizers"]) == [HOLD, "orphan"]


@pytest.mark.controllers
async def test_orphan_frees_the_owned_and_then_deletes_the_owner(raw: Raw, path: str, parent: RawObject) -> None:
    child = await child_of(raw, path, owner(parent))
    await raw.ok("DELETE", f"{path}/parent", {**OPTIONS, "propagationPolicy": "Orphan"})
    await until(lambda: is_gone(raw, f"{path}/parent"), "the end of the parent")
    freed = await raw.ok("GET", f"{path}/child")
    assert freed["metadata"]["uid"] == child["metadata"]["uid"]
    assert "ownerReferences" not in freed["metadata"]


@pytest.mark.controllers
async def test_what_names_an_owner_that_is_not_there_is_collected(raw: Raw, path: str, parent: RawObject) -> None:
    await raw.ok("DELETE", f"{path}/parent")
    await child_of(raw, path, owner(parent))
    await until(lambda: is_gone(raw, f"{path}/child"), "the collection")


@pytest.mark.controllers
async def test_an_owner_is_its_uid_not_its_name(raw: Raw, path: str, parent: RawObject) -> None:
    await raw.ok("DELETE", f"{path}/parent")
    await raw.ok("POST", path, config_map("parent"))
    await child_of(raw, path, owner(parent))
    await until(lambda: is_gone(raw, f"{path}/child"), "the collection")


@pytest.mark.controllers
async def test_the_owned_stays_as_long_as_one_owner_does(raw: Raw, path: str, parent: RawObject) -> None:
    other = await raw.ok("POST", path, config_map("other"))
    await child_of(raw, path, owner(parent), owner(other))
    await raw.ok("DELETE", f"{path}/parent")

    async def has_one_owner() -> bool:
        references = (await raw.ok("GET", f"{path}/child"))["metadata"]["ownerReferences"]
        return [reference["name"] for reference in references] == ["other"]

    await until(has_one_owner, "the loss of one owner")
    await raw.ok("DELETE", f"{path}/other")
    await until(lambda: is_gone(raw, f"{path}/child"), "the cascade")


@pytest.mark.controllers
async def test_a_cascade_goes_down_all_levels(raw: Raw, path: str, parent: RawObject) -> None:
    child = await child_of(raw, path, owner(parent))
    await child_of(raw, path, owner(child), name="grandchild")
    await raw.ok("DELETE", f"{path}/parent")
    await until(lambda: is_gone(raw, f"{path}/grandchild"), "the cascade")


@pytest.mark.controllers
async def test_a_deployment_takes_its_pods_with_it_before_it_goes(raw: Raw, namespace: str) -> None:
    path, pods = DEPLOYMENTS.in_namespace(namespace).path, PODS.in_namespace(namespace).path
    await raw.ok("POST", path, deployment("web", 1))

    async def count() -> int:
        return len((await raw.ok("GET", f"{pods}?labelSelector=app%3Dweb"))["items"])

    await until(count, "a pod")
    await raw.ok("DELETE", f"{path}/web", {**OPTIONS, "propagationPolicy": "Foreground"})
    await until(lambda: is_gone(raw, f"{path}/web"), "the end of the Deployment")
    assert await count() == 0


@pytest.mark.parametrize(
    ("reference", "field"),
    [
        pytest.param({"uid": ""}, "metadata.ownerReferences.uid", id="no uid"),
        pytest.param({"name": ""}, "metadata.ownerReferences.name", id="no name"),
        pytest.param({"kind": ""}, "metadata.ownerReferences.kind", id="no kind"),
        pytest.param({"apiVersion": ""}, "metadata.ownerReferences.apiVersion", id="no version"),
    ],
)
async def test_an_owner_reference_is_complete(
    raw: Raw, path: str, parent: RawObject, reference: RawObject, field: str
) -> None:
    item = config_map("child", None, ownerReferences=[{**owner(parent), **reference}])
    answer = await raw("POST", path, item)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in [cause["field"] for cause in answer.causes]


async def test_only_one_owner_is_the_controller(raw: Raw, path: str, parent: RawObject) -> None:
    other = await raw.ok("POST", path, config_map("other"))
    references = [owner(parent, controller=True), owner(other, controller=True)]
    answer = await raw("POST", path, config_map("child", None, ownerReferences=references))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "Only one reference can have Controller set to true" in answer.message
