"""The sandbox under load, and an hour of simulated platform."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.applications import APPLICATIONS, application
from benchmarks.measuring import peak_memory
from benchmarks.results import figure
from windlass.kube import kubeconfigs
from windlass.kube.calls import Calls, Limits
from windlass.kube.clients import KubeClient
from windlass.kube.http import HttpTransport
from windlass.kube.objects import Plain
from windlass.kube.readers import Since
from windlass.kube.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from benchmarks.results import Figure

APPS = Resource("argoproj.io", "v1alpha1", "applications", "Application")
WATCHED = [
    Resource("", "v1", "pods", "Pod"),
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("batch", "v1", "jobs", "Job"),
]
NAMESPACES = [f"team-{number}" for number in range(5)]
WATCHERS = 200
WRITES = 4_000
IN_FLIGHT = 50


@contextmanager
def sandbox() -> Iterator[tuple[KubeClient, int]]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "kubeconfig"
        command = [sys.executable, "-m", "windlass", "sandbox", "--kubeconfig", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            process.stdout.readline()
            try:
                transport = HttpTransport(kubeconfigs.load_file(file), environ={})
                yield KubeClient(Calls(transport, limits=Limits(1e9, 1_000_000, 300))), process.pid
            finally:
                process.terminate()


async def in_flight(jobs: Iterator[int], do: Callable[[int], Awaitable[None]]) -> None:
    async def work() -> None:
        for job in jobs:
            await do(job)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(IN_FLIGHT):
            tasks.create_task(work())


async def writes_per_second(kube: KubeClient) -> float:
    """Applications in, watchers on 20 kinds and namespaces, then writes: all over loopback."""
    namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
    for name in NAMESPACES:
        await kube.create(namespaces.everywhere, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def create(number: int) -> None:
        item = application(number)
        item["metadata"]["namespace"] = "default"  # not where Argo CD looks: this is about the server
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            del item["metadata"][field]
        await kube.create(APPS.within("default"), item)

    await in_flight(iter(range(APPLICATIONS)), create)

    async def watch(number: int) -> None:
        places = [resource.within(name) for resource in WATCHED for name in NAMESPACES]
        ref = APPS.within("default") if number % 20 == 0 else places[number % len(places)]
        async for _ in kube.watch(ref, Since(), Plain):
            pass

    async def touch(number: int) -> None:
        ref = APPS.named(f"application-{number % APPLICATIONS:05d}", "default")
        await kube.patch(ref, {"status": {"reconciledAt": f"{number}"}})

    async with asyncio.TaskGroup() as tasks:
        watchers = [tasks.create_task(watch(number)) for number in range(WATCHERS)]
        await asyncio.sleep(2)
        began = perf_counter()
        await in_flight(iter(range(WRITES)), touch)
        seconds = perf_counter() - began
        for watcher in watchers:
            watcher.cancel()
    await kube.close()
    return WRITES / seconds


async def start() -> Figure:
    """From nothing to the first answer on a port; imports are not counted."""
    from windlass.sandbox import kubeconfigs as rendering
    from windlass.sandbox.sandboxes import Sandbox
    from windlass.sandbox.serving import served

    best = float("inf")
    for _ in range(5):
        began = perf_counter()
        async with Sandbox() as embedded, served(embedded) as address:
            content = rendering.rendered(address, embedded.server.identities.admin_token)
            kube = KubeClient(Calls(HttpTransport(kubeconfigs.load(content.encode(), where="bench"), environ={})))
            await kube.version()
            best = min(best, perf_counter() - began)
            await kube.close()
    return figure("sandbox.start_ms", best * 1000, "ms", "< 300", "to the first answer over HTTP")


def figures() -> Iterator[Figure]:
    print(f"sandbox: {APPLICATIONS} Applications, {WATCHERS} watchers, {WRITES} writes", flush=True)
    yield asyncio.run(start())
    with sandbox() as (kube, pid):
        rate = asyncio.run(writes_per_second(kube))
        load = f"{APPLICATIONS} Applications, {WATCHERS} watchers"
        yield figure("sandbox.writes_per_second", rate, "/s", ">= 1000", load)
        yield figure("sandbox.rss_mb", peak_memory(pid), "MB", "< 400", load)
