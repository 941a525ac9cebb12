"""The official client, asynchronous: its custom objects API, 200 tasks for the applies."""

from __future__ import annotations

import asyncio
import sys

from kubernetes.aio import client, watch

from benchmarks.applications import APPLICATIONS, APPLIES, EVENTS, IN_FLIGHT, application
from benchmarks.measurement import APPLICATIONS as APPS
from benchmarks.measurement import measured


async def main(scenario: str, port: str) -> None:
    configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
    configuration.connection_pool_maxsize = IN_FLIGHT
    async with client.ApiClient(configuration) as connection:
        api = client.CustomObjectsApi(connection)
        with measured():
            if scenario == "list":
                assert len((await api.list_cluster_custom_object(*APPS))["items"]) == APPLICATIONS
            elif scenario == "watch":
                seen = 0
                async with watch.Watch() as watching:
                    async for _ in watching.stream(api.list_cluster_custom_object, *APPS, resource_version="1"):
                        seen += 1
                        if seen == EVENTS:
                            break
                assert seen == EVENTS
            else:
                await apply(api)


async def apply(api: client.CustomObjectsApi) -> None:
    group, version, plural = APPS
    numbers = iter(range(APPLIES))

    async def work() -> None:
        for number in numbers:
            await api.patch_namespaced_custom_object(
                group, version, "argocd", plural, f"application-{number:05d}", application(number),
                field_manager="windlass", force=True, _content_type="application/apply-patch+yaml",
            )  # fmt: skip

    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(work())


asyncio.run(main(*sys.argv[1:]))
