"""After the Applications are deleted: delete what no cascade deletes and nothing uses, and report the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import TICK
from windlass.argo.cd.resource_tracking import names_of
from windlass.core.platform.teardown import inventory
from windlass.kube.api_errors import KubeError
from windlass.operations.observation import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from windlass.argo.cd.application_writer import Writer
    from windlass.argo.cd.removal_step import Present
    from windlass.core.platform.teardown.inventory import Found, Item, Leaving
    from windlass.operations.teardown.cluster_objects import Looking
    from windlass.operations.teardown.finalizers import Explaining

GONE_WITHIN = 120.0  # seconds for objects whose deletion is in progress


@dataclass(slots=True)
class Leftovers:
    looking: Looking
    writer: Writer
    explaining: Explaining
    leaving: Leaving
    before: frozenset[str]
    """UIDs of the objects that the deleted Applications owned before the teardown."""
    retained: list[str] = field(default_factory=list)
    unseen: tuple[str, ...] = ()
    _asked: set[Item] = field(default_factory=set)
    _refused: dict[Item, str] = field(default_factory=dict)

    async def clean(self, namespaces: Iterable[str]) -> None:
        """Delete CRDs of kinds without objects, then those of these namespaces that are empty."""
        look = await self._settled()
        for found in inventory.idle_definitions(look.found, self._left(look)):
            if not found.is_kept:
                await self._delete(found)
        await self._until_gone()
        await self._clean_namespaces(await self.looking.everything() if self._asked else look, namespaces)
        await self._until_gone()

    async def _settled(self) -> Present:
        """Wait while objects left behind are being deleted, or have lost their owner and await garbage collection."""
        look = await self.looking.everything()
        clock, waited = self.looking.reader.clock, 0.0
        while waited < GONE_WITHIN and any(found.is_deleting or found.owners for found in self._left(look)):
            await clock.sleep(TICK)
            waited += TICK
            there = await self.looking.objects({found.item for found in self._left(look)})
            if not any(found.is_deleting or found.owners for found in there.found):
                look = await self.looking.everything()
        return look

    async def _clean_namespaces(self, look: Present, namespaces: Iterable[str]) -> None:
        there = {found.item.name: found for found in look.found if found.item.kind == "Namespace"}
        for name in namespaces:
            if name not in there:
                continue
            if inside := inventory.contents(look.found, name):
                self.retained.append(f"{there[name].item}, for {names_of(inside)} is in it")
            else:
                await self._delete(there[name])

    async def _delete(self, found: Found) -> None:
        ref = self.looking.ref_to(found.item)
        self._asked.add(found.item)
        try:
            if ref is not None:
                await self.writer.delete(ref, found.uid)
        except KubeError as error:
            self._refused[found.item] = error.what

    async def _until_gone(self) -> None:
        clock, waited = self.looking.reader.clock, 0.0
        while waited < GONE_WITHIN and (await self._present(self._asked - self._refused.keys())):
            await clock.sleep(TICK)
            waited += TICK

    async def _present(self, items: Collection[Item]) -> tuple[Found, ...]:
        return (await self.looking.objects(items)).found if items else ()

    async def orphans(self) -> tuple[str, ...]:
        """Describe what is still there and what blocks its deletion; objects marked to be kept count as retained."""
        look = await self.looking.everything()
        self.unseen = look.unseen
        lines = []
        for found in self._left(look):
            if found.is_kept:
                self.retained.append(f"{found.item}: it says itself that it stays")
            else:
                lines += await self._told(found)
        for found in await self._present(self._asked):
            if found.item.kind == NAMESPACES.kind:
                lines += await self._told(found)
        return tuple(lines)

    def _left(self, look: Present) -> tuple[Found, ...]:
        return inventory.left_behind(look.found, self.before, self.leaving)

    async def _told(self, found: Found) -> list[str]:
        if why := self._refused.get(found.item):
            return [f"{found.item}: its deletion was refused: {why}"]
        if found.is_deleting:
            return list(await self.explaining.explain([found.item])) or [str(found.item)]
        if found.item.is_definition:
            return [f"{found.item}: there are objects of its kind"]
        return [str(found.item)]
