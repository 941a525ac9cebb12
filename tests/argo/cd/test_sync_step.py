"""The step of one node beside others who write: nothing is written onto a state that was not seen."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.builders import typed_object
from tests.run_contexts import run_lease
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import URL, application, config
from windlass.argo.cd.application_writer import ApplicationWriter
from windlass.argo.cd.applications import APPLICATIONS, RUN_ID_KEY, Application, requested_run_id
from windlass.argo.cd.sync_requests import SyncRequest
from windlass.argo.cd.sync_step import is_race
from windlass.core.platform.gate_values import Failed, Reason
from windlass.kube.api_errors import Conflict
from windlass.kube.leases import LockLost
from windlass.operations.run.context import RunControl
from windlass.operations.run.run_lock import hold_lock
from windlass.sandbox.argocd.repositories import MemoryRepository

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.sandbox.controllers.clusters import World

REF = APPLICATIONS.named("web", "argocd")


async def begun(w: World) -> Application:
    w.argocd.repositories[URL] = MemoryRepository({"web/all.yaml": [config()]})
    await w.sandbox.client().create("applications.argoproj.io", application())
    await w.sandbox.clock.sleep(1.0)
    return await shown(w)


async def shown(w: World) -> Application:
    return typed_object(await w.kube.get(REF), Application)


@asynccontextmanager
async def held_writer(w: World) -> AsyncIterator[ApplicationWriter]:
    async with hold_lock(run_lease(w.kube, "run-1"), RunControl(lambda _: None)) as client:
        yield ApplicationWriter(client)


def wish(run_id: str = "run-1") -> SyncRequest:
    return SyncRequest(("main",), run_id)


def test_an_operation_is_written_onto_exactly_what_was_seen() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            w.argocd.pause()
            seen = await begun(w)
            await w.kube.patch(REF, {"metadata": {"labels": {"moved": "yes"}}})
            async with held_writer(w) as writer:
                with pytest.raises(Conflict):
                    await writer.sync(seen, wish())
                assert await writer.try_sync(seen, wish()) is None, "look again"
                assert (await shown(w)).operation is None
                written = await writer.try_sync(await shown(w), wish())
            assert isinstance(written, Application)
            assert requested_run_id(written) == "run-1"

    clusters.run(main())


def test_one_that_was_not_taken_up_can_be_taken_back() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            w.argocd.pause()
            seen = await begun(w)
            async with held_writer(w) as writer:
                written = await writer.sync(seen, wish())
                assert (await writer.end_operation(written)).operation is None

    clusters.run(main())


def test_one_that_runs_is_terminated() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            seen = await begun(w)
            async with held_writer(w) as writer:
                await writer.sync(seen, wish())
                await w.sandbox.clock.sleep(0.2)
                await writer.end_operation(await shown(w))
                await w.sandbox.clock.sleep(2.0)
            found = await w.kube.get(REF)
            assert "operation" not in found
            assert found["status"]["operationState"]["message"] == "Operation terminated"
            assert await w.sandbox.client().find("configmaps", "web", "default") is None

    clusters.run(main())


def test_nothing_is_written_once_the_lock_is_lost() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            seen = await begun(w)
            async with held_writer(w) as writer:
                pass
            refused = (writer.try_sync(seen, wish()), writer.end_operation(seen), writer.delete_application(seen))
            for attempt in refused:
                with pytest.raises(LockLost):
                    await attempt
            with pytest.raises(LockLost):
                await writer.client.apply(REF, {"metadata": {"name": "web"}})
            verbs = {entry.verb for entry in w.sandbox.server.journal.writes("kubernetes-admin")}
            assert not verbs & {"patch", "apply", "delete"}

    clusters.run(main())


@pytest.mark.parametrize(
    ("version", "run_id", "is_open"),
    [(5, None, True), (4, None, True), (6, None, False), (6, "run-2", False), (6, "run-1", True)],
)
def test_a_request_is_open_until_a_later_version_shows_that_it_is_over(
    version: int, run_id: str | None, is_open: bool
) -> None:
    """At the version it was written onto it may still arrive; later it can only be refused."""
    request = {"initiatedBy": {"username": "windlass"}, "info": [{"name": RUN_ID_KEY, "value": run_id}]}
    operation = {"operation": request} if run_id else {}
    meta = {"name": "web", "namespace": "argocd", "resourceVersion": str(version)}

    async def main() -> None:
        async with clusters.world() as w, held_writer(w) as writer:
            writer.open_requests[("argocd", "web")] = 5
            writer.close_request(typed_object({"metadata": meta, **operation}, Application), "run-1")
            assert bool(writer.open_requests) is is_open

    clusters.run(main())


@pytest.mark.parametrize(
    ("detail", "raced"),
    [
        ('the operation ended Failed: the namespace failed to apply, reason: namespaces "web" already exists', True),
        ('the operation ended Failed: configmaps "web" already exists', False),
        ("the operation ended Failed: one or more objects failed to apply", False),
    ],
)
def test_two_that_made_one_namespace_have_only_been_in_each_others_way(detail: str, raced: bool) -> None:
    assert is_race(Failed(Reason.OPERATION_FAILED, detail)) is raced
