"""A story with chance in it: several callers, faults, cascades and a dying namespace; its journal."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from typing import Any

from windlass.kube.api_errors import KubeError
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.objects import RawObject
from windlass.kube.client.reflectors import Reflector
from windlass.kube.client.resources import Resource
from windlass.kube.transport.calls import CallSender
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import UserInfo
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation.in_process_transport import InProcessTransport
from windlass.simulation.virtual_time import run, virtual_clock, virtual_sandbox_clock

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


def journal(seed: int) -> bytes:
    return run(_story(seed))


async def _story(seed: int) -> bytes:
    chance = random.Random(seed)
    async with Sandbox(virtual_sandbox_clock(seed)) as sandbox:
        clock = virtual_clock(chance.random)
        transport = InProcessTransport(sandbox, UserInfo("story"))
        kube = KubeClient(CallSender(transport, clock=clock))
        sandbox.server.faults.add(Fault(verb="create", code=503, skip=5, times=3))
        sandbox.server.faults.add(Fault(verb="patch", code=429, retry_after=2, skip=3, times=2))
        sandbox.server.faults.add(Fault(verb="delete", sever="after", skip=4))
        reflector = Reflector(kube, CONFIG_MAPS.in_namespace("story"), RawObject)
        await kube.create(NAMESPACES.everywhere, {"metadata": {"name": "story"}})
        sandbox.start(_follow(reflector), name="reflector")
        for step in range(40):
            try:
                await _act(kube, chance, step)
            except KubeError:
                continue
        sandbox.server.disrupt_watches("cut", Fault())
        await kube.delete(NAMESPACES.named("story"))
        await clock.sleep(120)
        return b"".join(sandbox.server.journal.json_lines())


async def _follow(reflector: Reflector[RawObject]) -> None:
    async for _ in reflector.changes():
        pass


async def _act(kube: KubeClient, chance: random.Random, step: int) -> None:
    within, name = CONFIG_MAPS.in_namespace("story"), f"m{chance.randrange(8)}"
    ref = CONFIG_MAPS.named(name, "story")
    match chance.randrange(5):
        case 0:
            await kube.create(within, {"metadata": {"generateName": "g-"}, "data": {"x": str(step)}})
        case 1:
            await kube.apply(
                ref, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"s": "1"}}
            )
        case 2:
            await kube.patch(ref, {"data": {"step": str(step)}})
        case 3:
            await kube.delete(ref)
        case _:
            parent: Any = await kube.get(ref)
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": parent["metadata"]["uid"]}
            child = {"metadata": {"generateName": f"{name}-", "ownerReferences": [owner]}}
            await kube.create(within, child)
