"""lightkube, asynchronous: a generic resource."""

from __future__ import annotations

import asyncio
import sys

from lightkube import AsyncClient
from lightkube.config.kubeconfig import Cluster, KubeConfig, User
from lightkube.generic_resource import create_namespaced_resource

from benchmarks.applications import APPLICATIONS, APPLIES, EVENTS, IN_FLIGHT, application
from benchmarks.measurement import measured

Application = create_namespaced_resource("argoproj.io", "v1alpha1", "Application", "applications")


async def main(scenario: str, port: str) -> None:
    config = KubeConfig.from_one(
        cluster=Cluster(server=f"http://127.0.0.1:{port}"), user=User(username="bench", password="bench")
    )
    kube = AsyncClient(config=config, field_manager="windlass", trust_env=False)
    with measured():
        if scenario == "list":
            assert len([item async for item in kube.list(Application, namespace="*")]) == APPLICATIONS
        elif scenario == "watch":
            seen = 0
            async for _ in kube.watch(Application, namespace="*", resource_version="1"):
                seen += 1
                if seen == EVENTS:
                    break
            assert seen == EVENTS
        else:
            await apply(kube)


async def apply(kube: AsyncClient) -> None:
    numbers = iter(range(APPLIES))

    async def work() -> None:
        for number in numbers:
            await kube.apply(
                Application(application(number)), f"application-{number:05d}", namespace="argocd", force=True
            )

    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(work())


asyncio.run(main(*sys.argv[1:]))
