"""Dependencies that stand on the Applications themselves count in a plan. Wrong ones are told and stop nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import platform
from tests.operations.clusters import begin, cluster, patch
from tests.run_contexts import run_context
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application, config
from windlass.core.platform.model.scopes import Scope, parse_scope
from windlass.core.platform.reporting.reports import Action
from windlass.operations.deploy import deploy
from windlass.operations.plan import PlanResult, plan
from windlass.operations.planner import RunRequest
from windlass.operations.teardown.teardown import teardown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.run.context import RunContext

PLATFORM = platform("web; api; data")


def planned(annotation: str, stated: frozenset[str] = frozenset()) -> PlanResult:
    async def main() -> PlanResult:
        async with clusters.world() as w:
            files: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in ("web", "api", "data")}
            await begin(w, files, *(application(name) for name in ("web", "api", "data")))
            await patch(w, {"metadata": {"annotations": {"windlass.dev/depends-on": annotation}}})
            await asyncio.sleep(0)  # noqa: TID251 - of the loop that jumps
            return await plan(cluster(w), RunRequest(Action.DEPLOY, "development", PLATFORM, Scope(), stated))

    found: PlanResult = clusters.run(main())
    return found


def steps(annotation: str, stated: frozenset[str] = frozenset()) -> dict[str, tuple[str, ...]]:
    return {step.name: step.after for step in planned(annotation, stated).plan.steps}


def test_an_annotation_is_an_edge() -> None:
    assert steps("api, data") == {"api": (), "data": (), "web": ("api", "data")}


def test_the_file_wins() -> None:
    assert steps("api", stated=frozenset({"web"}))["web"] == ()


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        ("nothing,data", "'nothing' is ignored, because there is no such node"),
        ("web,data", "'web' is ignored, because it would close the cycle web -> web"),
        ("x" * 250_000 + ",data", f"'{'x' * 80}' is ignored, because there is no such node"),
        (",".join(f"n{i}" for i in range(30_000)) + ",data", "; 29997 more names are ignored"),
        ("\x00\u202e/../,data", r"'\x00\u202e/../' is ignored, because there is no such node"),
    ],
    ids=["unknown", "itself", "long", "many", "control"],
)
def test_a_bad_annotation_is_told_and_the_rest_of_it_counts(annotation: str, told: str) -> None:
    found = planned(annotation)
    assert {step.name: step.after for step in found.plan.steps} == {"api": (), "data": (), "web": ("data",)}
    [notice] = [each for each in found.report.notices if told in each]
    assert notice.startswith("annotation windlass.dev/depends-on of Application web: ")
    assert len(notice) < 1000


@pytest.mark.parametrize("operation", [deploy, teardown], ids=lambda it: it.__name__)
def test_a_tenant_cannot_veto_a_run(operation: Callable[[RunContext, RunRequest], Awaitable[Report]]) -> None:
    """The file says that web needs data; the annotation of data says the opposite."""

    async def main() -> Report:
        async with clusters.world() as w:
            files: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in ("web", "data")}
            await begin(w, files, application("web"), application("data"))
            await patch(w, {"metadata": {"annotations": {"windlass.dev/depends-on": "web"}}}, "data")
            action = Action.DEPLOY if operation is deploy else Action.TEARDOWN
            request = RunRequest(action, "staging", platform("web: data"), Scope(), frozenset({"web"}))
            return await operation(run_context(w.kube), request)

    report: Report = clusters.run(main())
    assert (report.summary.exit_code, len(report.components)) == (0, 2)
    place = "annotation windlass.dev/depends-on of Application data"
    assert f"{place}: 'web' is ignored, because it would close the cycle data -> web -> data" in report.notices


def test_a_teardown_that_is_refused_tells_of_annotations_as_well() -> None:
    async def main() -> Report:
        async with clusters.world() as w:
            files: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in ("web", "data")}
            await begin(w, files, application("web"), application("data"))
            await patch(w, {"metadata": {"annotations": {"windlass.dev/depends-on": "web"}}}, "data")
            request = RunRequest(Action.TEARDOWN, "staging", platform("web: data"), parse_scope("app:data"))
            return await teardown(run_context(w.kube), request)

    report: Report = clusters.run(main())
    assert (report.summary.exit_code, [each.name for each in report.unmet]) == (1, ["web"])
    assert any("'web' is ignored" in each for each in report.notices)
