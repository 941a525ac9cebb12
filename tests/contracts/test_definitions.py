"""A custom kind comes to life with its definition, holds objects to its schema, and takes them along when it goes."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.contracts.definitions import SCALE, definition, install
from tests.contracts.kinds import CRDS
from tests.contracts.servers import APPLY, MERGE, until
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.objects import RawObject


@pytest.fixture
def namespace(shared_namespace: str) -> str:
    """These tests need only names of their own."""
    return shared_namespace


@pytest.fixture
def group() -> str:
    return f"d{uuid.uuid4().hex[:8]}.contracts.windlass.dev"


@pytest.fixture
async def things(kube: KubeClient, group: str) -> AsyncIterator[Resource]:
    """A kind of the test's own."""
    await install(kube, definition(group, "Thing", subresources={"status": {}}))
    yield Resource(group, "v1", "things", "Thing")
    await kube.delete(CRDS.named(f"things.{group}"))


@pytest.fixture
def widgets(customs: Customs, namespace: str) -> str:
    return customs.widgets.in_namespace(namespace).path


def conditions(item: RawObject) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in item.get("status", {}).get("conditions") or []}


async def test_a_definition_becomes_established_with_its_names_accepted(raw: Raw, things: Resource) -> None:
    found = await raw.ok("GET", CRDS.named(f"things.{things.group}").path)
    assert conditions(found) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    names = found["spec"]["names"]
    assert found["status"]["acceptedNames"] == names
    assert found["status"]["storedVersions"] == ["v1"]
    assert found["metadata"]["generation"] == 1


async def test_a_new_definition_has_no_conditions_but_null(raw: Raw, group: str) -> None:
    """A reader that expects a list finds none in the first moment."""
    created = await raw.ok("POST", CRDS.everywhere.path, definition(group, "Thing"))
    assert created["status"]["conditions"] is None
    assert created["status"]["storedVersions"] == ["v1"]
    await raw.ok("DELETE", CRDS.named(f"things.{group}").path)


async def test_defaults_of_a_definition_are_filled_in(raw: Raw, group: str) -> None:
    item = definition(group, "Thing")
    item["spec"]["names"] = {"kind": "Thing", "plural": "things"}
    created = await raw.ok("POST", f"{CRDS.everywhere.path}?dryRun=All", item)
    assert created["spec"]["names"] == {
        "kind": "Thing",
        "plural": "things",
        "listKind": "ThingList",
        "singular": "thing",
    }
    assert created["spec"]["conversion"] == {"strategy": "None"}


async def test_a_custom_kind_is_served_and_discovered(raw: Raw, things: Resource) -> None:
    found = await raw.ok("GET", f"/apis/{things.group}/v1")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", f"{things.group}/v1")
    resources = {entry["name"]: entry for entry in found["resources"]}
    assert sorted(resources) == ["things", "things/status"]
    thing = resources["things"]
    assert (thing["kind"], thing["namespaced"], thing["singularName"]) == ("Thing", True, "thing")
    assert thing["shortNames"] == ["thi"]
    assert sorted(thing["verbs"]) == sorted(
        ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    )
    assert sorted(resources["things/status"]["verbs"]) == ["get", "patch", "update"]


async def test_a_definition_takes_its_objects_along(raw: Raw, kube: KubeClient, group: str, namespace: str) -> None:
    await install(kube, definition(group, "Thing"))
    path = Resource(group, "v1", "things", "Thing").in_namespace(namespace).path
    item = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": "small"}}
    await until(lambda: _is_created(raw, path, item), "an object of the new kind")
    answer = await raw("DELETE", CRDS.named(f"things.{group}").path)
    assert answer.status == 200

    async def is_gone() -> bool:
        return (await raw("GET", CRDS.named(f"things.{group}").path)).status == 404

    await until(is_gone, "the end of the definition")

    async def is_not_served() -> bool:
        return (await raw("GET", path)).status == 404

    await until(is_not_served, "the end of the kind")
    await install(kube, definition(group, "Thing"))
    await until(lambda: _lists_nothing(raw, path), "the kind again, and empty")
    await raw.ok("DELETE", CRDS.named(f"things.{group}").path)


async def _is_created(raw: Raw, path: str, item: RawObject) -> bool:
    return (await raw("POST", path, item)).status == 201


async def _lists_nothing(raw: Raw, path: str) -> bool:
    answer = await raw("GET", path)
    return answer.status == 200 and answer.json["items"] == []


async def test_deleting_a_definition_marks_it_for_cleanup(raw: Raw, kube: KubeClient, group: str) -> None:
    await install(kube, definition(group, "Thing"))
    path = CRDS.named(f"things.{group}").path
    marked = await raw.ok("DELETE", path)
    assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert "deletionTimestamp" in marked["metadata"]


async def test_two_kinds_of_a_group_cannot_share_a_name(raw: Raw, things: Resource) -> None:
    rival = definition(things.group, "Rival")
    rival["spec"]["names"]["kind"] = "Thing"
    path = CRDS.named(f"rivals.{things.group}").path
    await raw.ok("POST", CRDS.everywhere.path, rival)

    async def verdict() -> dict[str, tuple[str, str]]:
        return conditions(await raw.ok("GET", path))

    found = await until(verdict, "a verdict on the names")
    assert found["NamesAccepted"] == ("False", "KindConflict")
    assert found["Established"] == ("False", "NotAccepted")
    await raw.ok("DELETE", path)


async def test_a_version_added_to_a_definition_is_served(raw: Raw, kube: KubeClient, things: Resource) -> None:
    path = CRDS.named(f"things.{things.group}").path
    found = await raw.ok("GET", path)
    newer = {**found["spec"]["versions"][0], "name": "v2", "storage": False}
    await raw.ok("PATCH", path, {"spec": {"versions": [*found["spec"]["versions"], newer]}}, MERGE)

    async def is_served() -> bool:
        return (await raw("GET", f"/apis/{things.group}/v2/things")).status == 200

    await until(is_served, "the second version")

    async def preferred() -> bool:
        found = (await kube.discover()).find("Thing", things.group)
        return found is not None and found.version == "v2"

    await until(preferred, "the newer version first in discovery")


DEFAULTS: list[Any] = [
    pytest.param({}, {"replicas": 1, "level": "normal"}, id="absent fields are filled in"),
    pytest.param({"replicas": 0}, {"replicas": 0, "level": "normal"}, id="a zero is no absence"),
    pytest.param({"replicas": None}, {"replicas": 1, "level": "normal"}, id="null where none may be is absence"),
    pytest.param({"level": None}, {"replicas": 1, "level": None}, id="null where it may be stays"),
    pytest.param({"note": None}, {"replicas": 1, "level": "normal", "note": None}, id="null without a default stays"),
    pytest.param(
        {"limits": {}}, {"replicas": 1, "level": "normal", "limits": {"cpu": 2}}, id="inside of what is there"
    ),
    pytest.param(
        {"parts": [{"name": "x"}]},
        {"replicas": 1, "level": "normal", "parts": [{"name": "x", "count": 1}]},
        id="inside of items",
    ),
]


@pytest.mark.parametrize(("given", "expected"), DEFAULTS)
async def test_defaults(
    raw: Raw, widgets: str, customs: Customs, given: RawObject, expected: RawObject, name: str
) -> None:
    created = await raw.ok("POST", widgets, customs.widget(name, **given))
    assert created["spec"] == {"size": "small", **expected}


PRUNING: list[Any] = [
    pytest.param({"unknown": 1}, {}, id="unknown fields"),
    pytest.param({"limits": {"cpu": 1, "unknown": 1}}, {"limits": {"cpu": 1}}, id="nested unknown fields"),
    pytest.param(
        {"parts": [{"name": "x", "count": 1, "unknown": 1}]}, {"parts": [{"name": "x", "count": 1}]}, id="in items"
    ),
    pytest.param(
        {"free": {"any": {"thing": [1, None]}}}, {"free": {"any": {"thing": [1, None]}}}, id="not where all is kept"
    ),
    pytest.param({"labels": {"any": "x"}}, {"labels": {"any": "x"}}, id="not in a mapping of any keys"),
    pytest.param({"port": 80}, {"port": 80}, id="int-or-string as a number"),
    pytest.param({"port": "http"}, {"port": "http"}, id="int-or-string as text"),
    pytest.param({"ratio": 1}, {"ratio": 1}, id="a whole number for a number"),
]


@pytest.mark.parametrize(("given", "kept"), PRUNING)
async def test_what_the_schema_does_not_know_is_dropped(
    raw: Raw, widgets: str, customs: Customs, given: RawObject, kept: RawObject, name: str
) -> None:
    created = await raw.ok("POST", widgets, customs.widget(name, **given))
    assert created["spec"] == {"size": "small", "replicas": 1, "level": "normal", **kept}


async def test_unknown_fields_at_the_top_are_dropped(raw: Raw, widgets: str, customs: Customs, name: str) -> None:
    created = await raw.ok("POST", widgets, {**customs.widget(name), "nonsense": 1})
    assert "nonsense" not in created


async def test_an_unknown_field_is_dropped_with_a_warning_by_default(
    raw: Raw, widgets: str, customs: Customs, name: str
) -> None:
    answer = await raw("POST", widgets, customs.widget(name, nonsense=1))
    assert answer.status == 201
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.nonsense\\""'


async def test_a_warning_is_not_given_where_unknown_fields_are_to_be_ignored(
    raw: Raw, widgets: str, customs: Customs, name: str
) -> None:
    answer = await raw("POST", f"{widgets}?fieldValidation=Ignore", customs.widget(name, nonsense=1))
    assert answer.status == 201
    assert "Warning" not in answer.headers


async def test_an_apply_of_an_unknown_custom_field_is_refused(
    raw: Raw, widgets: str, customs: Customs, name: str
) -> None:
    answer = await raw("PATCH", f"{widgets}/{name}?fieldManager=m", customs.widget(name, nonsense=1), APPLY)
    assert (answer.status, answer.reason) == (500, "")
    assert ".spec.nonsense: field not declared in schema" in answer.message


async def test_removing_a_defaulted_field_brings_the_default_back(
    raw: Raw, widgets: str, customs: Customs, name: str
) -> None:
    await raw.ok("POST", widgets, customs.widget(name, replicas=5))
    changed = await raw.ok("PATCH", f"{widgets}/{name}", {"spec": {"replicas": None}}, MERGE)
    assert changed["spec"]["replicas"] == 1


async def test_a_scale_subresource_needs_its_paths(raw: Raw, group: str) -> None:
    item = definition(group, "Thing", subresources={"scale": {**SCALE, "specReplicasPath": ".status.replicas"}})
    answer = await raw("POST", CRDS.everywhere.path, item)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "should be a json path under .spec" in answer.message
