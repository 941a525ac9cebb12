"""What crashes again and again without a readiness probe: ready whenever it runs, so healthy for a moment each time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests import builders
from tests.operations.clusters import begin
from tests.operations.test_deploy_problems import access, deployed
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application, config, workload
from windlass.core.platform.model.applications import NodeTiming, Retries
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.reporting.reports import Action
from windlass.operations import deploy
from windlass.operations.planner import RunRequest
from windlass.operations.run.context import RunControl
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


@pytest.mark.parametrize(
    ("failing", "problem"),
    [("CrashLoopBackOff", "CrashLoopBackOff"), ("ImagePullBackOff", "ImagePullBackOff"), ("", "OutOfTime")],
)
@pytest.mark.parametrize("limit", [20, 3600], ids=["the run is out of time", "the node is out of time"])
def test_a_container_that_does_not_run_is_advised_on_and_not_the_timeout(
    failing: str, problem: str, limit: int
) -> None:
    marks = {f"{ANNOTATION_PREFIX}ready-after": "never"}
    if failing:
        marks[f"{ANNOTATION_PREFIX}fails-with"] = failing
    files = {"web/all.yaml": [config(), workload(annotations=marks, progressDeadlineSeconds=3000)]}
    made = builders.platform("web:")
    timing = NodeTiming(health=timedelta(seconds=60))
    nodes = {name: replace(node, timing=timing, retries=Retries(1)) for name, node in made.applications.items()}

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, files, application())
            context = replace(access(w, RunControl(lambda _: None)), timeout=timedelta(seconds=limit))
            request = RunRequest(Action.DEPLOY, "staging", replace(made, applications=nodes), Scope())
            report = await deploy.deploy(context, request)
            assert [str(each.result) for each in report.components] == ["interrupted" if limit == 20 else "failed"]
            advice = report.recommendations[-1]
            expected = problem if failing or limit != 20 else "Interrupted"
            assert advice.detected == expected
            assert not failing or "timeout" not in advice.sentence

    clusters.run(main())
