"""Stock Argo CD on a running bed, from its own manifest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.testbed import gobuild
from tests.testbed.components import ARGOCD
from tests.testbed.progress import step

if TYPE_CHECKING:
    from tests.testbed.bed import Cluster

NAMESPACE = "argocd"
READY_TIMEOUT = 300.0


def install(cluster: Cluster) -> None:
    """Apply the manifest as it is and wait until every workload in it is ready."""
    with step(f"Argo CD {ARGOCD.version} ready"):
        cluster.namespace(NAMESPACE)
        for manifest in ARGOCD.manifests:
            path = gobuild.built(ARGOCD) / "files" / manifest
            cluster.apply(path.read_text(), f"--namespace={NAMESPACE}")
        deadline = time.monotonic() + READY_TIMEOUT
        for workload in cluster.kubectl("get", "deployments,statefulsets", "-n", NAMESPACE, "-o", "name").split():
            left = max(1.0, deadline - time.monotonic())
            cluster.kubectl(
                *("rollout", "status", workload, f"--namespace={NAMESPACE}", f"--timeout={left:.0f}s"),
                timeout=left + 15,
            )
