"""What a server says about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.servers import until

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


async def test_the_version(raw: Raw) -> None:
    found = await raw.ok("GET", "/version")
    assert found["gitVersion"].startswith("v1.")
    assert found["major"] == "1"
    assert int(found["minor"].rstrip("+")) >= 30


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
async def test_health(raw: Raw, path: str) -> None:
    answer = await raw("GET", path)
    assert (answer.status, answer.body) == (200, b"ok")


async def test_the_versions_of_the_core_group(raw: Raw) -> None:
    found = await raw.ok("GET", "/api")
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])


async def test_the_groups(raw: Raw, customs: Customs) -> None:
    found = await raw.ok("GET", "/apis")
    assert (found["kind"], found["apiVersion"]) == ("APIGroupList", "v1")
    groups = {group["name"]: group for group in found["groups"]}
    assert {"apps", "batch", "apiextensions.k8s.io", "coordination.k8s.io", "policy", customs.group} <= set(groups)
    version = {"groupVersion": "apps/v1", "version": "v1"}
    assert groups["apps"]["versions"] == [version]
    assert groups["apps"]["preferredVersion"] == version


async def test_one_group(raw: Raw, customs: Customs) -> None:
    for name in ("apps", customs.group):
        found = await raw.ok("GET", f"/apis/{name}")
        assert (found["kind"], found["name"]) == ("APIGroup", name)
        assert found["preferredVersion"]["groupVersion"] == f"{name}/v1"


async def test_the_resources_of_a_version(raw: Raw) -> None:
    found = await raw.ok("GET", "/api/v1")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "v1")
    resources = {entry["name"]: entry for entry in found["resources"]}
    assert {"pods", "pods/log", "pods/eviction", "pods/status", "serviceaccounts/token", "namespaces"} <= set(resources)
    pods = resources["pods"]
    assert (pods["kind"], pods["namespaced"], pods["singularName"], pods["shortNames"]) == ("Pod", True, "pod", ["po"])
    assert set(pods["verbs"]) == {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert resources["namespaces"]["namespaced"] is False
    assert set(resources["namespaces"]["verbs"]) == set(pods["verbs"]) - {"deletecollection"}
    eviction = resources["pods/eviction"]
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")


async def test_the_scale_subresource_names_its_kind(raw: Raw, customs: Customs) -> None:
    for version, name in (("apps/v1", "deployments/scale"), (f"{customs.group}/v1", "widgets/scale")):
        found = await raw.ok("GET", f"/apis/{version}")
        [scale] = [entry for entry in found["resources"] if entry["name"] == name]
        assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def resources_of(item: RawObject) -> dict[str, RawObject]:
    return {entry["resource"]: entry for entry in item["versions"][0]["resources"]}


async def test_aggregated_discovery(raw: Raw, customs: Customs) -> None:
    accept = AGGREGATED.format("v2")
    answers = [await raw("GET", root, headers=(("Accept", accept),)) for root in ("/api", "/apis")]
    for answer in answers:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == accept
        assert (answer.json["kind"], answer.json["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
        assert answer.headers["Vary"] == "Accept"
    [core] = answers[0].json["items"]
    assert "name" not in core["metadata"]
    pods = resources_of(core)["pods"]
    assert pods["responseKind"] == {"group": "", "version": "", "kind": "Pod"}, "group and version only where others"
    assert (pods["scope"], pods["singularResource"], pods["shortNames"]) == ("Namespaced", "pod", ["po"])
    assert "log" in [entry["subresource"] for entry in pods["subresources"]]
    groups = {item["metadata"]["name"]: item for item in answers[1].json["items"]}
    assert groups["apps"]["versions"][0]["freshness"] == "Current"
    assert resources_of(groups["apiextensions.k8s.io"])["customresourcedefinitions"]["scope"] == "Cluster"
    widgets = resources_of(groups[customs.group])["widgets"]
    assert widgets["responseKind"] == {"group": customs.group, "version": "v1", "kind": "Widget"}
    assert sorted(entry["subresource"] for entry in widgets["subresources"]) == ["scale", "status"]
    assert set(widgets["verbs"]) >= {"get", "list", "watch", "create", "update", "patch", "delete"}


async def test_the_beta_of_aggregated_discovery_is_no_more(raw: Raw) -> None:
    answer = await raw("GET", "/apis", headers=(("Accept", AGGREGATED.format("v2beta1")),))
    assert (answer.status, answer.reason) == (406, "NotAcceptable")


async def test_groups_come_in_the_same_order_in_both_forms(raw: Raw) -> None:
    plain = await raw.ok("GET", "/apis")
    answer = await raw("GET", "/apis", headers=(("Accept", AGGREGATED.format("v2")),))

    def steady(names: list[str]) -> list[str]:
        return [name for name in names if not name.endswith("contracts.windlass.dev")]

    aggregated = steady([item["metadata"]["name"] for item in answer.json["items"]])
    assert aggregated == steady([group["name"] for group in plain["groups"]])


async def test_a_client_that_knows_nothing_of_aggregation_gets_the_plain_form(raw: Raw) -> None:
    answer = await raw("GET", "/apis", headers=(("Accept", "*/*"),))
    assert answer.json["kind"] == "APIGroupList"
    both = f"application/json;g=nonsense.example;v=v9;as=Nonsense,{AGGREGATED.format('v2')},application/json"
    answer = await raw("GET", "/apis", headers=(("Accept", both),))
    assert answer.json["kind"] == "APIGroupDiscoveryList"


async def test_open_api_is_there_group_by_group(raw: Raw, customs: Customs) -> None:
    async def index_with_ours() -> RawObject:
        found: RawObject = await raw.ok("GET", "/openapi/v3")
        return found if f"apis/{customs.group}/v1" in found["paths"] else {}

    index = await until(index_with_ours, "the custom group in the index")
    assert {"api/v1", "apis/apps/v1"} <= set(index["paths"])
    document = await raw.ok("GET", index["paths"][f"apis/{customs.group}/v1"]["serverRelativeURL"])
    assert document["openapi"].startswith("3.")
    kinds = [
        schema["x-kubernetes-group-version-kind"]
        for schema in document["components"]["schemas"].values()
        if "x-kubernetes-group-version-kind" in schema
    ]
    assert [{"group": customs.group, "version": "v1", "kind": "Widget"}] in kinds
