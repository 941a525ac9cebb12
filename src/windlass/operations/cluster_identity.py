"""The identity of a cluster: which environment and platform it is recorded as, and whether a request fits that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.identity import ClusterIdentity, identity_mismatch, recorded_identity
from windlass.errors import InvalidInput
from windlass.kube.api_errors import Forbidden, NotFound
from windlass.kube.client.resources import LEASES
from windlass.operations.observation import NAMESPACES

if TYPE_CHECKING:
    from windlass.core.platform.planning.approvals import ApprovedPlan
    from windlass.kube.client.objects import RawObject
    from windlass.operations.observation import ObservedCluster

LEASE_NAME = "windlass"
"""The Lease of runs, in Argo CD's namespace: the lock, and the record of the cluster's identity."""
SERVER_BINDING = "server "
"""Prefix of the binding to a server's URL; a cluster has several URLs, and another cluster may get this one."""
TAKE_OVER_HINT = "check kubeconfig, environment and platform file; --take-over records the new names"


class WrongPlatform(InvalidInput):
    """The cluster belongs to another environment or platform than the request."""


class WrongCluster(InvalidInput):
    """The approved plan was made for another cluster."""


async def read_identity(cluster: ObservedCluster) -> ClusterIdentity | None:
    """The recorded identity; `None` if there is none, or if it may not be read."""
    try:
        return lease_identity(await cluster.reader.get(LEASES.named(LEASE_NAME, cluster.argocd_namespace)))
    except (NotFound, Forbidden):  # a run that may not read the Lease cannot acquire it either
        return None


def lease_identity(lease: RawObject | None) -> ClusterIdentity | None:
    return recorded_identity(((lease or {}).get("metadata") or {}).get("annotations") or {})


def check_identity(recorded: ClusterIdentity | None, requested: ClusterIdentity, where: str) -> None:
    """Raise `WrongPlatform` if the cluster is recorded as another one."""
    if mismatch := identity_mismatch(recorded, requested):
        raise WrongPlatform(mismatch, where=where, hint=TAKE_OVER_HINT)


async def read_cluster_binding(cluster: ObservedCluster) -> str:
    """What a plan file is bound to: the UID of the namespace kube-system, or the server's URL if that is unreadable."""
    try:
        found = await cluster.reader.get(NAMESPACES.named("kube-system"))
    except (NotFound, Forbidden):
        return f"{SERVER_BINDING}{cluster.reader.server}"
    return f"uid {found['metadata']['uid']}"


async def check_cluster_binding(cluster: ObservedCluster, approved: ApprovedPlan | None) -> None:
    """Raise `WrongCluster` if the approved plan was made for another cluster."""
    if approved is None:
        return
    actual = await read_cluster_binding(cluster)
    if approved.cluster != actual:
        raise WrongCluster(
            f"the plan was made for the cluster {approved.cluster!r}; this is {actual!r}",
            where=cluster.reader.server,
            hint="make a new one: windlass plan --out FILE",
        )


async def identity_notices(cluster: ObservedCluster, requested: ClusterIdentity) -> list[str]:
    """The notice of a command that only reads: deploy and teardown would be refused."""
    mismatch = identity_mismatch(await read_identity(cluster), requested)
    return [f"{mismatch}: deploy and teardown refuse this without --take-over"] if mismatch else []
