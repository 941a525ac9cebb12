"""`import`: draft a platform from a live Argo CD. Reads only Applications, ApplicationSets and Argo CD's settings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd import ownership
from windlass.argo.cd.applications import APPLICATIONS, NotServed
from windlass.core.platform.drafting.drafts import drafted
from windlass.core.platform.drafting.ownership import Inventory
from windlass.errors import WindlassError
from windlass.kube.api_errors import Forbidden, NotFound
from windlass.kube.client.objects import Typed
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.platform.drafting.drafts import Draft
    from windlass.core.platform.drafting.ownership import FoundSet
    from windlass.operations.observation import Cluster

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SETTINGS = "argocd-cm"
WRONG_CLUSTER = "is this the cluster that Argo CD is in?"


class _Settings(Typed, frozen=True, gc=False):
    data: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    draft: Draft
    applications: int
    sets: int
    notices: tuple[str, ...] = ()
    """What could not be read, and what the draft leaves out."""


async def import_platform(cluster: Cluster) -> Imported:
    notices: list[str] = []
    made = await _applications(cluster, notices)
    sets = await _sets(cluster, notices)
    homes = Counter(home for each in made if (home := ownership.home_of(each)))
    home = homes.most_common(1)[0][0] if homes else cluster.argocd
    inventory = Inventory(
        applications=tuple(ownership.found_application(each) for each in made),
        sets=sets,
        home=home,
        assumed=cluster.argocd,
        parents_count_children=await _parents_count_children(cluster, home, made, notices),
    )
    draft = drafted(inventory)
    return Imported(draft, len(made), len(sets), (*notices, *draft.notices))


async def _applications(cluster: Cluster, notices: list[str]) -> Sequence[ownership.Made]:
    """List the Applications of all namespaces, or only of Argo CD's namespace if the user may not list the others."""
    reader = cluster.reader
    try:
        listing = await reader.list(APPLICATIONS.everywhere, ownership.Made)
    except NotFound as error:
        raise NotServed(error.where) from None
    except Forbidden:
        listing = await reader.list(APPLICATIONS.within(cluster.argocd), ownership.Made)
        notices.append(f"only Applications in {cluster.argocd} are looked at: you may not list those of all namespaces")
    staying = [each for each in listing.items if not each.metadata.deletion_timestamp]
    going = sorted(each.metadata.name for each in listing.items if each.metadata.deletion_timestamp)
    notices.extend(f"{name} is being deleted: it is left out" for name in going)
    if not staying:
        raise WindlassError("there are no Applications to import", where=reader.server, hint=WRONG_CLUSTER)
    return sorted(staying, key=lambda each: (each.metadata.namespace, each.metadata.name))


async def _sets(cluster: Cluster, notices: list[str]) -> tuple[FoundSet, ...]:
    """List the ApplicationSets; empty, with a notice, if the user may not list them.

    Their Applications are still known by their owner reference; rollout steps and sync waves of the sets are not.
    """
    for ref in (ownership.SETS.everywhere, ownership.SETS.within(cluster.argocd)):
        try:
            listing = await cluster.reader.list(ref, ownership.Generator)
        except Forbidden:
            continue
        except NotFound:
            return ()
        return tuple(ownership.found_set(each) for each in listing.items)
    notices.append("you may not list ApplicationSets: their steps and sync waves are left out")
    return ()


async def _parents_count_children(
    cluster: Cluster, home: str, made: Sequence[ownership.Made], notices: list[str]
) -> bool:
    """Whether the health of a parent Application includes the health of its children.

    True if that cannot be read: a child that waits for a parent that waits for the child would wait forever.
    """
    if any(ownership.shows_health_of_children(each) for each in made):
        return True
    try:
        settings = await cluster.reader.get(CONFIG_MAPS.named(SETTINGS, home), _Settings)
    except NotFound:
        return False
    except Forbidden:
        notices.append(
            f"you may not read {SETTINGS} in {home}, which tells whether parents are as healthy as their children: "
            "that children wait for their parents is left out"
        )
        return True
    return ownership.has_application_health(settings.data or {})
