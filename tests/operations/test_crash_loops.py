"""What crashes again and again without a readiness probe: ready whenever it runs, so healthy for a moment each time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests import builders
from tests.operations.clusters import begin
from tests.operations.test_deploy_problems import deployed
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application, config, workload
from windlass.core.platform.model.applications import NodeTiming, Retries
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

CRASHING = {
    f"{ANNOTATION_PREFIX}fails-with": "CrashLoopBackOff",
    f"{ANNOTATION_PREFIX}ready-after": "0s",
    f"{ANNOTATION_PREFIX}ends-after": "5s",
}


@pytest.mark.parametrize(
    ("stability", "code", "results"),
    [(0, 2, {"web": "failed", "next": "succeeded"}), (30, 1, {"web": "failed", "next": "skipped"})],
)
def test_stability_keeps_its_gate_shut_and_without_it_the_end_of_the_run_tells(
    stability: int, code: int, results: dict[str, str]
) -> None:
    """Without a probe and without stability nothing tells its first moments from health: the pages say so."""
    slow = workload(name="next", annotations={f"{ANNOTATION_PREFIX}ready-after": "30s"})
    files = {"web/all.yaml": [config(), workload(annotations=CRASHING)], "next/all.yaml": [slow]}
    made = builders.platform("next: web; web:")
    patience = NodeTiming(stability=timedelta(seconds=stability))
    nodes = {name: replace(node, timing=patience, retries=Retries(1)) for name, node in made.applications.items()}

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, files, application(), application("next"))
            report = await deployed(w, replace(made, applications=nodes))
            assert {each.name: str(each.result) for each in report.components} == results
            assert report.summary.exit_code == code

    clusters.run(main())
