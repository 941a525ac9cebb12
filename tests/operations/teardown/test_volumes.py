"""`retain` retains what operators made too, and that is verified; `delete` deletes what we retained before, by name."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.clusters import APPS, after
from tests.operations.teardown.teardowns import OWN, Stand, stand
from tests.operations.teardown.test_cleanup import (
    CLAIMS,
    CLASS,
    DEFINITIONS,
    MARK,
    VOLUMES,
    definition,
    once_deleted,
    places,
    with_data,
)
from tests.operations.teardown.test_problems import refused
from tests.run_contexts import run_lease
from tests.sandbox.controllers.clusters import World, run, world
from tests.sandbox.controllers.objects import URL, application, claim, workload
from windlass.operations.run.run_lock import wait_until_free
from windlass.operations.teardown.teardown import teardown
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.repositories import MemoryRepository

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.store import StoreChange

Body = dict[str, Any]
WIDGETS, SETS = "widgets.example.com", "statefulsets.apps"


def owned_by(owner: Body, body: Body) -> Body:
    meta = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


async def operated(w: World, text: str = "web") -> tuple[Stand, Body]:
    """`web` manages a custom resource in a namespace that others use too; the test is its operator."""
    await w.sandbox.client().create("storageclasses.storage.k8s.io", {**CLASS, "provisioner": "disk.test"})
    crd = definition("nobody")
    crd["metadata"].pop("annotations")
    await w.sandbox.client().create(DEFINITIONS, crd)
    s = stand(w, text, web=[{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "web"}}])
    await s.deployed()
    return s, await w.sandbox.client().get(WIDGETS, "web", "default")


async def policies(w: World) -> dict[str, str]:
    """Of each volume, by the claim it is or was bound to."""
    rows = await w.sandbox.client().list(VOLUMES)
    return {row["spec"]["claimRef"]["name"]: row["spec"]["persistentVolumeReclaimPolicy"] for row in rows}


async def make_claim(w: World, widget: Body, how: str) -> str:
    """A claim that belongs to the custom resource in one of several ways; its name."""
    calls = w.sandbox.client()
    if how == "owned":
        await calls.create(CLAIMS, owned_by(widget, claim("mine")), "default")
        return "mine"
    if how == "owned by what it owns":
        made = await calls.create("configmaps", owned_by(widget, {"metadata": {"name": "middle"}}), "default")
        middle = {"apiVersion": "v1", "kind": "ConfigMap", **made}
        await calls.create(CLAIMS, owned_by(middle, claim("mine")), "default")
        return "mine"
    if how == "of its StatefulSet":
        body = workload("StatefulSet", "db", replicas=1, serviceName="db", volumeClaimTemplates=[claim()])
        await calls.create(SETS, owned_by(widget, body), "default")
        return "data-db-0"
    await calls.create(CLAIMS, claim("mine"), "default")
    pod = {
        "metadata": {"name": "worker"},
        "spec": {
            "containers": [{"name": "main", "image": "busybox"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}],
        },
    }
    await calls.create("pods", owned_by(widget, pod), "default")
    return "mine"


@pytest.mark.parametrize("how", ["owned", "owned by what it owns", "of its StatefulSet", "used by its pod"])
def test_what_an_operator_made_is_retained_in_a_shared_namespace(how: str) -> None:
    async def main() -> None:
        async with world() as w:
            s, widget = await operated(w)
            name = await make_claim(w, widget, how)
            await w.sandbox.client().create(CLAIMS, claim("theirs"), "default")
            await after(10)
            assert await policies(w) == {name: "Delete", "theirs": "Delete"}
            foretold = [line for line in (await s.foretold()).notices if line.startswith("PersistentVolume ")]
            assert [line.partition(" of claim ")[2] for line in foretold] == [f"default/{name} is retained"]
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await policies(w) == {name: "Retain", "theirs": "Delete"}
            assert places(tuple(line for line in report.removal.retained if "Volume" in line)) == [f"default/{name}"]

    run(main())


@pytest.mark.parametrize("how", ["owned", "owned by what it owns", "of its StatefulSet", "used by its pod", "synced"])
def test_a_volume_that_appears_during_the_run_is_retained_before_its_application_is_deleted(how: str) -> None:
    async def main() -> None:
        async with world() as w:
            s, widget = await operated(w, "top: web")
            w.sandbox.server.faults.add(Fault(verb="delete", kind=APPS, name="top", code=503, times=60))
            once_deleted(s, "platform-root", _made(s, widget))
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert list((await policies(w)).values()) == ["Retain"]

    async def _made(s: Stand, widget: Body) -> None:
        if how != "synced":
            await make_claim(s.world, widget, how)
            return
        s.objects["web"].append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim("mine")})
        repository = s.world.argocd.repositories[URL]
        assert isinstance(repository, MemoryRepository)
        commit = repository.push(s.files())
        change = {"spec": {"source": {"targetRevision": commit}}, "operation": {"sync": {"revision": commit}}}
        await s.world.sandbox.client().patch(APPS, "web", change, "argocd")

    run(main())


def test_kinds_that_another_run_installed_before_it_released_the_lock_are_known() -> None:
    """The claim belongs to an object whose kind was not served when the teardown began to wait."""

    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().create("storageclasses.storage.k8s.io", {**CLASS, "provisioner": "disk.test"})
            s = stand(w, "web", web=[{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "web"}}])
            w.argocd.repositories[URL] = MemoryRepository(s.files())
            await w.sandbox.client().create(APPS, application("web"))
            lease = run_lease(w.kube, "another-run")
            waiting = replace(s.access(), lock_timeout=timedelta(minutes=10))
            async with asyncio.TaskGroup() as tasks, lease.hold(partial(wait_until_free, lease), print):
                report = tasks.create_task(teardown(waiting, s.request()))
                await after(5)
                crd = definition("nobody")
                crd["metadata"].pop("annotations")
                await w.sandbox.client().create(DEFINITIONS, crd)
                await w.sandbox.client().patch(APPS, "web", {"operation": {"sync": {"revision": "main"}}}, "argocd")
                await after(10)
                await make_claim(w, await w.sandbox.client().get(WIDGETS, "web", "default"), "owned")
                await after(10)
            assert report.result().summary.exit_code == 0, (report.result().failures, report.result().removal)
            assert await policies(w) == {"mine": "Retain"}

    run(main())


def test_l22_volumes_of_applications_that_still_run_are_not_listed_as_retained() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            held = {"metadata": {"finalizers": ["example.org/held"]}}
            await w.sandbox.client().patch(CLAIMS, "own", held, "default")
            report = await s.torn_down()
            assert {each.name: str(each.result) for each in report.components} == {"web": "failed", "db": "skipped"}
            assert report.removal.retained == ()

    run(main())


def test_nothing_is_deleted_if_a_volume_is_not_retained_in_the_end() -> None:
    """Another controller sets the policy back each time."""

    async def main() -> None:
        async with world() as w:
            s = await with_data(w)

            def reset(change: StoreChange) -> None:
                if change.new.load()["spec"]["persistentVolumeReclaimPolicy"] == "Retain":
                    w.sandbox.start(_reset(w, change.new.name), name="another controller")

            w.sandbox.server.store.listen(VOLUMES, "", reset)
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert any("not retained although the volume policy requires it: pvc-" in line for line in report.notices)
            assert s.deleted() == []

    async def _reset(w: World, name: str) -> None:
        await w.sandbox.client().patch(VOLUMES, name, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})

    run(main())


def test_nothing_is_deleted_if_the_volume_of_a_claim_is_not_seen() -> None:
    async def main() -> None:
        async with world() as w:
            s, widget = await operated(w)
            lost = owned_by(widget, claim("mine"))
            lost["spec"] = {**lost["spec"], "volumeName": "unseen"}
            await w.sandbox.client().create(CLAIMS, lost, "default")
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert any("not retained although the volume policy requires it: unseen" in line for line in report.notices)
            assert s.deleted() == []

    run(main())


@pytest.mark.parametrize("kind", [CLAIMS, VOLUMES, SETS, "pods", WIDGETS])
def test_nothing_is_deleted_if_it_is_unknown_which_volumes_are_affected(kind: str) -> None:
    async def main() -> None:
        async with world() as w:
            s, widget = await operated(w)
            await make_claim(w, widget, "owned")
            await after(5)
            w.sandbox.server.faults.add(refused("list", kind))
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            told = "cannot tell whose PersistentVolumeClaim default/mine is" if kind == WIDGETS else f"list {kind}"
            assert any(told in line for line in report.notices), report.notices
            assert s.deleted() == []

    run(main())


@pytest.mark.parametrize("is_deployed_again", [False, True])
def test_what_an_earlier_teardown_retained_is_deleted_and_named(is_deployed_again: bool) -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            kept = next(
                row["metadata"]["name"]
                for row in await w.sandbox.client().list(VOLUMES)
                if row["spec"]["claimRef"]["name"] == "data-db-0"
            )
            await w.sandbox.client().patch(VOLUMES, kept, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
            assert (await s.torn_down()).summary.exit_code == 0
            assert await policies(w) == {"data-db-0": "Retain", "data-db-1": "Retain", "own": "Retain"}
            if is_deployed_again:
                await s.deployed()
                await after(10)
            foretold = [line for line in (await s.foretold("delete")).notices if "is deleted with its data" in line]
            assert len(foretold) == 2 + is_deployed_again
            report = await s.torn_down(policy="delete")
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.names(VOLUMES) == [kept], "its policy was Retain before the first teardown"
            assert sorted(set(places(report.removal.destroyed))) == ["data/data-db-1", "default/own"]
            assert [line for line in foretold if not line.startswith(tuple(report.removal.destroyed))] == []
            if not is_deployed_again:
                assert await s.names(CLAIMS) == ["data-db-0"]
            before = len(s.writes())
            assert (await s.torn_down(policy="delete")).summary.exit_code == 0
            assert len(s.writes()) == before

    run(main())


def test_a_scope_deletes_only_what_was_retained_for_it() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            assert (await s.torn_down()).summary.exit_code == 0
            report = await s.torn_down("app:web", policy="delete")
            assert places(report.removal.destroyed) == ["default/own"]
            assert await policies(w) == {"data-db-0": "Retain", "data-db-1": "Retain"}

    run(main())


def test_a_retained_volume_that_is_used_again_is_not_deleted() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            assert (await s.torn_down()).summary.exit_code == 0
            pod = {
                "metadata": {"name": "reader"},
                "spec": {
                    "containers": [{"name": "main", "image": "busybox"}],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}],
                },
            }
            await w.sandbox.client().create("pods", pod, "data")
            report = await s.torn_down(policy="delete")
            assert places(report.removal.destroyed) == ["data/data-db-1", "default/own"]
            assert await s.names(CLAIMS) == ["data-db-0"]

    run(main())


def test_claims_of_a_stateful_set_that_exists_are_not_deleted() -> None:
    """Another Application creates it again, as soon as its own is gone."""

    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().create("storageclasses.storage.k8s.io", {**CLASS, "provisioner": "disk.test"})
            body = workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[claim()])
            s = stand(w, "db", db=[body])
            s.apps["db"] = application("db", namespace="data", **OWN)
            await s.deployed()
            await after(5)
            once_deleted(s, "db", _made(w, body))
            report = await s.torn_down(policy="delete")
            assert report.failures == ()
            assert await s.names(CLAIMS) == ["data-db-0", "data-db-1"]
            assert s.deleted(CLAIMS) == []
            assert report.removal.destroyed == ()
            assert await s.names(APPS) == []

    async def _made(w: World, body: Body) -> None:
        mark = {MARK: "other:apps/StatefulSet:data/db"}
        await w.sandbox.client().create(SETS, {**body, "metadata": {"name": "db", "annotations": mark}}, "data")

    run(main())
