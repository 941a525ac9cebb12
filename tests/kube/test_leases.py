"""Leases of a process: the client made from one writes only while the Lease is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.run_contexts import run_lease
from tests.sandbox.controllers import clusters
from windlass.kube.client.resources import Resource
from windlass.kube.leases import RENEW_DEADLINE, LockedClient, LockLost
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.sandbox.controllers.clusters import World
    from windlass.errors import WindlassError
    from windlass.kube.client.objects import RawObject

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
BODY: RawObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}}


def on_a_cluster(work: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with clusters.world() as world:
            await work(world)

    clusters.run(main())


async def absent() -> None:
    """The Lease does not exist yet."""


def ignore(error: WindlassError) -> None:
    del error


def test_a_client_of_a_lease_that_was_never_acquired_refuses_to_write() -> None:
    async def main(w: World) -> None:
        client = LockedClient(w.kube, run_lease(w.kube, "one"))
        with pytest.raises(LockLost):
            await client.create(CONFIG_MAPS.in_namespace("default"), BODY)

    on_a_cluster(main)


def test_a_client_writes_while_the_lease_is_held_and_not_after_its_release() -> None:
    async def main(w: World) -> None:
        async with run_lease(w.kube, "one").hold(absent, ignore) as client:
            await w.sandbox.clock.sleep(RENEW_DEADLINE * 3)  # it is renewed meanwhile
            await client.create(CONFIG_MAPS.in_namespace("default"), BODY)
        with pytest.raises(LockLost):
            await client.delete(CONFIG_MAPS.named("one", "default"))
        assert await w.kube.get(CONFIG_MAPS.named("one", "default"))

    on_a_cluster(main)


def test_a_reader_creates_reviews_and_nothing_else() -> None:
    async def main(w: World) -> None:
        with pytest.raises(ValueError, match="is not a review"):
            await w.kube.review(CONFIG_MAPS, {})

    on_a_cluster(main)


def test_the_lease_is_checked_again_before_a_write_is_repeated() -> None:
    async def main(w: World) -> None:
        async with run_lease(w.kube, "one").hold(absent, ignore) as client:
            w.sandbox.server.faults.add(Fault(verb="update", kind="leases*", code=503, times=None))
            w.sandbox.server.faults.add(
                Fault(verb="create", kind="configmaps", code=429, retry_after=int(RENEW_DEADLINE) + 2)
            )
            with pytest.raises(LockLost):
                await client.create(CONFIG_MAPS.in_namespace("default"), BODY)
        assert await w.sandbox.client().find("configmaps", "one", "default") is None

    on_a_cluster(main)
