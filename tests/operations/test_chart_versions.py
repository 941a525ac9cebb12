"""A chart version with missing parts is a pin, as it is for Argo CD: deployed once, and in sync afterwards."""

from __future__ import annotations

import pytest

from tests import builders
from tests.operations.clusters import after
from tests.run_contexts import run_context
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application, config
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.reporting.reports import Action
from windlass.operations.deploy import deploy
from windlass.operations.planner import RunRequest
from windlass.sandbox.argocd.repositories import MemoryRepository

CHARTS = "https://charts.test"
REQUEST = RunRequest(Action.DEPLOY, "staging", builders.platform("web:"), Scope())


@pytest.mark.parametrize("version", ["1.2", "v1.2", "1", "1.2.0"])
def test_a_version_with_missing_parts_is_deployed_once(version: str) -> None:
    async def main() -> None:
        async with clusters.world() as w:
            files = {"web/Chart.yaml": {"name": "web", "version": version}, "web/templates/all.yaml": [config()]}
            repository = w.argocd.repositories[CHARTS] = MemoryRepository()
            repository.push(files, version=version)
            source = {"repoURL": CHARTS, "chart": "web", "targetRevision": version}
            await w.sandbox.client().create("applications.argoproj.io", application(source=source))
            await after(1)
            first = await deploy(run_context(w.kube), REQUEST)
            assert [str(each.result) for each in first.components] == ["succeeded"], first.failures
            await after(60)
            writes = w.kube.counts.writes
            again = await deploy(run_context(w.kube, "run-2"), REQUEST)
            assert [str(each.result) for each in again.components] == ["unchanged"]
            assert w.kube.counts.writes == writes

    clusters.run(main())
