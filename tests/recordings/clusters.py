"""The stage of one recording: a namespace, watches on it, and a script that acts and waits."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.recordings import normalization
from tests.recordings.sequence_files import Done, Recording, Seen
from windlass.kube.api_errors import NotFound
from windlass.kube.client.readers import WatchStart
from windlass.kube.client.resources import Resource
from windlass.kube.client.watches import WatchEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from tests.testbed.bed import Cluster
    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.objects import PropagationPolicy, RawObject
    from windlass.kube.client.resources import Ref

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PATIENCE = 120.0  # seconds for a wait of a script


@dataclass(frozen=True, slots=True)
class _Mark:
    version: float
    what: str


class Stage:
    """Acts through `kube`, sees through watches; the order is that of the server's versions."""

    def __init__(self, kube: KubeClient, cluster: Cluster, namespace: str) -> None:
        self.kube = kube
        self.cluster = cluster
        self.namespace = namespace
        self._marks: list[_Mark] = []
        self._events: list[tuple[int, str, RawObject]] = []
        self._changed = asyncio.Event()
        self._now: dict[tuple[str, str], RawObject] = {}

    @asynccontextmanager
    async def watching(self, *refs: Ref) -> AsyncIterator[None]:
        starts = [(ref, (await self.kube.list(ref)).resource_version) for ref in refs]
        async with asyncio.TaskGroup() as tasks:
            watchers = [tasks.create_task(self._watch(ref, start)) for ref, start in starts]
            yield
            for watcher in watchers:
                watcher.cancel()

    async def create(self, ref: Ref, item: RawObject, what: str = "") -> RawObject:
        await self.mark(what or f"create {item['kind']} {item['metadata']['name']}")
        return await self.kube.create(ref, item)

    async def patch(self, ref: Ref, change: RawObject, what: str) -> RawObject:
        await self.mark(what)
        return await self.kube.patch(ref, change)

    async def delete(self, ref: Ref, propagation: PropagationPolicy = "Background") -> None:
        await self.mark(f"delete {ref.resource.kind} {ref.name}, {propagation}")
        await self.kube.delete(ref, propagation=propagation)

    async def mark(self, what: str) -> None:
        """Notes an action at the version that the server has just now."""
        version = (await self.kube.list(NAMESPACES.everywhere)).resource_version
        self._marks.append(_Mark(int(version) + 0.5, what))

    async def until(self, kind: str, name: str, holds: Callable[[RawObject], object]) -> RawObject:
        """Until an object looks so."""
        return await self._until(lambda: self._now.get((kind, name)), holds, f"{kind} {name}")

    async def until_any(self, kind: str, holds: Callable[[RawObject], object]) -> RawObject:
        """Until some object of a kind looks so."""

        def first() -> RawObject | None:
            found = [item for (its, _), item in self._now.items() if its == kind and holds(item)]
            return found[0] if found else None

        return await self._until(first, lambda _: True, f"some {kind}")

    async def until_gone(self, kind: str, name: str = "") -> None:
        """Until an object, or all of a kind, are gone."""

        def left() -> RawObject | None:
            keys = [key for key in self._now if key[0] == kind and name in {"", key[1]}]
            return None if keys else {}

        await self._until(left, lambda _: True, f"the end of {kind} {name}")

    async def settled(self, seconds: float = 1.5) -> None:
        """Until nothing has changed for a while."""
        while True:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                return

    def recording(self, name: str, about: str, versions: dict[str, str]) -> Recording:
        marks = normalization.Marks()
        for _, _, item in self._events:
            marks.see(item)
        steps: list[tuple[float, Done | Seen]] = [(mark.version, Done(mark.what)) for mark in self._marks]
        shown: dict[tuple[str, str], str] = {}
        for version, kind, item in sorted(self._events, key=lambda event: event[0]):
            reduced = marks.rewritten(normalization.reduced(item))
            seen = Seen(kind, item["kind"], reduced["metadata"]["name"], reduced)
            text = json.dumps([kind == "DELETED", reduced])
            if shown.get((seen.kind, seen.name)) != text:
                steps.append((version, seen))
            shown[seen.kind, seen.name] = text
        return Recording(name, about, versions, tuple(step for _, step in sorted(steps, key=lambda step: step[0])))

    async def _until(
        self, find: Callable[[], RawObject | None], holds: Callable[[RawObject], object], what: str
    ) -> RawObject:
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    self._changed.clear()
                    found = find()
                    if found is not None and holds(found):
                        return found
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"{what} did not come to look as expected: {json.dumps(find())}") from None

    async def _watch(self, ref: Ref, start: str) -> None:
        async for event in self.kube.watch(ref, WatchStart(start)):
            if isinstance(event, WatchEvent):
                self._take(event.type, event.item)

    def _take(self, kind: str, item: RawObject) -> None:
        meta = item["metadata"]
        self._events.append((int(meta["resourceVersion"]), kind, item))
        if kind == "DELETED":
            self._now.pop((item["kind"], meta["name"]), None)
        else:
            self._now[item["kind"], meta["name"]] = item
        self._changed.set()


@asynccontextmanager
async def staged(kube: KubeClient, cluster: Cluster, name: str, kinds: Sequence[Resource]) -> AsyncIterator[Stage]:
    """A namespace of the recording's own, watched for these kinds, and gone afterwards."""
    namespace = f"recording-{name}"
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await kube.create(NAMESPACES.everywhere, item)
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    await _there(lambda: kube.get(accounts.named("default", namespace)), kube)
    stage = Stage(kube, cluster, namespace)
    try:
        refs = [kind.in_namespace(namespace) if kind.namespaced else kind.everywhere for kind in kinds]
        async with stage.watching(*refs):
            yield stage
    finally:
        await kube.delete(NAMESPACES.named(namespace))


async def _there(get: Callable[[], Awaitable[object]], kube: KubeClient) -> None:
    while True:
        try:
            await get()
        except NotFound:
            await kube.clock.sleep(0.1)
        else:
            return
