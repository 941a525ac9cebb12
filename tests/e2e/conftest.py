"""Makes the fixtures of the test bed known; asked for twice, they still are the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.testbed.bed import Cluster


def pytest_configure(config: pytest.Config) -> None:
    """Register the fixtures once, whichever of the suites comes first."""
    config.pluginmanager.import_plugin("tests.testbed.fixtures")


@pytest.fixture(autouse=True)
def no_platform_of_a_failed_test(request: pytest.FixtureRequest) -> None:
    """Remove the root and the record of a platform that a failed test left: the next one would be refused."""
    if "argocd_cluster" in request.fixturenames:
        cluster: Cluster = request.getfixturevalue("argocd_cluster")
        for leftover in ("lease/windlass", "application/platform-root"):
            cluster.kubectl("delete", leftover, "-n", "argocd", "--ignore-not-found")
