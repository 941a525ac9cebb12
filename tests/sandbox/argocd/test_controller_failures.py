"""Argo CD's controller crashes, restarts, or may not write."""

from __future__ import annotations

from tests.sandbox.argocd.test_sync_operations import SLOW, SYNC, get, patch, shown
from tests.sandbox.controllers.clusters import after, begin, run, world
from tests.sandbox.controllers.objects import config, workload
from windlass.sandbox.apiserver.faults import Fault


def test_a_controller_that_crashes_in_a_sync_finishes_it_later() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"web/all.yaml": config()})
            await patch(w, SYNC)
            await after(0.3)
            w.argocd.pause()
            await after(60)
            assert (await get(w))["status"]["operationState"]["phase"] == "Running"
            w.argocd.restart()
            await after(5)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Healthy")

    run(main())


def test_a_controller_that_restarts_sees_what_changed_meanwhile() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, {"web/all.yaml": [config(), workload(annotations=SLOW)]})
            await patch(w, SYNC)
            await after(3)
            w.argocd.pause()
            await after(30)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Progressing")
            w.argocd.restart()
            await after(5)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Healthy")

    run(main())


def test_a_controller_whose_writes_are_refused_tries_again() -> None:
    async def main() -> None:
        async with world() as w:
            w.sandbox.server.faults.add(Fault(user=w.argocd.user.name, code=503, times=4))
            await begin(w, {"web/all.yaml": config()})
            await patch(w, SYNC)
            await after(10)
            assert shown(await get(w)) == ("Succeeded", "Synced", "Healthy")

    run(main())
