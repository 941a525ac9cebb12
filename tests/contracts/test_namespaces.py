"""A namespace ends in steps: it is marked, emptied, closed to newcomers, and only then gone."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import CONFIG_MAPS, NAMESPACES, config_map
from tests.contracts.servers import MERGE, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

HOLD = "contracts.windlass.dev/hold"


@pytest.fixture
async def own(raw: Raw) -> AsyncIterator[RawObject]:
    """A namespace that the test may end."""
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"contracts-{uuid.uuid4().hex[:10]}"}}
    created = await raw.ok("POST", NAMESPACES.everywhere.path, item)
    yield created
    await raw("DELETE", path_of(created))


def path_of(namespace: RawObject) -> str:
    return NAMESPACES.named(namespace["metadata"]["name"]).path


def maps_in(namespace: RawObject) -> str:
    return CONFIG_MAPS.in_namespace(namespace["metadata"]["name"]).path


async def test_a_new_namespace_is_active_and_labelled_with_its_name(own: RawObject) -> None:
    name = own["metadata"]["name"]
    assert own["status"] == {"phase": "Active"}
    assert own["spec"] == {"finalizers": ["kubernetes"]}
    assert own["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert "generation" not in own["metadata"]


async def test_deleting_answers_with_the_namespace_terminating(raw: Raw, own: RawObject) -> None:
    await raw.ok("POST", maps_in(own), config_map("a", None, finalizers=[HOLD]))
    marked = await raw.ok("DELETE", path_of(own))
    assert marked["kind"] == "Namespace"
    assert marked["status"]["phase"] == "Terminating"
    assert marked["spec"]["finalizers"] == ["kubernetes"]
    assert "deletionTimestamp" in marked["metadata"]
    await raw.ok("PATCH", f"{maps_in(own)}/a", {"metadata": {"finalizers": None}}, MERGE)


@pytest.mark.controllers
async def test_a_namespace_goes_with_all_that_is_in_it(raw: Raw, own: RawObject) -> None:
    await raw.ok("POST", maps_in(own), config_map("a"))
    await raw.ok("DELETE", path_of(own))

    async def is_gone() -> bool:
        return (await raw("GET", path_of(own))).status == 404

    await until(is_gone, "the end of the namespace")
    assert (await raw.ok("GET", maps_in(own)))["items"] == []


@pytest.mark.controllers
async def test_a_namespace_waits_for_finalizers_of_its_content_and_says_so(raw: Raw, own: RawObject) -> None:
    await raw.ok("POST", maps_in(own), config_map("a", None, finalizers=[HOLD]))
    await raw.ok("DELETE", path_of(own))

    async def conditions() -> dict[str, RawObject]:
        found = await raw.ok("GET", path_of(own))
        return {c["type"]: c for c in found["status"].get("conditions", [])}

    found = await until(conditions, "conditions")
    assert {name: (c["status"], c["reason"]) for name, c in found.items()} == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted"),
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain"),
    }
    assert f"{HOLD} in 1 resource instances" in found["NamespaceFinalizersRemaining"]["message"]
    assert "deletionTimestamp" in (await raw.ok("GET", f"{maps_in(own)}/a"))["metadata"]
    await raw.ok("PATCH", f"{maps_in(own)}/a", {"metadata": {"finalizers": None}}, MERGE)


async def test_nothing_is_created_in_a_namespace_that_ends(raw: Raw, own: RawObject) -> None:
    await raw.ok("POST", maps_in(own), config_map("a", None, finalizers=[HOLD]))
    await raw.ok("DELETE", path_of(own))
    answer = await raw("POST", maps_in(own), config_map("b"))
    name = own["metadata"]["name"]
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert f"unable to create new content in namespace {name} because it is being terminated" in answer.message
    assert answer.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    await raw.ok("PATCH", f"{maps_in(own)}/a", {"data": {"x": "1"}}, MERGE)
    await raw.ok("PATCH", f"{maps_in(own)}/a", {"metadata": {"finalizers": None}}, MERGE)


async def test_nothing_is_created_in_a_namespace_that_is_not_there(raw: Raw) -> None:
    answer = await raw("POST", CONFIG_MAPS.in_namespace("no-such-namespace").path, config_map("a"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'namespaces "no-such-namespace" not found'
    assert answer.json["details"] == {"name": "no-such-namespace", "kind": "namespaces"}


async def test_the_name_of_a_namespace_that_ends_is_taken(raw: Raw, own: RawObject) -> None:
    await raw.ok("POST", maps_in(own), config_map("a", None, finalizers=[HOLD]))
    await raw.ok("DELETE", path_of(own))
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own["metadata"]["name"]}}
    answer = await raw("POST", NAMESPACES.everywhere.path, item)
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    await raw.ok("PATCH", f"{maps_in(own)}/a", {"metadata": {"finalizers": None}}, MERGE)


async def test_the_name_label_cannot_be_lost(raw: Raw, own: RawObject) -> None:
    same = await raw.ok("PATCH", path_of(own), {"metadata": {"labels": None}}, MERGE)
    assert same["metadata"]["labels"] == {"kubernetes.io/metadata.name": own["metadata"]["name"]}


async def test_a_namespace_may_be_selected_by_its_phase(raw: Raw, own: RawObject) -> None:
    name = own["metadata"]["name"]
    query = f"fieldSelector=metadata.name%3D{name},status.phase%3DActive"
    found = await raw.ok("GET", f"{NAMESPACES.everywhere.path}?{query}")
    assert [item["metadata"]["name"] for item in found["items"]] == [name]


@pytest.mark.controllers
async def test_a_namespace_gets_a_default_service_account_and_the_root_certificate(raw: Raw, own: RawObject) -> None:
    name = own["metadata"]["name"]

    async def both_there() -> bool:
        account = await raw("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")
        return account.status == 200 and (await raw("GET", f"{maps_in(own)}/kube-root-ca.crt")).status == 200

    await until(both_there, "the furniture of the namespace")


async def test_the_default_namespace_may_not_be_deleted(raw: Raw) -> None:
    answer = await raw("DELETE", NAMESPACES.named("default").path)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert "this namespace may not be deleted" in answer.message
