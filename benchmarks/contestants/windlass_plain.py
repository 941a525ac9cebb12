"""Windlass, objects as plain dictionaries."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from benchmarks.applications import APPLICATIONS, APPLIES, EVENTS, IN_FLIGHT, application
from benchmarks.measurement import measured
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.objects import RawObject
from windlass.kube.client.readers import WatchStart
from windlass.kube.client.resources import Resource
from windlass.kube.client.watches import WatchEvent
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.kube.transport.http import HttpTransport

APPS = Resource("argoproj.io", "v1alpha1", "applications", "Application")


def client(port: str) -> KubeClient:
    kubeconfig = f"""
clusters: [{{name: bench, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
users: [{{name: bench, user: {{}}}}]
current-context: bench
"""
    connection = kubeconfigs.load(kubeconfig.encode(), where="benchmark", environ=os.environ)
    return KubeClient(CallSender(HttpTransport(connection), limits=CallLimits(1e9, 1_000_000, 300)))


async def main(scenario: str, port: str, into: type[Any] = RawObject) -> None:
    kube = client(port)
    with measured():
        if scenario == "list":
            listing = await kube.list(APPS.everywhere, into)
            assert len(listing.items) == APPLICATIONS
        elif scenario == "watch":
            seen = 0
            async for event in kube.watch(APPS.everywhere, WatchStart("1"), into):
                seen += isinstance(event, WatchEvent)
            assert seen == EVENTS
        else:
            await apply(kube)
    await kube.close()


async def apply(kube: KubeClient) -> None:
    numbers = iter(range(APPLIES))

    async def work() -> None:
        for number in numbers:
            await kube.apply(APPS.named(f"application-{number:05d}", "argocd"), application(number), force=True)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(work())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
