"""Hooks, and stages that fail: what an operation waits for, and what it does when that does not come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.controllers.clusters import after, begin, run, world
from tests.sandbox.controllers.objects import application, config, job, workload
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.comparison import HOOK_ANNOTATION, HOOK_DELETE_POLICY
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World

APPS, JOBS = "applications.argoproj.io", "jobs.batch"


def hook(phase: str, policy: str = "", **notes: str) -> dict[str, Any]:
    told = {f"{ANNOTATION_PREFIX}{name.replace('_', '-')}": value for name, value in notes.items()}
    body = job(annotations={f"{ANNOTATION_PREFIX}ends-after": "5s", **told}, backoffLimit=0)
    meta = {
        "name": phase.lower(),
        "annotations": {HOOK_ANNOTATION: phase, **({HOOK_DELETE_POLICY: policy} if policy else {})},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", **body, "metadata": meta}


async def state_of(w: World, seconds: float) -> dict[str, Any]:
    await after(seconds)
    found: dict[str, Any] = (await w.sandbox.client().get(APPS, "web", "argocd"))["status"]["operationState"]
    return found


async def sync(w: World, seconds: float, **more: Any) -> dict[str, Any]:
    await w.sandbox.client().patch(APPS, "web", {"operation": {"sync": {"revision": "main", **more}}}, "argocd")
    return await state_of(w, seconds)


def test_hooks_run_before_and_after_and_go_if_told_to() -> None:
    async def main() -> None:
        async with world() as w:
            calls, order = w.sandbox.client(), list[str]()
            for kind in (JOBS, "configmaps"):
                w.sandbox.server.store.listen(
                    kind, "default", lambda c: order.append(c.new.name) if c.type == "ADDED" else None
                )
            files = [config(), hook("PostSync", "HookSucceeded"), hook("PreSync"), hook("SyncFail")]
            await begin(w, {"web/all.yaml": files})
            state = await sync(w, 3)
            assert (state["phase"], state["message"]) == ("Running", "waiting for completion of hook batch/Job/presync")
            state = await state_of(w, 30)
            assert (state["phase"], state["message"]) == ("Succeeded", "successfully synced (no more tasks)")
            assert order == ["presync", "web", "postsync"]
            rows = state["syncResult"]["resources"]
            assert [(row["name"], row["syncPhase"], row["hookPhase"]) for row in rows] == [
                ("presync", "PreSync", "Succeeded"),
                ("web", "Sync", "Succeeded"),
                ("postsync", "PostSync", "Succeeded"),
            ]
            status = (await calls.get(APPS, "web", "argocd"))["status"]
            assert (status["sync"]["status"], status["health"]["status"]) == ("Synced", "Healthy")
            assert [row["name"] for row in status["resources"] if row.get("hook")] == ["presync"]
            assert [row["metadata"]["name"] for row in await calls.list(JOBS)] == ["presync"]
            await calls.delete(APPS, "web", "argocd")
            await after(5)
            assert await calls.list(JOBS) == []

    run(main())


def test_a_hook_that_fails_ends_the_operation_and_is_made_anew_by_the_next() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            repository = await begin(w, {"web/all.yaml": [config(), hook("PreSync", exit_code="1")]})
            state = await sync(w, 20)
            why = "one or more synchronization tasks completed unsuccessfully"
            assert (state["phase"], state["message"]) == ("Failed", why)
            (row,) = state["syncResult"]["resources"]
            assert (row["hookPhase"], row["message"]) == ("Failed", "Job has reached the specified backoff limit")
            assert await calls.find("configmaps", "web", "default") is None
            old = (await calls.get(JOBS, "presync", "default"))["metadata"]["uid"]
            repository.push({"web/all.yaml": [config(), hook("PreSync")]})
            assert (await sync(w, 30))["phase"] == "Succeeded"
            assert (await calls.get(JOBS, "presync", "default"))["metadata"]["uid"] != old
            chosen = [{"group": "", "kind": "ConfigMap", "name": "web"}]
            state = await sync(w, 3, resources=chosen)
            assert [row["name"] for row in state["syncResult"]["resources"]] == ["web"]

    run(main())


@pytest.mark.parametrize("name", ["before", ""])
def test_a_hook_may_leave_its_name_to_argocd(name: str) -> None:
    async def main() -> None:
        async with world() as w:
            body = hook("PreSync")
            body["metadata"] = {**body["metadata"], **({"name": name} if name else {"generateName": "migrate-"})}
            if not name:
                del body["metadata"]["name"]
            await begin(w, {"web/all.yaml": [config(), body]})
            assert (await sync(w, 20))["phase"] == "Succeeded"
            (found,) = await w.sandbox.client().list(JOBS)
            assert found["metadata"]["name"].startswith(name or "migrate-")

    run(main())


def test_a_wave_that_degrades_ends_the_operation() -> None:
    async def main() -> None:
        async with world() as w:
            never = workload(annotations={f"{ANNOTATION_PREFIX}ready-after": "never"}, progressDeadlineSeconds=10)
            await begin(w, {"web/all.yaml": [never, config("later", wave=1)]}, application())
            assert (await sync(w, 5))["message"] == "waiting for healthy state of apps/Deployment/web"
            state = await state_of(w, 15)
            why = "one or more synchronization tasks completed unsuccessfully"
            assert (state["phase"], state["message"]) == ("Failed", why)
            assert await w.sandbox.client().find("configmaps", "later", "default") is None

    run(main())


@pytest.mark.parametrize("fault", [{"sever": "before"}, {"sever": "after"}, {"code": 503}])
def test_a_stage_that_was_cut_off_is_done_again(fault: dict[str, Any]) -> None:
    async def main() -> None:
        async with world() as w:
            files = [config("a"), config("b"), config("c", wave=1), hook("PostSync")]
            await begin(w, {"web/all.yaml": files})
            user = w.argocd.user.name
            w.sandbox.server.faults.add(Fault(user=user, kind="configmaps", skip=1, times=1, **fault))
            state = await sync(w, 60)
            assert state["phase"] == ("Succeeded" if "sever" in fault else "Failed")
            state = await sync(w, 60)
            status = (await w.sandbox.client().get(APPS, "web", "argocd"))["status"]
            assert (status["operationState"]["phase"], status["sync"]["status"]) == ("Succeeded", "Synced")
            rows = [row["name"] for row in status["operationState"]["syncResult"]["resources"]]
            assert rows == ["a", "b", "c", "postsync"]

    run(main())
