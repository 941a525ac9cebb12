"""Our client's whole matrix against the server: what each verb promises, it keeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.contracts.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS, config_map, deployment, pod, secret
from tests.contracts.transports import Passing, WithoutAggregation
from windlass.kube.api_errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    FieldOwner,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
)
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.objects import TypedObject
from windlass.kube.client.readers import PAGE_SIZE, KubeReader, Selection, WatchStart
from windlass.kube.client.resources import PODS, SERVICE_ACCOUNTS, Resource
from windlass.kube.client.watches import Bookmark, WatchEvent
from windlass.kube.transport.calls import CallSender

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw, Server
    from windlass.kube.client.objects import RawObject

ACCESS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False)
WHO_AM_I = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class Data(TypedObject, frozen=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


async def test_version(kube: KubeClient) -> None:
    assert (await kube.version()).startswith("v1.")


async def test_get_plain_and_typed(kube: KubeClient, namespace: str) -> None:
    await kube.create(CONFIG_MAPS.in_namespace(namespace), config_map("a", {"x": "1"}, labels={"l": "1"}))
    ref = CONFIG_MAPS.named("a", namespace)
    plain, typed = await kube.get(ref), await kube.get(ref, Data)
    assert plain["kind"] == "ConfigMap"
    assert typed.data == plain["data"] == {"x": "1"}
    assert typed.metadata.labels == {"l": "1"}
    assert typed.metadata.uid == plain["metadata"]["uid"]
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS.named("b", namespace))


async def test_a_list_of_many_comes_in_pages_and_whole(server: Server, namespace: str) -> None:
    transport = Passing(server.transport)
    kube = server.client(transport=transport)
    count = PAGE_SIZE + 20
    async with asyncio.TaskGroup() as tasks:
        for index in range(count):
            item = secret(f"s{index:04}", labels={"odd": str(index % 2)})
            tasks.create_task(kube.create(SECRETS.in_namespace(namespace), item))
    transport.asked.clear()
    listing = await kube.list(SECRETS.in_namespace(namespace))
    assert [item["metadata"]["name"] for item in listing.items] == [f"s{index:04}" for index in range(count)]
    assert [("continue=" in request.target) for request in transport.asked] == [False, True]
    odd = await kube.list(SECRETS.in_namespace(namespace), Data, select=Selection(labels="odd=1"))
    assert len(odd.items) == count // 2
    one = await kube.list(SECRETS.in_namespace(namespace), select=Selection(fields="metadata.name=s0003"))
    assert [item["metadata"]["name"] for item in one.items] == ["s0003"]


async def test_create_replace_and_both_patches(kube: KubeClient, namespace: str) -> None:
    ref = CONFIG_MAPS.named("a", namespace)
    created = await kube.create(CONFIG_MAPS.in_namespace(namespace), config_map("a", {"x": "1"}))
    with pytest.raises(AlreadyExists):
        await kube.create(CONFIG_MAPS.in_namespace(namespace), config_map("a"))
    replaced = await kube.replace(ref, {**created, "data": {"x": "2"}})
    assert replaced["data"] == {"x": "2"}
    with pytest.raises(Conflict) as outdated:
        await kube.replace(ref, created)
    assert outdated.value.owners == ()
    assert (await kube.patch(ref, {"data": {"x": None, "y": "1"}}))["data"] == {"y": "1"}
    assert (await kube.patch(ref, [{"op": "add", "path": "/data/z", "value": "1"}]))["data"] == {"y": "1", "z": "1"}
    with pytest.raises(Invalid):
        await kube.patch(ref, [{"op": "test", "path": "/data/z", "value": "2"}])
    assert {entry["manager"] for entry in (await kube.get(ref))["metadata"]["managedFields"]} == {"windlass"}


async def test_dry_runs_change_nothing(kube: KubeClient, namespace: str) -> None:
    within, ref = CONFIG_MAPS.in_namespace(namespace), CONFIG_MAPS.named("a", namespace)
    await kube.create(within, config_map("a", {"x": "1"}), dry_run=True)
    with pytest.raises(NotFound):
        await kube.get(ref)
    before = await kube.create(within, config_map("a", {"x": "1"}))
    await kube.patch(ref, {"data": {"x": "2"}}, dry_run=True)
    await kube.replace(ref, config_map("a", {"x": "3"}), dry_run=True)
    await kube.apply(ref, config_map("a", {"x": "4"}), force=True, dry_run=True)
    await kube.delete(ref, dry_run=True)
    assert await kube.get(ref) == before


async def test_apply_names_the_owners_of_what_it_may_not_change(server: Server, namespace: str) -> None:
    ref = CONFIG_MAPS.named("a", namespace)
    await server.client(manager="one").apply(ref, config_map("a", {"x": "1", "y": "1"}))
    await server.client(manager='odd "name"').apply(ref, config_map("a", {"z": "1"}))
    with pytest.raises(Conflict) as refused:
        await server.client().apply(ref, config_map("a", {"x": "2", "y": "1", "z": "2"}))
    assert sorted(refused.value.owners, key=lambda owner: owner.field) == [
        FieldOwner("one", ".data.x"),
        FieldOwner('odd \\"name\\"', ".data.z"),
    ]
    taken = await server.client().apply(ref, config_map("a", {"x": "2"}), force=True)
    assert taken["data"] == {"x": "2", "y": "1", "z": "1"}


async def test_delete_with_preconditions(kube: KubeClient, namespace: str) -> None:
    ref = CONFIG_MAPS.named("a", namespace)
    created = await kube.create(CONFIG_MAPS.in_namespace(namespace), config_map("a"))
    meta = created["metadata"]
    with pytest.raises(Conflict):
        await kube.delete(ref, uid="00000000-0000-4000-8000-000000000000")
    with pytest.raises(Conflict):
        await kube.delete(ref, uid=meta["uid"], resource_version="1")
    await kube.delete(ref, uid=meta["uid"], resource_version=meta["resourceVersion"])
    with pytest.raises(NotFound):
        await kube.delete(ref, uid=meta["uid"])


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [("Background", None), ("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])],
)
async def test_delete_with_propagation(kube: KubeClient, namespace: str, propagation: str, finalizers: object) -> None:
    hold = "contracts.windlass.dev/hold"
    ref = CONFIG_MAPS.named("a", namespace)
    await kube.create(CONFIG_MAPS.in_namespace(namespace), config_map("a", None, finalizers=[hold]))
    left = (await kube.delete(ref, propagation=propagation))["metadata"]  # type: ignore[arg-type]
    assert "deletionTimestamp" in left
    assert [name for name in left["finalizers"] if name != hold] == (finalizers or [])
    await kube.patch(ref, {"metadata": {"finalizers": None}})


async def test_status_and_scale(kube: KubeClient, namespace: str, customs: Customs) -> None:
    ref = customs.widgets.named("a", namespace)
    await kube.create(customs.widgets.in_namespace(namespace), customs.widget("a"))
    await kube.patch(ref.with_subresource("status"), {"status": {"phase": "Ready"}, "spec": {"size": "large"}})
    found = await kube.get(ref)
    assert (found["status"], found["spec"]["size"]) == ({"phase": "Ready"}, "small")
    await kube.patch(ref.with_subresource("scale"), {"spec": {"replicas": 4}})
    assert (await kube.get(ref))["spec"]["replicas"] == 4
    assert (await kube.get(ref.with_subresource("scale")))["kind"] == "Scale"
    await kube.create(DEPLOYMENTS.in_namespace(namespace), deployment("web"))
    scale = await kube.get(DEPLOYMENTS.named("web", namespace).with_subresource("scale"))
    del scale["metadata"]["resourceVersion"]  # its controller writes the status meanwhile
    scaled = await kube.replace(
        DEPLOYMENTS.named("web", namespace).with_subresource("scale"), {**scale, "spec": {"replicas": 1}}
    )
    assert scaled["spec"] == {"replicas": 1}


async def test_eviction(kube: KubeClient, namespace: str) -> None:
    await kube.create(SERVICE_ACCOUNTS.in_namespace(namespace), account("pods"))
    created = await kube.create(PODS.in_namespace(namespace), pod("a", account="pods"))
    ref = PODS.named("a", namespace)
    await kube.patch(ref.with_subresource("status"), {"status": {"phase": "Running"}})
    await kube.evict(ref, dry_run=True)
    with pytest.raises(Conflict):
        await kube.evict(ref, uid="00000000-0000-4000-8000-000000000000")
    await kube.evict(ref, uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await kube.get(ref)


async def test_a_token_and_what_it_may_do(kube: KubeClient, server: Server, namespace: str) -> None:
    await kube.create(SERVICE_ACCOUNTS.in_namespace(namespace), account("robot"))
    token = await kube.request_token("robot", namespace, expiration_seconds=600)
    robot = KubeClient(CallSender(server.with_token(token).transport))
    review = await robot.review(WHO_AM_I, {})
    assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:robot"
    with pytest.raises(Forbidden):
        await robot.list(SECRETS.in_namespace(namespace))
    attributes = {"namespace": namespace, "verb": "list", "resource": "secrets"}
    assert (await robot.review(ACCESS, {"resourceAttributes": attributes}))["status"]["allowed"] is False
    assert (await kube.review(ACCESS, {"resourceAttributes": attributes}))["status"]["allowed"] is True
    with pytest.raises(Unauthorized):
        await KubeReader(CallSender(server.with_token("nonsense").transport)).get(NAMESPACES.named(namespace))


async def test_refusals_have_their_own_errors(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await kube.list(CONFIG_MAPS.in_namespace(namespace), select=Selection(fields="data.x=1"))
    with pytest.raises(MethodNotAllowed):
        await kube.replace(CONFIG_MAPS.in_namespace(namespace), config_map("a"))
    with pytest.raises(Invalid) as invalid:
        await kube.create(CONFIG_MAPS.in_namespace(namespace), config_map("Upper"))
    assert [cause.field for cause in invalid.value.status.causes] == ["metadata.name"]
    with pytest.raises(NotFound) as nobody:
        await kube.get(Resource("nonsense.example", "v1", "things", "Thing").named("a", namespace))
    assert "404 page not found" in str(nobody.value)


async def test_discovery_aggregated_and_from_group_to_group_agree(server: Server, customs: Customs) -> None:
    quick, slow = Passing(server.transport), WithoutAggregation(server.transport)
    aggregated = await server.client(transport=quick).discover()
    plain = await server.client(transport=slow).discover()
    assert [request.target for request in quick.asked] == ["/api", "/apis"]
    assert len(slow.asked) > 10
    own = {r for r in aggregated.resources if r.group == customs.group}
    assert {r.plural for r in own} == {"widgets", "gadgets"}
    shared = {r for r in aggregated.resources if not r.group.endswith("contracts.windlass.dev")} | own
    assert shared <= set(plain.resources)
    unavailable = {*aggregated.unavailable, *plain.unavailable}
    assert not {each for each in unavailable if f".{customs.group.partition('.')[2]}" not in each}  # of other tests
    for found in (aggregated, plain):
        assert found.find("Deployment", "apps") == found.find("Deployment", "apps", "v1")
        item = {"apiVersion": f"{customs.group}/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "n"}}
        ref = found.ref_to(item)
        assert ref is not None
        assert ref.path == customs.widgets.named("a", "n").path
        crd = found.find("CustomResourceDefinition", "apiextensions.k8s.io")
        assert crd is not None
        assert not crd.namespaced
        assert {"get", "list", "watch", "create", "patch"} <= crd.verbs


async def test_a_watch_resumes_where_another_ended(kube: KubeClient, namespace: str) -> None:
    within = SECRETS.in_namespace(namespace)
    start = (await kube.list(within)).resource_version
    for name in "abc":
        await kube.create(within, secret(name))
    seen: list[str] = []
    for _ in range(3):
        async for event in kube.watch(within, WatchStart(start)):
            if isinstance(event, WatchEvent):
                seen.append(event.item["metadata"]["name"])
                start = event.item["metadata"]["resourceVersion"]
                break
    assert seen == ["a", "b", "c"]


async def test_a_watch_of_everything_begins_with_the_state_and_its_mark(kube: KubeClient, namespace: str) -> None:
    within = SECRETS.in_namespace(namespace)
    await kube.create(within, secret("a", {"x": "MQ=="}))
    events: list[object] = []
    async for event in kube.watch(within, WatchStart(), Data):
        events.append(event)
        if isinstance(event, Bookmark):
            break
    [added, mark] = events
    assert isinstance(added, WatchEvent)
    assert (added.type, added.item.data) == ("ADDED", {"x": "MQ=="})
    assert isinstance(mark, Bookmark)
    assert mark.ends_initial_events


async def test_a_forgotten_version_raises_expired(kube: KubeClient, raw: Raw, namespace: str, customs: Customs) -> None:
    await raw.ok("POST", customs.widgets.in_namespace(namespace).path, customs.widget("a"))
    with pytest.raises(Expired):
        async for _ in kube.watch(customs.widgets.in_namespace(namespace), WatchStart("1")):
            pass


async def test_calls_are_counted_by_verb_and_kind(kube: KubeClient, namespace: str, customs: Customs) -> None:
    counts = kube.counts.by_verb_and_kind
    counts.clear()
    await kube.create(customs.widgets.in_namespace(namespace), customs.widget("a"))
    await kube.get(customs.widgets.named("a", namespace).with_subresource("status"))
    kind = f"widgets.{customs.group}"
    assert dict(counts) == {("create", kind): 1, ("get", f"{kind}/status"): 1}
    assert kube.counts.writes == 1


def account(name: str) -> RawObject:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
