"""A run's context on any client: how the product composes it from its two ways to write."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.refresher import Refresher
from windlass.kube.leases import LeaseClaim, ProcessLease
from windlass.operations.cluster_identity import LEASE_NAME
from windlass.operations.observation import ObservedCluster
from windlass.operations.run.context import RunContext, RunControl

if TYPE_CHECKING:
    from windlass.kube.client.clients import KubeClient

HOUR = timedelta(hours=1)


def run_lease(client: KubeClient, holder: str, namespace: str = "argocd") -> ProcessLease:
    return ProcessLease(client, LeaseClaim(LEASE_NAME, namespace, holder, client.clock.now))


def run_context(
    client: KubeClient,
    run_id: str = "run-1",
    control: RunControl | None = None,
    timeout: timedelta = HOUR,
    cluster: ObservedCluster | None = None,
) -> RunContext:
    cluster = replace(cluster or ObservedCluster(client, client.clock.now), reader=client)
    lease = run_lease(client, run_id, cluster.argocd_namespace)
    return RunContext(cluster, lease, Refresher(client), run_id, control or RunControl(lambda _: None), timeout)
