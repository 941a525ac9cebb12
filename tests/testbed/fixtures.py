"""Fixtures for tests on the real thing: one node per run, and Argo CD on that same node."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.testbed import argocd
from tests.testbed.bed import Bed, Cluster
from tests.testbed.progress import say

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def real_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real Kubernetes of one node; WINDLASS_TESTBED names the directory of one that is already running."""
    running = os.environ.get("WINDLASS_TESTBED")
    with contextlib.nullcontext() if running else Bed() as bed:
        cluster = bed.cluster() if bed else Cluster(Path(str(running)))
        yield cluster
        if request.session.testsfailed:
            say(f"\ntestbed: logs of every component are in {cluster.collect_logs('tests')}")


@pytest.fixture(scope="session")
def argocd_cluster(real_cluster: Cluster) -> Cluster:
    """The same cluster with stock Argo CD in the namespace argocd."""
    argocd.install(real_cluster)
    return real_cluster
