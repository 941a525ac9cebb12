"""`make demo`: a cluster in this process, and a client that keeps its view right while everything breaks."""

from __future__ import annotations

import asyncio
import base64
import sys
from contextlib import aclosing
from typing import Any

from windlass.kube import kubeconfigs as ours
from windlass.kube.api_errors import Conflict
from windlass.kube.calls import Calls
from windlass.kube.clients import KubeClient
from windlass.kube.http import HttpTransport
from windlass.kube.objects import Plain
from windlass.kube.readers import KubeReader
from windlass.kube.reflectors import Reflector
from windlass.kube.resources import Resource
from windlass.sandbox import kubeconfigs
from windlass.sandbox.faults import Fault
from windlass.sandbox.sandboxes import Sandbox
from windlass.sandbox.serving import served

DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
APPLICATIONS = Resource("argoproj.io", "v1alpha1", "applications", "Application")
NUMBER = 43


def definition() -> Plain:
    open_schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": open_schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "applications.argoproj.io"},
        "spec": {
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": {"plural": "applications", "kind": "Application"},
            "versions": [version],
        },
    }


def application(number: int, health: str) -> Plain:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": f"app-{number:02d}", "namespace": "default"},
        "spec": {"project": "default"},
        "status": {"health": {"status": health}},
    }


def ref(number: int) -> Any:
    return APPLICATIONS.named(f"app-{number:02d}", "default")


class Story:
    def __init__(self, reader: KubeReader) -> None:
        self.reflector = Reflector(reader, APPLICATIONS.everywhere, Plain)
        self.counts = {"appeared": 0, "changed": 0, "gone": 0, "complete": 0}

    async def follow(self) -> None:
        async with aclosing(self.reflector.changes()) as changes:
            async for change in changes:
                kinds = {(True, True): "complete", (True, False): "appeared", (False, True): "gone"}
                self.counts[kinds.get((change.old is None, change.new is None), "changed")] += 1

    async def until(self, number: int, health: str = "") -> None:
        while True:
            told = self.reflector.view.values()
            if len(told) == number and (not health or all(a["status"]["health"]["status"] == health for a in told)):
                return
            await asyncio.sleep(0.02)  # noqa: TID251 - a demonstration waits in real time


async def raise_and_lower(sandbox: Sandbox, kube: KubeClient, story: Story) -> None:
    server = sandbox.server
    say(f"{NUMBER} Applications are applied; the server is busy and answers every fifth write with 429 at first.")
    for skip in range(0, 25, 5):
        server.faults.add(Fault(verb="patch", kind="applications.argoproj.io", code=429, retry_after=1, skip=skip))
    async with asyncio.TaskGroup() as tasks:
        for number in range(NUMBER):
            tasks.create_task(kube.apply(ref(number), application(number, "Progressing")))
    await story.until(NUMBER)
    tell(f"the view has {len(story.reflector.view)}; every 429 was waited out")

    say("All become Healthy while the watch is cut three times.")
    for number in range(NUMBER):
        if number % 15 == 7:
            server.disturb("cut", Fault(kind="applications.argoproj.io"))
        await kube.apply(ref(number), application(number, "Healthy"))
    await story.until(NUMBER, "Healthy")
    tell(f"the view is whole: {story.counts}")

    say("The watch is cut, ten Applications are deleted, and the server forgets that they ever were (410 Gone).")
    server.disturb("cut", Fault(kind="applications.argoproj.io"))
    server.faults.add(Fault(verb="watch", kind="applications.argoproj.io", code=503, times=2))
    for number in range(10):
        await kube.delete(ref(number))
    server.store.compact()
    await story.until(NUMBER - 10)
    tell(f"all ten were told as gone: {story.counts}")


async def collide(kube: KubeClient, other: KubeClient) -> None:
    say("Another manager applies a field that is ours.")
    try:
        await other.apply(ref(20), {**application(20, "Degraded"), "spec": {"project": "other"}})
    except Conflict as conflict:
        for owner in conflict.owners:
            tell(f"refused: {owner.field} belongs to {owner.manager!r}")
    assert (await kube.get(ref(20)))["spec"]["project"] == "default"


async def main() -> None:
    async with Sandbox() as sandbox, served(sandbox) as address:
        content = kubeconfigs.rendered(address, sandbox.server.identities.admin_token)
        connection = ours.load(content.encode(), where="sandbox")
        kube = KubeClient(Calls(HttpTransport(connection, environ={})))
        reader = KubeReader(Calls(HttpTransport(connection, environ={})))
        other = KubeClient(Calls(HttpTransport(connection, environ={})), manager="somebody-else")
        say(f"A cluster in this process: {address}")
        story = Story(reader)
        await kube.create(DEFINITIONS.everywhere, definition())
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(story.follow())
            await raise_and_lower(sandbox, kube, story)
            await collide(kube, other)
            following.cancel()
        say("What does the command say?  $ windlass cluster")
        environ = {"KUBECONFIG_DATA": base64.b64encode(content.encode()).decode()}
        command = [sys.executable, "-m", "windlass", "cluster"]
        await (await asyncio.create_subprocess_exec(*command, env=environ)).wait()
        say(f"The follower made {reader.counts.total} requests and {reader.counts.writes} writes.")
        for client in (kube, reader, other):
            await client.close()


def say(text: str) -> None:
    print(f"\n── {text}", flush=True)


def tell(text: str) -> None:
    print(f"   {text}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
