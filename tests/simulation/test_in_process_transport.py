"""Our client on a sandbox in the same process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from windlass.kube.api_errors import Conflict, ConnectionLost, NotFound, Unreachable
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.objects import RawObject
from windlass.kube.client.reflectors import Reflector
from windlass.kube.client.resources import PODS, Resource
from windlass.kube.transport.calls import CallSender
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import UserInfo
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation.in_process_transport import InProcessTransport, ProcessCrashed
from windlass.simulation.virtual_time import run, virtual_clock, virtual_sandbox_clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
HERE = CONFIG_MAPS.in_namespace("default")
ROBOT = UserInfo("robot")


@asynccontextmanager
async def client() -> AsyncIterator[tuple[Sandbox, KubeClient, InProcessTransport]]:
    async with Sandbox(virtual_sandbox_clock()) as sandbox:
        transport = InProcessTransport(sandbox, ROBOT)
        yield sandbox, KubeClient(CallSender(transport, clock=virtual_clock())), transport


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_the_client_works_as_over_http() -> None:
    async def main() -> None:
        async with client() as (sandbox, kube, _):
            created = await kube.create(HERE, config_map("a", x="1"))
            await kube.patch(CONFIG_MAPS.named("a", "default"), {"data": {"x": "2"}})
            with pytest.raises(Conflict):
                await kube.replace(CONFIG_MAPS.named("a", "default"), created)
            with pytest.raises(NotFound):
                await kube.logs(PODS.named("p", "default"))
            found = await kube.discover()
            assert found.find("ConfigMap") is not None
            assert (await kube.version()).startswith("v1.")
            assert {entry.user for entry in sandbox.server.journal.writes("robot")} == {"robot"}

    run(main())


def test_a_reflector_follows_through_cuts_and_forgotten_history() -> None:
    async def main() -> None:
        async with client() as (sandbox, kube, _):
            reflector = Reflector(kube, HERE, RawObject)

            async def follow() -> None:
                async for _ in reflector.changes():
                    pass

            sandbox.start(follow(), name="reflector")
            for round_ in range(3):
                await kube.create(HERE, config_map(f"a{round_}"))
                sandbox.server.disrupt_watches(["cut", "silent", "expired"][round_], Fault(user="robot"))
                await kube.create(HERE, config_map(f"b{round_}"))
                await sandbox.clock.sleep(300)
            names = {name for _, name in reflector.view}
            assert names == {"kube-root-ca.crt", "a0", "a1", "a2", "b0", "b1", "b2"}

    run(main())


def test_faults_are_what_a_network_does() -> None:
    async def main() -> None:
        async with client() as (sandbox, kube, _):
            sandbox.server.faults.add(Fault(verb="create", sever="after"))
            with pytest.raises(ConnectionLost):
                await kube.create(HERE, config_map("a"))
            assert await kube.get(CONFIG_MAPS.named("a", "default")), "carried out, though nobody was told"
            sandbox.server.faults.add(Fault(verb="create", sever="before", times=None))
            with pytest.raises(Unreachable):
                await kube.create(HERE, config_map("b"))

    run(main())


def test_after_a_crash_nothing_leaves_the_process() -> None:
    async def main() -> None:
        async with client() as (sandbox, kube, transport):
            cleaned: list[str] = []

            async def work() -> None:
                try:
                    reflector = Reflector(kube, HERE, RawObject)
                    async for _ in reflector.changes():
                        pass
                finally:
                    try:
                        await kube.create(HERE, config_map("cleaned-up"))
                    except ProcessCrashed:
                        cleaned.append("could not")

            async def until_the_crash() -> None:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(work())
                    await sandbox.clock.sleep(1)
                    transport.crash()

            with pytest.raises(ExceptionGroup) as ended:
                await until_the_crash()
            assert [type(error) for error in ended.value.exceptions] == [ProcessCrashed]
            assert cleaned == ["could not"]
            assert sandbox.server.store.get("configmaps", "default", "cleaned-up") is None

    run(main())
