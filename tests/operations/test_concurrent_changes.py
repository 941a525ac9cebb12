"""What other clients change between the first look and the end of a deploy counts, or is named."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests import builders
from tests.operations.clusters import APPS, SLOW, after, begin, patch
from tests.operations.test_approved_plans import PLATFORM, with_root
from tests.operations.test_parents import ROOT
from tests.run_contexts import run_context, run_lease
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import URL, application, config, workload
from windlass.argo.cd.root_application import NAME
from windlass.core.platform.events import NodeFinished
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.reporting.reports import Action
from windlass.operations.deploy import deploy
from windlass.operations.plan import plan
from windlass.operations.planner import Moved, RunRequest
from windlass.operations.run.context import RunControl
from windlass.operations.run.run_lock import wait_until_free
from windlass.sandbox.argocd.repositories import MemoryRepository

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.events import Event
    from windlass.core.platform.planning.approvals import ApprovedPlan
    from windlass.core.platform.reporting.reports import Report


async def deploy_after_another_run(w: World, approved: ApprovedPlan | None = None) -> Report:
    """Deploy `a` and `b`, without an order; the run that holds the lock lets `b` depend on `a` before it ends."""
    request = RunRequest(Action.DEPLOY, "staging", builders.platform("a: ; b:"), Scope(), approved_plan=approved)
    context, lease = replace(run_context(w.kube), lock_timeout=timedelta(minutes=10)), run_lease(w.kube, "another-run")
    async with asyncio.TaskGroup() as tasks, lease.hold(partial(wait_until_free, lease), print):
        waiting = tasks.create_task(deploy(context, request))
        await after(10)
        await patch(w, {"metadata": {"annotations": {"windlass.dev/depends-on": "a"}}}, "b")
        await after(10)
    return waiting.result()


async def begin_unordered(w: World) -> None:
    files = {"a/all.yaml": [workload(name="a", annotations=SLOW)], "b/all.yaml": [config("b")]}
    await begin(w, files, application("a"), application("b"))


def test_annotations_that_change_while_the_run_waits_for_the_lock_give_the_order() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await begin_unordered(w)
            report = await deploy_after_another_run(w)
            assert report.summary.exit_code == 0, report.failures
            calls = w.sandbox.client()
            pods = await calls.list("pods", "default")
            (ready,) = (each for each in pods[0]["status"]["conditions"] if each["type"] == "Ready")
            started = (await calls.get(APPS, "b", "argocd"))["status"]["operationState"]["startedAt"]
            assert started >= ready["lastTransitionTime"]

    clusters.run(main())


def test_an_order_that_changes_while_the_run_waits_for_the_lock_was_not_approved() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await begin_unordered(w)
            request = RunRequest(Action.DEPLOY, "staging", builders.platform("a: ; b:"), Scope())
            approved = (await plan(run_context(w.kube).cluster, request)).summary
            with pytest.raises(ExceptionGroup) as raised:
                await deploy_after_another_run(w, approved)
            assert raised.group_contains(Moved, match="b would be synced otherwise: after a, not nothing")
            assert await w.sandbox.client().find("configmaps", "b", "default") is None

    clusters.run(main())


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "deleted": ({}, "it was deleted"),
    "automated": ({"spec": {"syncPolicy": {"automated": {}}}}, "automated sync was switched on"),
    "label": ({"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}, "it lost the label of windlass"),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_root_that_another_client_changes_during_the_run_is_named(how: str) -> None:
    change, what = CHANGES[how]

    async def main() -> None:
        async with clusters.world() as w:
            w.argocd.repositories[URL] = MemoryRepository(with_root())
            calls = w.sandbox.client()

            def react(event: Event) -> None:
                if isinstance(event, NodeFinished) and event.outcome.name == "b":
                    work = patch(w, change, NAME) if change else calls.delete(APPS, NAME, "argocd")
                    w.sandbox.start(work, name="another client")

            request = RunRequest(Action.DEPLOY, "staging", PLATFORM, Scope(), root=ROOT)
            report = await deploy(run_context(w.kube, "run-1", RunControl(react)), request)
            told = f"another client changed argocd/{NAME} during the run: {what}"
            assert any(line.startswith(told) for line in report.notices), report.notices

    clusters.run(main())


def test_a_root_that_nobody_changes_is_not_named() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            w.argocd.repositories[URL] = MemoryRepository(with_root())
            request = RunRequest(Action.DEPLOY, "staging", PLATFORM, Scope(), root=ROOT)
            report = await deploy(run_context(w.kube), request)
            assert not any("another client" in line for line in report.notices)

    clusters.run(main())
