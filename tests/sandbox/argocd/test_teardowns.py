"""What goes and what stays when Applications are taken down: claims, volumes, namespaces, kinds, snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.controllers.clusters import after, begin, run, world
from tests.sandbox.controllers.objects import application, claim, config, workload
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.controllers import snapshots
from windlass.sandbox.controllers.snapshots import Snapshots, install_snapshots

APPS, CLAIMS, VOLUMES = "applications.argoproj.io", "persistentvolumeclaims", "persistentvolumes"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
AUTOMATED: dict[str, Any] = {"syncPolicy": {"automated": {"prune": True, "selfHeal": True}}}


def definition(scope: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": scope, "names": names, "versions": [version]},
    }


@pytest.mark.parametrize("scope", ["Namespaced", "Cluster"])
def test_objects_of_a_kind_go_with_their_application_and_the_kind_stays(scope: str) -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
            await begin(w, {"web/all.yaml": [widget, definition(scope)]}, application(**AUTOMATED))
            await after(5)
            status = (await calls.get(APPS, "web", "argocd"))["status"]
            assert (status["operationState"]["phase"], status["sync"]["status"]) == ("Succeeded", "Synced")
            where = "default" if scope == "Namespaced" else ""
            found = await calls.get("widgets.example.com", "w", where)
            mark = found["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"]
            assert mark == f"web:example.com/Widget:{where}/w"
            await calls.delete(APPS, "web", "argocd")
            await after(10)
            assert await calls.find(APPS, "web", "argocd") is None
            assert await calls.find(DEFINITIONS, "widgets.example.com"), "Argo CD never deletes these in a cascade"
            assert w.sandbox.server.store.list("widgets.example.com") == []

    run(main())


def test_an_object_of_a_kind_that_nobody_delivers_fails_the_sync() -> None:
    async def main() -> None:
        async with world() as w:
            widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
            await begin(w, {"web/all.yaml": [widget]}, application(**AUTOMATED))
            await after(3)
            state = (await w.sandbox.client().get(APPS, "web", "argocd"))["status"]["operationState"]
            assert "could not find example.com/Widget" in state["syncResult"]["resources"][0]["message"]

    run(main())


def test_claims_of_a_statefulset_outlive_its_application_and_its_own_claims_do_not() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            own = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim("own")}
            db = workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[claim()])
            await begin(w, {"web/all.yaml": [own, db]}, application(**AUTOMATED))
            await after(20)
            assert (await calls.get(APPS, "web", "argocd"))["status"]["health"]["status"] == "Healthy"
            kept = {row["spec"]["volumeName"] for row in await calls.list(CLAIMS) if row["metadata"]["name"] != "own"}
            await calls.delete(APPS, "web", "argocd")
            await after(20)
            assert await calls.find(APPS, "web", "argocd") is None
            assert [row["metadata"]["name"] for row in await calls.list(CLAIMS)] == ["data-db-0", "data-db-1"]
            assert {row["metadata"]["name"] for row in await calls.list(VOLUMES)} == kept

    run(main())


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_the_policy_of_a_volume_at_the_end_of_its_claim_counts(policy: str) -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create(CLAIMS, claim(), "default")
            await after(1)
            name = (await calls.get(CLAIMS, "data", "default"))["spec"]["volumeName"]
            await calls.patch(VOLUMES, name, {"spec": {"persistentVolumeReclaimPolicy": policy}})
            await calls.delete(CLAIMS, "data", "default")
            await after(1)
            found = await calls.find(VOLUMES, name)
            assert (found and found["status"]["phase"]) == {"Delete": None, "Retain": "Released"}[policy]

    run(main())


def test_a_released_volume_is_taken_by_no_claim_until_its_claim_ref_is_cleared() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "none"}
            await calls.create(VOLUMES, {"metadata": {"name": "kept"}, "spec": {**spec, "hostPath": {"path": "/x"}}})
            for _ in range(2):
                await calls.create(CLAIMS, claim(storageClassName="none"), "default")
                await after(1)
                assert (await calls.get(CLAIMS, "data", "default"))["status"]["phase"] == "Bound"
                await calls.delete(CLAIMS, "data", "default")
                await after(1)
                assert (await calls.get(VOLUMES, "kept"))["status"]["phase"] == "Released"
                await calls.create(CLAIMS, claim("next", storageClassName="none"), "default")
                await after(1)
                assert (await calls.get(CLAIMS, "next", "default"))["status"]["phase"] == "Pending"
                await calls.delete(CLAIMS, "next", "default")
                await calls.patch(VOLUMES, "kept", {"spec": {"claimRef": None}})
                await after(1)
                assert (await calls.get(VOLUMES, "kept"))["status"]["phase"] == "Available"

    run(main())


def test_an_application_goes_although_a_write_of_argo_cds_was_refused_once() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await begin(w, {"web/all.yaml": [config("a")]}, application(**AUTOMATED))
            await after(5)
            fault = w.sandbox.server.faults.add(Fault(verb="patch", kind=APPS, code=503, times=None))
            await calls.delete(APPS, "web", "argocd")
            await after(10)
            assert await calls.find("configmaps", "a", "default") is None
            assert fault.hits, "its finalizer could not be taken off"
            w.sandbox.server.faults.clear()
            await after(10)
            assert await calls.find(APPS, "web", "argocd") is None

    run(main())


def test_several_sources_sync_by_themselves_and_go_together() -> None:
    async def main() -> None:
        async with world() as w:
            calls, app = w.sandbox.client(), application(**AUTOMATED)
            source = app["spec"].pop("source")
            app["spec"]["sources"] = [{**source, "path": path} for path in ("one", "two")]
            repository = await begin(w, {"one/a.yaml": config("a"), "two/b.yaml": config("b")}, app)
            await after(3)
            status = (await calls.get(APPS, "web", "argocd"))["status"]
            commits = [repository.resolve("main")] * 2
            assert status["sync"]["revisions"] == status["history"][0]["revisions"] == commits
            await calls.delete("configmaps", "a", "default")
            await after(5)
            assert await calls.find("configmaps", "a", "default")
            await calls.delete(APPS, "web", "argocd")
            await after(3)
            assert await calls.find("configmaps", "b", "default") is None

    run(main())


@pytest.mark.parametrize(("policy", "left"), [("Delete", 0), ("Retain", 1)])
def test_a_snapshot_is_ready_when_its_claim_is_bound_and_its_content_goes_as_told(policy: str, left: int) -> None:
    async def main() -> None:
        async with world() as w:
            await install_snapshots(w.sandbox)
            calls, head = w.sandbox.client(), {"apiVersion": f"{snapshots.GROUP}/v1"}
            kind = {**head, "kind": "VolumeSnapshotClass", "metadata": {"name": "some"}, "driver": "d"}
            await calls.create(snapshots.SNAPSHOT_CLASSES, {**kind, "deletionPolicy": policy})
            spec = {"volumeSnapshotClassName": "some", "source": {"persistentVolumeClaimName": "data"}}
            body = {**head, "kind": "VolumeSnapshot", "metadata": {"name": "s"}, "spec": spec}
            await calls.create(Snapshots.primary, body, "default")
            await after(5)
            assert "status" not in await calls.get(Snapshots.primary, "s", "default")
            await calls.create(CLAIMS, claim(), "default")
            await after(2)
            status = (await calls.get(Snapshots.primary, "s", "default"))["status"]
            assert (status["readyToUse"], status["restoreSize"]) == (True, "1Gi")
            assert await calls.find(snapshots.SNAPSHOT_CONTENTS, status["boundVolumeSnapshotContentName"])
            await calls.delete(Snapshots.primary, "s", "default")
            await after(1)
            assert await calls.find(Snapshots.primary, "s", "default") is None
            assert len(await calls.list(snapshots.SNAPSHOT_CONTENTS)) == left

    run(main())


def test_an_application_without_its_finalizer_keeps_its_objects_although_it_is_deleted_during_a_sync() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            app = application(**AUTOMATED)
            app["metadata"]["finalizers"] = ["example.com/kept"]  # of another client: the object stays for a while
            await begin(w, {"web/all.yaml": [config("web")]}, app)
            await after(10)
            operation = {"initiatedBy": {"username": "jane"}, "sync": {"revision": "main"}}
            await calls.patch(APPS, "web", {"operation": operation}, "argocd")
            await after(0.05)  # the controller has seen the request, and starts the operation a little later
            await calls.delete(APPS, "web", "argocd")
            await after(10)
            assert await calls.find("configmaps", "web", "default")

    run(main())
