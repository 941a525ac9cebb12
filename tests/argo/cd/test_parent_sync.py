"""The sync of children through their parent: each counts by its own row in the result, and only while it is ready."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.argo.cd.test_sync_step import held_writer
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import application
from windlass.argo.cd.application_watch import ApplicationsWatch
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.argo.cd.parent_sync import ParentSync
from windlass.core.platform.model.snapshots import ParentApplication

if TYPE_CHECKING:
    from collections.abc import Collection

ROOT = APPLICATIONS.named("root", "argocd")
PARENT = ParentApplication("argocd", "root", ("abc",))
WEB = ("argocd", "web")
ROW = {"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": "web"}
TIMES = {"startedAt": "2030-01-01T00:00:00Z", "finishedAt": "2030-01-01T00:00:01Z"}


async def remind(application: Application) -> None:
    del application


async def end_operation(w: Any, phase: str, rows: list[dict[str, Any]]) -> None:
    """As Argo CD does, with these rows in the result."""
    while "operation" not in (found := await w.kube.get(ROOT)):
        await w.sandbox.clock.sleep(0.5)
    result = {"revision": "abc", "resources": rows}
    state = {"phase": phase, "operation": found["operation"], **TIMES, "syncResult": result, "message": "as it ended"}
    await w.kube.patch(ROOT, {"operation": None, "status": {"operationState": state}})


def synced(phase: str, rows: list[dict[str, Any]]) -> tuple[str | None, bool]:
    """What the sync of `web` tells, and whether it counts as synced."""

    async def main() -> tuple[str | None, bool]:
        async with clusters.world() as w, asyncio.TaskGroup() as tasks:
            w.argocd.pause()
            await w.sandbox.client().create("applications.argoproj.io", application("root"))
            applications = ApplicationsWatch(w.kube, {"argocd"}, remind)
            watching = tasks.create_task(applications.run())
            await applications.initial_list_done.wait()
            async with held_writer(w) as writer:
                ready: set[str] = set()

                async def ready_nodes(names: Collection[str]) -> Collection[str]:
                    return ready.intersection(names)

                parent_sync = ParentSync(applications, writer, w.kube.clock.now, "run-1", ready_nodes)
                assert await parent_sync.sync_child(PARENT, WEB, "web") is None
                assert "operation" not in await w.kube.get(ROOT)
                ending = tasks.create_task(end_operation(w, phase, rows))
                ready.add("web")
                result = await parent_sync.sync_child(PARENT, WEB, "web")
                await ending
                assert not writer.open_requests
            watching.cancel()
            return result, WEB in parent_sync.synced_children

    result, is_synced = clusters.run(main())
    return result, is_synced


@pytest.mark.parametrize(
    ("phase", "rows", "failure"),
    [
        ("Succeeded", [{**ROW, "status": "Synced"}], ""),
        ("Succeeded", [{**ROW, "namespace": "", "status": "Synced"}], ""),
        ("Failed", [{**ROW, "status": "Synced"}, {**ROW, "name": "other", "status": "SyncFailed"}], ""),
        ("Failed", [{**ROW, "status": "SyncFailed", "message": "no such field"}], "no such field"),
        ("Succeeded", [{**ROW, "status": "SyncFailed", "message": "no such field"}], "no such field"),
        ("Succeeded", [], "it does not define it at abc"),
        ("Succeeded", [{**ROW, "group": "example.org", "status": "Synced"}], "it does not define it at abc"),
        ("Failed", [], "as it ended"),
    ],
)
def test_a_child_counts_by_its_own_row(phase: str, rows: list[dict[str, Any]], failure: str) -> None:
    told = f"argocd/root, which defines it: {failure}" if failure else ""
    assert synced(phase, rows) == (told, not failure)
