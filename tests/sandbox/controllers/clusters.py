"""A sandbox with its actors in virtual time, with our own client at its door; and the recorded scripts played on it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any, cast

from tests.recordings.applications import HERE
from tests.recordings.clusters import staged
from tests.sandbox.controllers.objects import URL, application
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.behaviours import Behaviour
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation import virtual_time
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.recordings.scripts import Script
    from tests.recordings.sequence_files import Recording
    from tests.testbed.bed import Cluster
    from windlass.sandbox.apiserver.requests import UserInfo
    from windlass.sandbox.argocd.application_controller import ApplicationController
    from windlass.sandbox.controllers.installation import Workloads

QUICK = CallLimits(calls_per_second=10_000, burst=10_000)
BEHAVIOURS = {
    "registry.invalid/*": Behaviour(fails_with="ImagePullBackOff"),
    "*exit 1": Behaviour(ends_after=0, exit_code=1),
    "*exit 3": Behaviour(ends_after=0, exit_code=3),
    "*echo done": Behaviour(ends_after=0),
    "*sleep 1": Behaviour(ready_after=0, ends_after=1.0),
    "*tail /dev/zero": Behaviour(fails_with="OOMKilled", ends_after=0),
    "*sleep ?00000": Behaviour(ends_after=inf, ready_after=0.0, stops_after=0.0),
}
"""What the containers of the recorded scripts do."""


@dataclass(frozen=True, slots=True)
class World:
    sandbox: Sandbox
    kube: KubeClient
    workloads: Workloads
    argocd: ApplicationController


@dataclass(slots=True)
class _Git:
    """Stands in for the test bed's git server."""

    argocd: ApplicationController
    held: dict[str, MemoryRepository] = field(default_factory=dict)

    def url(self, name: str) -> str:
        return f"https://git.test/{name}.git"

    def publish(self, name: str, files: Mapping[str, str]) -> str:
        repository = self.held.setdefault(name, MemoryRepository())
        self.argocd.repositories[self.url(name)] = repository
        return repository.push(files)


@dataclass(frozen=True, slots=True)
class _Cluster:
    git: _Git


@asynccontextmanager
async def world(seed: int = 0, user: UserInfo = ADMIN) -> AsyncIterator[World]:
    """With our client in the name of this user, whose rights count if it is not the administrator."""
    async with Sandbox(virtual_time.virtual_sandbox_clock(seed), enforce_rbac=user is not ADMIN) as sandbox:
        transport = InProcessTransport(sandbox, user)
        kube = KubeClient(CallSender(transport, clock=virtual_time.virtual_clock(), limits=QUICK))
        yield World(sandbox, kube, await install_workloads(sandbox), await install_argocd(sandbox))
        states = [item for kind in sandbox.server.catalogue for item in sandbox.server.store.list(kind.id)]
        assert [item.body for item in states] == [item.load() for item in states]  # what is shared, nobody has changed


async def played(script: Script) -> Recording:
    """What a recorded script looks like here."""
    async with world() as found:
        found.workloads.behaviours.by_image.update(BEHAVIOURS)
        cluster = cast("Cluster", _Cluster(_Git(found.argocd)))
        async with staged(found.kube, cluster, script.name, script.kinds) as stage:
            if script.argocd:
                async with stage.watching(HERE):
                    await script.play(stage)
            else:
                await script.play(stage)
        return stage.recording(script.name, script.about, {})


def run(main: Any) -> Any:
    return virtual_time.run(main)


async def after(seconds: float) -> None:
    await asyncio.sleep(seconds)  # noqa: TID251 - of the loop that jumps


async def begin(w: World, files: dict[str, Any], *bodies: dict[str, Any]) -> MemoryRepository:
    """A repository, and Applications or ApplicationSets of it."""
    repository = w.argocd.repositories[URL] = MemoryRepository(files)
    for body in bodies or (application(),):
        await w.sandbox.client().create(f"{body['kind'].lower()}s.argoproj.io", body)
    await after(1)
    return repository


def set_clock_ahead(argocd: ApplicationController, seconds: float) -> None:
    """Let Argo CD's own clock be so far ahead of the API server's; it sees changes as soon as before."""
    now = argocd.clock.now
    argocd.clock = replace(argocd.clock, now=lambda: now() + timedelta(seconds=seconds))
    argocd.lag += seconds
