"""Dependencies that stand on the Applications themselves count in a plan, and are told where they are wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.builders import platform
from tests.operations.clusters import begin, cluster, patch
from tests.run_contexts import run_context
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application, config
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.reporting.reports import Action
from windlass.errors import InvalidInput
from windlass.operations.deploy import deploy
from windlass.operations.plan import plan
from windlass.operations.planner import RunRequest

PLATFORM = platform("web; api; data")


def steps(annotation: str, stated: frozenset[str] = frozenset()) -> dict[str, tuple[str, ...]]:
    async def main() -> dict[str, tuple[str, ...]]:
        async with clusters.world() as w:
            files: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in ("web", "api", "data")}
            await begin(w, files, *(application(name) for name in ("web", "api", "data")))
            await patch(w, {"metadata": {"annotations": {"windlass.dev/depends-on": annotation}}})
            await asyncio.sleep(0)  # noqa: TID251 - of the loop that jumps
            found = await plan(cluster(w), RunRequest(Action.DEPLOY, "development", PLATFORM, Scope(), stated))
            return {step.name: step.after for step in found.plan.steps}

    found: dict[str, tuple[str, ...]] = clusters.run(main())
    return found


def test_an_annotation_is_an_edge() -> None:
    assert steps("api, data") == {"api": (), "data": (), "web": ("api", "data")}


def test_the_file_wins() -> None:
    assert steps("api", stated=frozenset({"web"}))["web"] == ()


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing"):
        steps("nothing")


def test_an_invalid_annotation_is_refused_before_anything_is_written() -> None:
    """Its branch may have moved, so a valid one would ask Argo CD for a refresh first."""

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config("web")]}, application("web"))
            await patch(w, {"metadata": {"annotations": {"windlass.dev/depends-on": "nothing"}}})
            before = len(w.sandbox.server.journal.writes())
            with pytest.raises(InvalidInput, match="nothing"):
                await deploy(run_context(w.kube), RunRequest(Action.DEPLOY, "staging", platform("web:"), Scope()))
            assert len(w.sandbox.server.journal.writes()) == before

    clusters.run(main())
