"""Lists of all objects of a cluster, or of some objects of any kind: only keys, owners and tracking metadata."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd.removal_step import Present
from windlass.argo.cd.resource_tracking import found_object
from windlass.kube.api_errors import ApiError, NotFound
from windlass.kube.client.objects import Typed

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.core.platform.teardown.inventory import Found, Item
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.kube.client.resources import Ref, Resource

PASSING_KINDS = frozenset({"Event", "ComponentStatus"})  # transient or synthetic
MEASURED = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})  # not stored


class Marked(Typed, frozen=True, gc=False):
    """Any object, read only for its metadata."""


@dataclass(frozen=True, slots=True)
class Looking:
    reader: KubeReader
    discovery: Discovery

    async def everything(self) -> Present:
        """List every object of every kind that can be listed."""
        kinds: dict[tuple[str, str], Resource] = {}
        for resource in self.discovery.resources:
            if "list" in resource.verbs and resource.kind not in PASSING_KINDS and resource.group not in MEASURED:
                kinds.setdefault((resource.group, resource.plural), resource)
        seen = await self._all([resource.everywhere for resource in kinds.values()])
        return Present(seen.found, (*seen.unseen, *self.discovery.silent))

    async def objects(self, items: Collection[Item]) -> Present:
        """Return those of these objects that exist.

        A kind that is not served has no objects, unless its API server does not respond: then they are unreadable.
        """
        wanted, unseen = set(items), []
        refs: dict[Ref, None] = {}
        for item in sorted(items):
            resource = self.discovery.find(item.kind, item.group)
            if resource is not None:
                refs[resource.within(item.namespace) if resource.namespaced else resource.everywhere] = None
            elif any(version.rpartition("/")[0] == item.group for version in self.discovery.silent):
                unseen.append(str(item))
        seen = await self._all(list(refs))
        return Present(tuple(found for found in seen.found if found.item in wanted), (*seen.unseen, *unseen))

    def ref_to(self, item: Item) -> Ref | None:
        resource = self.discovery.find(item.kind, item.group)
        return resource.named(item.name, item.namespace if resource.namespaced else "") if resource else None

    async def _all(self, refs: list[Ref]) -> Present:
        async with asyncio.TaskGroup() as tasks:
            asked = [(ref, tasks.create_task(self._listed(ref), name=f"list {ref}")) for ref in refs]
        answers = [(ref, task.result()) for ref, task in asked]
        found = [each for _, answer in answers for each in answer or ()]
        return Present(tuple(found), tuple(str(ref) for ref, answer in answers if answer is None))

    async def _listed(self, ref: Ref) -> list[Found] | None:
        """`None` if the list is refused or fails. A kind that is no longer served has no objects."""
        try:
            listing = await self.reader.list_metadata(ref, Marked)
        except NotFound:
            return []
        except ApiError:
            return None
        return [found_object(ref.resource, item.metadata) for item in listing.items]


def unseen_words(unseen: Collection[str]) -> str:
    return f"could not be looked at, so nobody can say what of it is left: {', '.join(sorted(unseen))}"
