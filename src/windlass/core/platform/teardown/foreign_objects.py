"""Foreign objects: objects inside a Namespace, or of a kind, that go when a teardown deletes its container. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.teardown.inventory import ResourceKey, owned_uids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.core.platform.teardown.inventory import PresentObjects, RemovedApplications, Unreadable

MAX_SUMMARIZED = 3  # objects named in one line
MAX_LISTED_LINES = 10  # objects that are named; the rest are only counted


@dataclass(frozen=True, slots=True)
class PlatformObjects:
    """The objects of the Applications that a run removes."""

    applications: RemovedApplications
    uids: frozenset[str] = frozenset()
    """Objects that they owned, directly or through other objects, when the run began."""
    keys: frozenset[ResourceKey] = frozenset()
    """Objects that belong to them without an owner reference, such as the claims of their StatefulSets."""


@dataclass(frozen=True, slots=True)
class ForeignObjects:
    """What the deletion of a container would destroy, or might: what could not be listed counts as foreign."""

    keys: tuple[ResourceKey, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    def __add__(self, other: ForeignObjects) -> ForeignObjects:
        keys, unreadable = {*self.keys, *other.keys}, dict.fromkeys((*self.unreadable, *other.unreadable))
        return ForeignObjects(tuple(sorted(keys)), tuple(unreadable))

    def __bool__(self) -> bool:
        return bool(self.keys or self.unreadable)

    @property
    def may_change(self) -> bool:
        """Whether another look may find nothing: only transient errors were seen."""
        return not self.keys and not any(each.is_permanent for each in self.unreadable)

    @property
    def summary(self) -> str:
        """What it is, in one line."""
        named = [str(key) for key in self.keys] or [each.what for each in self.unreadable]
        more = f" and {len(named) - MAX_SUMMARIZED} more" if len(named) > MAX_SUMMARIZED else ""
        names = ", ".join(named[:MAX_SUMMARIZED]) + more
        return f"foreign objects: {names}" if self.keys else f"objects that could not be listed: {names}"

    def lines(self) -> tuple[str, ...]:
        """One line per object, bounded."""
        lines = list(self._all_lines())
        more = len(lines) - MAX_LISTED_LINES
        return (*lines[:MAX_LISTED_LINES], f"and {more} more") if more > 0 else tuple(lines)

    def _all_lines(self) -> Iterator[str]:
        for key in self.keys:
            yield f"{key} is not managed by an application that is removed"
        for each in self.unreadable:
            yield f"{each.what} may contain objects of others: {each.error}"


def find_foreign_objects(listed: PresentObjects, platform: PlatformObjects) -> ForeignObjects:
    """Those of the listed contents that none of the Applications manages or owns.

    The Endpoints of a Service have no owner reference; they belong to the Service of the same name.
    """
    uids = owned_uids(listed.objects, platform.applications, platform.uids)
    own_keys = {found.key for found in listed.objects if found.uid in uids} | platform.keys
    foreign = (
        found.key
        for found in listed.objects
        if found.key not in own_keys
        and found.key.is_lasting
        and not (_is_endpoints(found.key) and _service_of(found.key) in own_keys)
    )
    return ForeignObjects(tuple(sorted(foreign)), listed.unreadable)


def _is_endpoints(key: ResourceKey) -> bool:
    return (key.group, key.kind) == ("", "Endpoints")


def _service_of(endpoints: ResourceKey) -> ResourceKey:
    return ResourceKey("", "Service", endpoints.namespace, endpoints.name)
