"""Tables: the rows and columns that `kubectl get` prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import CONFIG_MAPS, CRDS, SECRETS, config_map, deployment, pod, secret
from tests.contracts.servers import JSON, until
from windlass.kube.client.resources import PODS, SERVICE_ACCOUNTS, Resource

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

TABLE = ("Accept", f"{JSON};as=Table;v=v1;g=meta.k8s.io,{JSON}")
COLUMNS = {
    "api/v1/pods": "Name Ready Status Restarts Age",
    "apis/apps/v1/deployments": "Name Ready Up-to-date Available Age",
    "apis/apps/v1/statefulsets": "Name Ready Age",
    "apis/apps/v1/daemonsets": "Name Desired Current Ready Up-to-date Available Node_Selector Age",
    "apis/apps/v1/replicasets": "Name Desired Current Ready Age",
    "apis/batch/v1/jobs": "Name Status Completions Duration Age",
    "api/v1/services": "Name Type Cluster-IP External-IP Port(s) Age",
    "api/v1/configmaps": "Name Data Age",
    "api/v1/secrets": "Name Type Data Age",
    "api/v1/serviceaccounts": "Name Secrets Age",
    "api/v1/persistentvolumeclaims": "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age",
    "apis/coordination.k8s.io/v1/leases": "Name Holder Age",
    "apis/rbac.authorization.k8s.io/v1/roles": "Name Created_At",
    "api/v1/namespaces": "Name Status Age",
    "api/v1/nodes": "Name Status Roles Age Version",
    "api/v1/persistentvolumes": "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass "
    "VolumeAttributesClass Reason Age",
    "apis/storage.k8s.io/v1/storageclasses": "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion "
    "Age",
    "apis/apiextensions.k8s.io/v1/customresourcedefinitions": "Name Created_At",
}


async def table(raw: Raw, path: str) -> RawObject:
    answer = await raw("GET", path, headers=(TABLE,))
    assert answer.status == 200, answer.body
    assert (answer.json["kind"], answer.json["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    found: RawObject = answer.json
    return found


def cells(table: RawObject) -> dict[str, object]:
    """The cells of the only row, by column."""
    [row] = table["rows"]
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, row["cells"], strict=True))


@pytest.mark.parametrize("path", COLUMNS)
async def test_the_columns_of_each_kind(raw: Raw, path: str) -> None:
    columns = (await table(raw, f"/{path}"))["columnDefinitions"]
    assert " ".join(each["name"].replace(" ", "_") for each in columns if not each["priority"]) == COLUMNS[path]
    assert (columns[0]["type"], columns[0]["format"]) == ("string", "name")


async def test_a_row_has_cells_and_the_metadata_of_its_object(raw: Raw, namespace: str) -> None:
    path = SECRETS.in_namespace(namespace).path
    created = await raw.ok("POST", path, secret("a", {"x": "eA==", "y": "eQ=="}))
    found = await table(raw, f"{path}/a")
    assert found["metadata"] == {"resourceVersion": created["metadata"]["resourceVersion"]}
    assert cells(found) | {"Age": ""} == {"Name": "a", "Type": "Opaque", "Data": 2, "Age": ""}
    assert re.fullmatch("[0-9]+s", str(cells(found)["Age"]))
    item = found["rows"][0]["object"]
    assert (item["kind"], item["metadata"]["name"], "data" in item) == ("PartialObjectMetadata", "a", False)


@pytest.mark.parametrize(("include", "kind"), [("Object", "Secret"), ("Metadata", "PartialObjectMetadata")])
async def test_how_much_of_the_object_a_row_has(raw: Raw, namespace: str, include: str, kind: str) -> None:
    path = SECRETS.in_namespace(namespace).path
    await raw.ok("POST", path, secret("a"))
    [row] = (await table(raw, f"{path}?includeObject={include}"))["rows"]
    assert row["object"]["kind"] == kind
    [row] = (await table(raw, f"{path}?includeObject=None"))["rows"]
    assert row["object"] is None


async def test_a_list_has_one_row_for_each_object_and_pages(raw: Raw, namespace: str) -> None:
    path = SECRETS.in_namespace(namespace).path
    for name in "abc":
        await raw.ok("POST", path, secret(name))
    found = await table(raw, f"{path}?limit=2")
    assert [row["cells"][0] for row in found["rows"]] == ["a", "b"]
    assert found["metadata"]["continue"]


async def test_the_cells_of_workloads(raw: Raw, namespace: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tables"}}
    await raw.ok("POST", SERVICE_ACCOUNTS.in_namespace(namespace).path, account)
    await raw.ok("POST", PODS.in_namespace(namespace).path, pod("one", account="tables"))
    shown = cells(await table(raw, f"{PODS.in_namespace(namespace).path}/one"))
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == ("0/1", "Pending", "0")
    assert (shown["IP"], shown["Node"], shown["Nominated Node"]) == ("<none>", "<none>", "<none>")
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await raw.ok("POST", path, deployment("web", 0, "x", "y"))
    shown = cells(await table(raw, f"{path}/web"))
    assert (shown["Ready"], shown["Up-to-date"], shown["Available"]) == ("0/0", 0, 0)
    assert (shown["Containers"], shown["Selector"]) == ("x,y", "app=web")


async def test_the_events_of_a_watch_are_tables_and_only_the_first_has_columns(raw: Raw, namespace: str) -> None:
    path = SECRETS.in_namespace(namespace).path
    for name in "ab":
        await raw.ok("POST", path, secret(name))
    async with raw.watch(path, headers=(TABLE,)) as watching:
        first, second = await watching.event(), await watching.event()
    assert (first["type"], first["object"]["kind"], cells(first["object"])["Name"]) == ("ADDED", "Table", "a")
    assert second["object"]["rows"][0]["cells"][0] == "b"
    assert not second["object"].get("columnDefinitions")


async def test_a_custom_kind_has_the_columns_of_its_definition(raw: Raw, customs: Customs, namespace: str) -> None:
    columns = [
        {"name": "Size", "type": "string", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp", "priority": 1},
    ]
    group = f"tables.{customs.group}"
    names = {"kind": "Shelf", "plural": "shelves"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "additionalPrinterColumns": columns}
    body = {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"shelves.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await raw.ok("POST", CRDS.everywhere.path, body)
    shelves = Resource(group, "v1", "shelves", "Shelf").in_namespace(namespace).path
    item = {"apiVersion": f"{group}/v1", "kind": "Shelf", "metadata": {"name": "a"}, "spec": {"size": "large"}}

    async def is_served() -> bool:
        return (await raw("POST", shelves, item)).status in {201, 409}

    try:
        await until(is_served, "the kind to be served")
        found = await table(raw, f"{shelves}/a")
        assert [each["name"] for each in found["columnDefinitions"]] == ["Name", "Size", "Phase", "Since"]
        shown = cells(found)
        assert (shown["Name"], shown["Size"], shown["Phase"]) == ("a", "large", None)
        assert re.fullmatch("[0-9]+s", str(shown["Since"]))
    finally:
        await raw("DELETE", f"{CRDS.everywhere.path}/shelves.{group}")


async def test_without_columns_a_custom_kind_has_its_age(raw: Raw, customs: Customs) -> None:
    async def columns() -> list[str]:
        answer = await raw("GET", customs.gadgets.everywhere.path, headers=(TABLE,))  # 429 until the kind has a cache
        return [each["name"] for each in answer.json["columnDefinitions"]] if answer.status == 200 else []

    assert await until(columns, "a table") == ["Name", "Age"]


async def test_other_media_types_get_no_table(raw: Raw, namespace: str) -> None:
    path = CONFIG_MAPS.in_namespace(namespace).path
    await raw.ok("POST", path, config_map("a"))
    assert (await raw("GET", f"{path}/a", headers=(("Accept", JSON),))).json["kind"] == "ConfigMap"
