"""The reflector on a real server: whatever way the state comes and whatever breaks, its view is the list."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - a burst of writes with a fixed seed
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import SECRETS, secret
from tests.contracts.servers import until
from tests.contracts.transports import Cutting, Passing, WithoutInitialEvents
from windlass.kube.client.objects import RawObject
from windlass.kube.client.readers import Selection
from windlass.kube.client.reflectors import Reflector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Server
    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.resources import Ref

WRITES = 120
NAMES = 12


async def burst(kube: KubeClient, ref: Ref, seed: int) -> None:
    """Creates, changes and deletes a few objects at random."""
    chance = random.Random(seed)
    there: set[str] = set()
    for step in range(WRITES):
        name = f"s{chance.randrange(NAMES)}"
        one = SECRETS.named(name, ref.namespace)
        if name not in there:
            await kube.create(ref, secret(name, labels={"step": str(step)}))
            there.add(name)
        elif chance.random() < 0.4:
            await kube.delete(one)
            there.remove(name)
        else:
            await kube.patch(one, {"metadata": {"labels": {"step": str(step)}}})


def versions(items: Mapping[tuple[str, str], RawObject]) -> dict[str, str]:
    return {name: item["metadata"]["resourceVersion"] for (_, name), item in items.items()}


async def follow(reflector: Reflector[RawObject]) -> None:
    async with aclosing(reflector.changes()) as changes:
        async for change in changes:
            if not change.completes_view and change.old is not None and change.new is not None:
                assert change.old["metadata"]["uid"] == change.new["metadata"]["uid"]


async def ends_up_equal(kube: KubeClient, reflector: Reflector[RawObject], ref: Ref, seed: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow(reflector))
        await burst(kube, ref, seed)
        listing = await kube.list(ref)
        expected = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listing.items}

        async def is_equal() -> bool:
            return versions(reflector.view) == expected

        await until(is_equal, "the view equal to the list")
        following.cancel()


async def test_a_view_by_stream_ends_up_equal_to_the_list(server: Server, kube: KubeClient, namespace: str) -> None:
    ref = SECRETS.in_namespace(namespace)
    transport = Passing(server.transport)
    reflector = Reflector(server.client(transport=transport), ref, RawObject)
    await ends_up_equal(kube, reflector, ref, seed=1)
    assert {"watch=1" in request.target for request in transport.asked} == {True}, "no list was needed"


async def test_a_view_by_list_ends_up_equal_to_the_list(server: Server, kube: KubeClient, namespace: str) -> None:
    ref = SECRETS.in_namespace(namespace)
    transport = WithoutInitialEvents(server.transport)
    reflector = Reflector(server.client(transport=transport), ref, RawObject)
    await ends_up_equal(kube, reflector, ref, seed=2)
    targets = [request.target for request in transport.asked]
    assert "resourceVersionMatch=NotOlderThan" in targets[0]
    assert "limit=" in targets[1]


@pytest.mark.parametrize("after", [1, 4])
async def test_a_view_whose_connections_are_cut_ends_up_equal_to_the_list(
    server: Server, kube: KubeClient, namespace: str, after: int
) -> None:
    ref = SECRETS.in_namespace(namespace)
    await kube.create(ref, secret("first"))
    transport = Cutting(server.transport, after)
    reflector = Reflector(server.client(transport=transport), ref, RawObject)
    await ends_up_equal(kube, reflector, ref, seed=after)
    assert transport.cuts > 0


async def test_a_view_of_a_selection_loses_what_no_longer_matches(
    server: Server, kube: KubeClient, namespace: str
) -> None:
    ref = SECRETS.in_namespace(namespace)
    for name in "ab":
        await kube.create(ref, secret(name, labels={"team": "red"}))
    reflector = Reflector(server.client(), ref, RawObject, select=Selection(labels="team=red"))
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow(reflector))

        async def shows(*names: str) -> bool:
            return sorted(name for _, name in reflector.view) == sorted(names)

        await until(lambda: shows("a", "b"), "both in view")
        await kube.patch(SECRETS.named("a", namespace), {"metadata": {"labels": {"team": "blue"}}})
        await until(lambda: shows("b"), "one out of view")
        await kube.patch(SECRETS.named("a", namespace), {"metadata": {"labels": {"team": "red"}}})
        await until(lambda: shows("a", "b"), "both in view again")
        following.cancel()


async def test_a_view_of_a_forgotten_version_is_made_anew(
    server: Server, kube: KubeClient, namespace: str, customs: Customs
) -> None:
    """The history of a custom kind begins after its definition, so the first of all versions is forgotten for sure."""
    ref = customs.widgets.in_namespace(namespace)
    await kube.create(ref, customs.widget("a"))
    transport = WithoutInitialEvents(server.transport)
    reflector = Reflector(server.client(transport=transport), ref, RawObject)
    reflector._resource_version = "1"
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow(reflector))

        async def is_there() -> bool:
            return [name for _, name in reflector.view] == ["a"]

        await until(is_there, "the object in view")
        following.cancel()
    targets = [request.target for request in transport.asked]
    assert "resourceVersion=1" in targets[0]
    assert any("watch=1" not in target for target in targets[1:]), "a list was needed"
