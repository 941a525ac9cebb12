"""The Applications of a cluster during a run: one watch for everything that reads them or waits for them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_watch import Applications
from windlass.argo.cd.application_writer import PASSING
from windlass.argo.cd.applications import NotServed, children, parse, requested_run
from windlass.argo.cd.diagnostics import diagnosed
from windlass.core.platform.events import Level, Noticed
from windlass.core.platform.model.applications import ApplicationRef
from windlass.kube.api_errors import KubeError, NotFound
from windlass.operations.observation import Cluster, observation_of, resource_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from windlass.argo.cd.application_watch import Follower
    from windlass.argo.cd.application_writer import Writer
    from windlass.argo.cd.applications import Application, Place
    from windlass.core.platform.model.applications import Platform, ResourceRef
    from windlass.core.platform.model.snapshots import ResourceState, Snapshot
    from windlass.operations.observation import Observation
    from windlass.operations.run.context import Access

REFRESHED_WITHIN = 30  # seconds for Argo CD to compare again; after that its last comparison is used
ENDED_WITHIN = 10.0  # seconds to end the operations of this run after its timeout


class Live:
    def __init__(self, access: Access, platform: Platform, writer: Writer) -> None:
        self._access = access
        self._platform = platform
        self._writer = writer
        self._trouble: KubeError | None = None
        self.cluster = Cluster(access.client, access.now, access.argocd, access.judge)
        targets = [node.target for node in platform.applications.values()]
        named = {ref.namespace or access.argocd for ref in targets if isinstance(ref, ApplicationRef)}
        self.namespaces = frozenset(named | {access.argocd})
        self.applications = Applications(access.client, self.namespaces, self._remind)

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._follow(), name="applications")
            try:
                yield
            finally:
                following.cancel()

    async def _follow(self) -> None:
        try:
            await self.applications.follow()
        except KubeError as error:
            self._trouble = error
            self.applications.is_complete.set()
            self._access.control.fail(error)

    async def complete(self) -> None:
        """Wait until all existing Applications are listed; raise the error if the watch failed."""
        await self.applications.is_complete.wait()
        if isinstance(self._trouble, NotFound):
            raise NotServed(self._trouble.where) from None
        if self._trouble is not None:
            raise self._trouble

    async def snapshot(self) -> Snapshot:
        return (await self.observation()).snapshot

    async def observation(self) -> Observation:
        taken_at, names = self._access.now(), self._platform.graph.names
        return await observation_of(self.cluster, self._platform, names, taken_at, self.applications.view)

    @property
    def root(self) -> Application | None:
        return self.applications.view.get((self._access.argocd, root_application.NAME))

    async def resource(self, ref: ResourceRef) -> ResourceState | None:
        return await resource_state(self.cluster, ref)

    async def refresh(self, names: Collection[str]) -> None:
        """Have Argo CD compare these nodes and their parents again, where a branch or tag may have moved since."""
        async with asyncio.TaskGroup() as tasks:
            for place in sorted(self.moving(names)):
                tasks.create_task(self._refreshed(place), name=f"refresh of {'/'.join(place)}")

    def moving(self, names: Collection[str]) -> set[Place]:
        """What `refresh` refreshes: these nodes and their parents, if they follow a branch, tag or version range."""
        targets = [self._platform.applications[name].target for name in names]
        places = {(t.namespace or self._access.argocd, t.name) for t in targets if isinstance(t, ApplicationRef)}
        view = self.applications.view
        parents = {place for place, found in view.items() if any(child in places for child, _ in children(found))}
        return {place for place in places | parents if place in view and parse(view[place]).is_moving}

    async def _refreshed(self, place: Place) -> None:
        with self.applications.following(place) as follower:
            try:
                async with asyncio.timeout(REFRESHED_WITHIN):
                    await _looked_at(follower)  # a refresh requested earlier may return an older comparison
                    if follower.current is not None:
                        follower.wrote(await self._writer.refresh(follower.current))
                        await _looked_at(follower)
            except (TimeoutError, *PASSING):
                told = f"{'/'.join(place)} was not looked at again; its last comparison counts"
                self._access.control.tell(Noticed(Level.WARN, told))

    async def _remind(self, application: Application) -> Application | None:
        """Request a refresh if Argo CD missed a request: any write triggers it, and this one changes nothing else."""
        is_unheard = _is_unheard(application, self._access.run_id)
        return await self._writer.try_refresh(application) if is_unheard else None

    async def diagnostics(self, names: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Lines that may explain why these nodes are not healthy, by node."""
        found: dict[str, tuple[str, ...]] = {}
        for name in names:
            target = self._platform.applications[name].target
            place = (target.namespace or self._access.argocd, target.name)
            if isinstance(target, ApplicationRef) and place in self.applications.view:
                found[name] = await diagnosed(self._access.client, self.applications.view[place])
        return found

    async def end_operations(self, run_id: str) -> None:
        """End the operations of this run that are still pending or running, as far as time allows."""
        try:
            async with asyncio.timeout(ENDED_WITHIN):
                for application in list(self.applications.view.values()):
                    if requested_run(application) == run_id:
                        await self._writer.end_operation(application)
        except (TimeoutError, KubeError) as error:
            self._access.control.tell(Noticed(Level.WARN, f"an operation of this run may go on: {error}"))


def _is_unheard(application: Application, run_id: str) -> bool:
    """Whether a refresh, or an operation of this run, is requested and Argo CD does not show that it has started."""
    state = parse(application)
    if state.is_deleting:
        return False
    is_idle = state.operation is None or state.operation.is_over
    return state.refresh_requested or (is_idle and requested_run(application) == run_id)


async def _looked_at(follower: Follower) -> None:
    """Wait until the requested refresh, if there is one, is done."""
    while follower.state is not None and follower.state.refresh_requested:
        await follower.next()
