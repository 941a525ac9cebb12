"""`import`: draft a platform from a live Argo CD. Reads only Applications, ApplicationSets and Argo CD's settings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd import ownership
from windlass.argo.cd.applications import APPLICATIONS, NotServed
from windlass.core.platform.drafting.drafts import draft_platform
from windlass.core.platform.drafting.ownership import ArgoInventory
from windlass.errors import WindlassError
from windlass.kube.api_errors import Forbidden, NotFound
from windlass.kube.client.objects import TypedObject
from windlass.kube.client.resources import CONFIG_MAPS
from windlass.operations.observation import ARGOCD_CONFIG_MAP, ILLEGAL_ROWS_NOTICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.core.platform.drafting.drafts import Draft
    from windlass.core.platform.drafting.ownership import ObservedApplicationSet
    from windlass.operations.observation import ObservedCluster

WRONG_CLUSTER_HINT = "is this the cluster that Argo CD is in?"


class _ConfigMap(TypedObject, frozen=True, gc=False):
    data: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ImportResult:
    draft: Draft
    application_count: int
    application_set_count: int
    notices: tuple[str, ...] = ()
    """What could not be read, and what the draft leaves out."""


async def import_platform(cluster: ObservedCluster) -> ImportResult:
    notices: list[str] = []
    applications = await _list_applications(cluster, notices)
    application_sets = await _list_application_sets(cluster, notices)
    namespace_counts = Counter(
        controller_namespace for each in applications if (controller_namespace := ownership.controller_namespace(each))
    )
    controller_namespace = namespace_counts.most_common(1)[0][0] if namespace_counts else cluster.argocd_namespace
    inventory = ArgoInventory(
        applications=tuple(ownership.parse_application_manifest(each) for each in applications),
        application_sets=application_sets,
        argocd_namespace=controller_namespace,
        default_namespace=cluster.argocd_namespace,
        parent_health_includes_children=await _parents_include_child_health(
            cluster, controller_namespace, applications, notices
        ),
    )
    if dropped := sum(map(ownership.illegal_rows, applications)):
        notices.append(ILLEGAL_ROWS_NOTICE.format(dropped))
    draft = draft_platform(inventory)
    return ImportResult(draft, len(applications), len(application_sets), (*notices, *draft.notices))


async def _list_applications(cluster: ObservedCluster, notices: list[str]) -> Sequence[ownership.ApplicationManifest]:
    """List the Applications of all namespaces, or only of Argo CD's namespace if the user may not list the others."""
    reader = cluster.reader
    try:
        listing = await reader.list(APPLICATIONS.everywhere, ownership.ApplicationManifest)
    except NotFound as error:
        raise NotServed(error.where) from None
    except Forbidden:
        listing = await reader.list(APPLICATIONS.in_namespace(cluster.argocd_namespace), ownership.ApplicationManifest)
        notices.append(
            f"only Applications in {cluster.argocd_namespace} are read: no right to list those of all namespaces"
        )
    remaining = [each for each in listing.items if not each.metadata.deletion_timestamp]
    deleting = sorted(each.metadata.name for each in listing.items if each.metadata.deletion_timestamp)
    notices.extend(f"{name} is being deleted: it is left out" for name in deleting)
    if not remaining:
        raise WindlassError("there are no Applications to import", where=reader.server, hint=WRONG_CLUSTER_HINT)
    return sorted(remaining, key=lambda each: (each.metadata.namespace, each.metadata.name))


async def _list_application_sets(cluster: ObservedCluster, notices: list[str]) -> tuple[ObservedApplicationSet, ...]:
    """List the ApplicationSets; empty, with a notice, if the user may not list them.

    Their Applications are still known by their owner reference; rollout steps and sync waves of the sets are not.
    """
    for ref in (
        ownership.APPLICATION_SETS.everywhere,
        ownership.APPLICATION_SETS.in_namespace(cluster.argocd_namespace),
    ):
        try:
            listing = await cluster.reader.list(ref, ownership.ApplicationSetManifest)
        except Forbidden:
            continue
        except NotFound:
            return ()
        return tuple(ownership.parse_application_set(each) for each in listing.items)
    notices.append("you may not list ApplicationSets: their steps and sync waves are left out")
    return ()


async def _parents_include_child_health(
    cluster: ObservedCluster,
    controller_namespace: str,
    applications: Sequence[ownership.ApplicationManifest],
    notices: list[str],
) -> bool:
    """Whether the health of a parent Application includes the health of its children.

    True if that cannot be read: a child that waits for a parent that waits for the child would wait forever.
    """
    if any(ownership.reports_child_health(each) for each in applications):
        return True
    try:
        config_map = await cluster.reader.get(CONFIG_MAPS.named(ARGOCD_CONFIG_MAP, controller_namespace), _ConfigMap)
    except NotFound:
        return False
    except Forbidden:
        notices.append(
            f"you may not read {ARGOCD_CONFIG_MAP} in {controller_namespace}, which tells whether parents "
            "are as healthy as their children: that children wait for their parents is left out"
        )
        return True
    return ownership.has_application_health_check(config_map.data or {})
