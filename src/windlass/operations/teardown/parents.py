"""Parents that would recreate their children: deleted before these, and without cascade."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import TICK
from windlass.argo.cd.application_writer import PASSING
from windlass.argo.cd.ownership import SETS
from windlass.argo.cd.resource_tracking import CASCADE, item_at, makers
from windlass.core.platform.model import scopes
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.teardown import parents as core
from windlass.core.platform.teardown.parents import Reach
from windlass.errors import WindlassError
from windlass.kube.api_errors import KubeError, NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

    from windlass.argo.cd.application_watch import Applications
    from windlass.argo.cd.application_writer import Writer
    from windlass.argo.cd.applications import Application, Place
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.teardown.inventory import Item
    from windlass.core.platform.teardown.parents import Detachment, Maker
    from windlass.kube.client.objects import Plain

DETACHED_WITHIN = 60.0  # seconds for one parent to be deleted


def ordered(view: Mapping[Place, Application], platform: Platform, argocd: str) -> Platform:
    """The platform, ordered so that a teardown deletes parents after the nodes that they define."""
    graph = core.ordered(platform.graph, makers(view), _nodes(platform, argocd))
    return replace(platform, graph=graph)


def detachment_for(view: Mapping[Place, Application], platform: Platform, scope: Scope, argocd: str) -> Detachment:
    """Which parents are deleted first, and which block the teardown. `platform`: from `with_parents_last`."""
    nodes, selected = _nodes(platform, argocd), scopes.selected(platform, scope)
    live = frozenset(name for item, name in nodes.items() if (item.namespace, item.name) in view)
    return core.detachment(makers(view), Reach(nodes, platform.graph, selected, live, scope.is_whole))


def _nodes(platform: Platform, argocd: str) -> dict[Item, str]:
    targets = {name: node.target for name, node in platform.applications.items()}
    return {
        item_at((target.namespace or argocd, target.name)): name
        for name, target in targets.items()
        if isinstance(target, ApplicationRef)
    }


def detached_words(maker: Maker) -> str:
    return f"{maker.item} makes Applications that are to go: it is removed first, and alone"


@dataclass(frozen=True, slots=True)
class Detaching:
    applications: Applications
    writer: Writer
    explain: Callable[[Collection[Item]], Awaitable[tuple[str, ...]]]

    async def detach(self, first: Iterable[Maker]) -> dict[Place, Application]:
        """Delete these parents; return the Applications among them as they were before."""
        found = {}
        for maker in first:
            place = (maker.item.namespace, maker.item.name)
            if maker.item.kind == SETS.kind:
                await self._set(maker.item)
            elif (application := self.applications.view.get(place)) is not None:
                found[place] = application
                await self._application(maker.item, place)
        return found

    async def _application(self, item: Item, place: Place) -> None:
        waited, asked = 0.0, ""
        with self.applications.following(place) as follower:
            while follower.current is not None:
                meta = follower.current.metadata
                if not meta.deletion_timestamp and asked != meta.uid:
                    try:
                        await self.writer.detach(follower.current)
                        asked = meta.uid
                    except PASSING:
                        pass  # retry: the watch will show its current state
                    except KubeError as error:
                        raise await self._stuck(item, error.what) from None
                waited += 0.0 if await follower.next() else TICK
                if waited >= DETACHED_WITHIN:
                    raise await self._stuck(item, f"it is still there after {DETACHED_WITHIN:g} s")

    async def _set(self, item: Item) -> None:
        ref, client = SETS.named(item.name, item.namespace), self.writer.client
        waited = 0.0
        while waited < DETACHED_WITHIN:
            try:
                found = await client.get(ref)
                if not found["metadata"].get("deletionTimestamp"):
                    found = await self._without_finalizer(found)
                    await self.writer.delete(ref, found["metadata"]["uid"], "Orphan")
            except NotFound:
                return
            except PASSING:
                pass
            except KubeError as error:
                raise await self._stuck(item, error.what) from None
            await client.clock.sleep(TICK)
            waited += TICK
        raise await self._stuck(item, f"it is still there after {DETACHED_WITHIN:g} s")

    async def _without_finalizer(self, found: Plain) -> Plain:
        """Remove Argo CD's finalizer, with which the ApplicationSet would delete its Applications too."""
        meta = found["metadata"]
        finalizers = meta.get("finalizers") or []
        kept = [name for name in finalizers if not name.startswith(CASCADE)]
        if kept == finalizers:
            return found
        self.writer.allow()
        change = {"metadata": {"finalizers": kept or None, "resourceVersion": meta["resourceVersion"]}}
        return await self.writer.client.patch(SETS.named(meta["name"], meta["namespace"]), change)

    async def _stuck(self, item: Item, why: str) -> WindlassError:
        lines = await self.explain([item])
        what = f"{item}, which would make again what is removed, could not be removed: {why}"
        return WindlassError(what, hint="; ".join(lines) or "look at it, then run again: nothing else was removed")
