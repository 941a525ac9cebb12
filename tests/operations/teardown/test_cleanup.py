"""Volumes by policy, and what no cascade removes: definitions, namespaces, claims; the rest is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.clusters import APPS, after
from tests.operations.teardown.teardowns import OWN, Stand, pod_of, stand
from tests.sandbox.controllers.clusters import World, run, world
from tests.sandbox.controllers.objects import application, claim, config, workload
from windlass.errors import ExitCode, WindlassError
from windlass.operations.teardown.teardown import UNFINISHED_NOTICE
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.controllers.snapshots import GROUP, SNAPSHOT_CLASSES, install_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from windlass.sandbox.apiserver.store import StoreChange

CLAIMS, VOLUMES, NAMESPACES = "persistentvolumeclaims", "persistentvolumes", "namespaces"
DEFINITIONS, SNAPSHOTS = "customresourcedefinitions.apiextensions.k8s.io", f"volumesnapshots.{GROUP}"
CLASS = {"metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
MARK = "argocd.argoproj.io/tracking-id"


def marked(app: str, kind: str, name: str, **annotations: str) -> dict[str, Any]:
    """As Argo CD marks what is in no namespace: with the one that its Application deploys to."""
    return {"name": name, "annotations": {MARK: f"{app}:{kind}:default/{name}", **annotations}}


def role(app: str, name: str, **annotations: str) -> dict[str, Any]:
    return {"metadata": marked(app, "rbac.authorization.k8s.io/ClusterRole", name, **annotations), "rules": []}


def definition(app: str, kind: str = "Widget") -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "kind": kind}
    return {
        "metadata": marked(app, "apiextensions.k8s.io/CustomResourceDefinition", f"{plural}.example.com"),
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def once_deleted(
    s: Stand, name: str, work: Coroutine[Any, Any, None], act: Callable[[], object] = lambda: None
) -> None:
    """Does something as soon as the Application of this name is gone."""

    def notice(change: StoreChange) -> None:
        if (change.type, change.new.name) == ("DELETED", name):
            forget()
            act()
            s.world.sandbox.start(work, name="another client")

    forget = s.world.sandbox.server.store.listen(APPS, "", notice)


async def create_widget(w: World, wait: float = 0) -> None:
    await after(wait)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "mine"}}
    await w.sandbox.client().create("widgets.example.com", widget, "default")


async def with_data(w: World) -> Stand:
    """`db` is a StatefulSet in a namespace made for it, `web` has a claim of its own."""
    await w.sandbox.client().create("storageclasses.storage.k8s.io", {**CLASS, "provisioner": "disk.test"})
    own = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim("own")}
    db = workload("StatefulSet", "db", replicas=2, serviceName="db", volumeClaimTemplates=[claim()])
    s = stand(w, "web: db", web=[own], db=[db])
    s.apps["db"] = application("db", namespace="data", **OWN)
    await s.deployed()
    await after(5)
    assert len(await s.names(VOLUMES)) == 3
    return s


async def bindings(w: World) -> dict[str, str]:
    return {row["metadata"]["name"]: row["spec"]["volumeName"] for row in await w.sandbox.client().list(CLAIMS)}


def places(lines: tuple[str, ...]) -> list[str]:
    return sorted(line.rpartition(" ")[2] for line in lines)


def test_data_is_retained_before_the_first_delete_and_bound_again_by_the_next_deploy() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            bound = {
                row["metadata"]["name"]: row["spec"]["volumeName"] for row in await w.sandbox.client().list(CLAIMS)
            }
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            verbs = [(entry.verb, entry.kind) for entry in s.writes()]
            last = max(number for number, each in enumerate(verbs) if each == ("patch", VOLUMES))
            assert verbs.count(("patch", VOLUMES)) == 3
            assert last < verbs.index(("delete", APPS))
            rows = {row["metadata"]["name"]: row["status"]["phase"] for row in await w.sandbox.client().list(VOLUMES)}
            assert sorted(rows.values()) == ["Bound", "Bound", "Released"]
            volumes = [line for line in report.removal.retained if line.startswith("PersistentVolume ")]
            assert places(tuple(volumes)) == ["data/data-db-0", "data/data-db-1", "default/own"]
            assert any(
                line.startswith("Namespace data: it contains PersistentVolumeClaim") for line in report.removal.retained
            )
            assert report.removal.orphans == ()
            assert await s.names(CLAIMS) == ["data-db-0", "data-db-1"]
            before = len(s.writes())
            assert (await s.torn_down()).summary.exit_code == 0
            assert len(s.writes()) == before
            await w.sandbox.client().delete(VOLUMES, bound["own"])
            await s.deployed()
            again = await bindings(w)
            assert {name: again[name] for name in ("data-db-0", "data-db-1")} == {
                name: bound[name] for name in ("data-db-0", "data-db-1")
            }

    run(main())


def test_data_is_deleted_where_that_is_the_policy() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            report = await s.torn_down(policy="delete")
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert (await s.names(CLAIMS), await s.names(VOLUMES)) == ([], [])
            assert report.removal.retained == ()
            assert "data" not in await s.names(NAMESPACES)

    run(main())


def test_a_volume_that_says_itself_that_it_stays_is_retained_and_one_that_is_stuck_an_orphan() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            rows = sorted(await w.sandbox.client().list(VOLUMES), key=lambda row: row["spec"]["claimRef"]["name"])
            kept, stuck = rows[0]["metadata"]["name"], rows[1]["metadata"]["name"]
            change = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
            await w.sandbox.client().patch(VOLUMES, kept, change)
            finalizers = [*rows[1]["metadata"].get("finalizers", ()), "example.org/held"]
            await w.sandbox.client().patch(VOLUMES, stuck, {"metadata": {"finalizers": finalizers}})
            report = await s.torn_down(policy="delete")
            assert report.summary.exit_code == 2
            assert report.removal.retained == (f"PersistentVolume {kept} of claim data/data-db-0",)
            assert report.removal.orphans == (f"PersistentVolume {stuck} of claim data/data-db-1",)

    run(main())


def test_a_volume_that_is_not_retained_although_asked_keeps_everything() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            w.sandbox.server.faults.add(Fault(verb="patch", kind=VOLUMES, code=403, reason="Forbidden", times=None))
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert any("Forbidden" in words for words in report.notices), report.notices
            assert s.deleted() == []

    run(main())


def test_a_server_that_fails_after_the_last_delete_leaves_a_report() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            fault = Fault(verb="list", kind=VOLUMES, code=500, times=None)
            once_deleted(s, "db", after(0), lambda: w.sandbox.server.faults.add(fault))
            report = await s.torn_down()
            assert report.summary.exit_code == 2
            assert {str(each.result) for each in report.components} == {"succeeded"}
            assert UNFINISHED_NOTICE in report.removal.orphans
            assert await s.names(APPS) == []

    run(main())


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("retain", "is retained"),
        ("delete", "is deleted with its data"),
        ("snapshot", "is deleted after its snapshot is ready"),
    ],
)
def test_a_plan_tells_what_becomes_of_volumes(policy: str, words: str) -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            await serve_snapshots(w)
            before = len(s.writes())
            report = await s.foretold(policy)
            told = sorted(
                each.split(" of claim ")[1] for each in report.notices if each.startswith("PersistentVolume ")
            )
            assert told == [f"{claim} {words}" for claim in ("data/data-db-0", "data/data-db-1", "default/own")]
            assert (report.summary.exit_code, len(s.writes())) == (0, before)

    run(main())


def test_a_plan_is_refused_for_what_the_run_would_be() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            with pytest.raises(WindlassError, match="is not served") as caught:
                await s.foretold("snapshot")
            assert caught.value.exit_code is ExitCode.INVALID

    run(main())


def test_without_snapshots_that_policy_is_invalid_before_any_write() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            before = len(s.writes())
            with pytest.raises(WindlassError, match="is not served") as caught:
                await s.torn_down(policy="snapshot")
            assert caught.value.exit_code is ExitCode.INVALID
            assert len(s.writes()) == before

    run(main())


async def serve_snapshots(w: World, *, ready: bool = True, driver: str = "disk.test") -> None:
    await install_snapshots(w.sandbox)
    await after(1)
    kind = {"apiVersion": f"{GROUP}/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "some"}}
    await w.sandbox.client().create(SNAPSHOT_CLASSES, {**kind, "driver": driver, "deletionPolicy": "Retain"})
    if not ready:
        w.sandbox.server.faults.add(Fault(user="*snapshot-controller", verb="patch", code=503, times=None))


def test_snapshots_are_ready_before_the_first_delete_and_are_kept() -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            await serve_snapshots(w)
            report = await s.torn_down(policy="snapshot")
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            rows = await w.sandbox.client().list(SNAPSHOTS)
            assert sorted(row["spec"]["source"]["persistentVolumeClaimName"] for row in rows) == [
                "data-db-0",
                "data-db-1",
                "own",
            ]
            assert {row["spec"]["volumeSnapshotClassName"] for row in rows} == {"some"}
            entries = list(w.sandbox.server.journal.entries)
            kinds = [(entry.verb, entry.kind) for entry in entries]
            last = max(number for number, each in enumerate(kinds) if each[1] == f"{SNAPSHOTS}/status")
            assert last < kinds.index(("delete", APPS))
            assert all(row["status"]["readyToUse"] for row in rows)
            assert (await s.names(CLAIMS), await s.names(VOLUMES)) == ([], [])
            snapshots = [line for line in report.removal.retained if line.startswith("VolumeSnapshot ")]
            assert places(tuple(snapshots)) == ["data/data-db-0", "data/data-db-1", "default/own"]
            assert any(
                line.startswith("Namespace data: it contains VolumeSnapshot") for line in report.removal.retained
            )

    run(main())


@pytest.mark.parametrize(("ready", "driver", "words"), [(False, "disk.test", "is not ready"), (True, "x", "disk.test")])
def test_without_a_good_snapshot_nothing_goes(ready: bool, driver: str, words: str) -> None:
    async def main() -> None:
        async with world() as w:
            s = await with_data(w)
            await serve_snapshots(w, ready=ready, driver=driver)
            report = await s.torn_down(policy="snapshot")
            assert report.summary.exit_code == 1
            assert any(words in notice for notice in report.notices), report.notices
            assert s.deleted() == []

    run(main())


@pytest.mark.parametrize(("is_foreign", "code"), [(False, 0), (True, 0)])
def test_a_namespace_made_for_them_goes_if_nothing_foreign_is_in_it(is_foreign: bool, code: int) -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web", web=pod_of("web"))
            s.apps["web"] = application("web", namespace="own", **OWN)
            await s.deployed()
            if is_foreign:
                await w.sandbox.client().create("configmaps", config("guest"), "own")
            report = await s.torn_down()
            assert report.summary.exit_code == code, (report.failures, report.removal)
            assert ("own" in await s.names(NAMESPACES)) is is_foreign
            kept = ("Namespace own: it contains ConfigMap own/guest",)
            assert report.removal.retained == (kept if is_foreign else ())

    run(main())


def test_a_namespace_of_others_too_stays() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web; api")
            for name in ("web", "api"):
                s.apps[name] = application(name, namespace="shared", **OWN)
            await s.deployed()
            assert (await s.torn_down("app:web")).summary.exit_code == 0
            assert "shared" in await s.names(NAMESPACES)
            assert (await s.torn_down("app:api")).summary.exit_code == 0
            assert "shared" not in await s.names(NAMESPACES)

    run(main())


def test_a_namespace_that_does_not_go_is_an_orphan_with_what_holds_it() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            s.apps["web"] = application("web", namespace="own", **OWN)
            await s.deployed()
            held = {"metadata": {"finalizers": ["example.org/held"]}}
            await w.sandbox.client().patch("serviceaccounts", "default", held, "own")
            report = await s.torn_down()
            assert report.summary.exit_code == 2
            told = "\n".join(report.removal.orphans)
            assert "Namespace own: NamespaceFinalizersRemaining" in told
            assert "example.org/held" in told

    run(main())


def test_definitions_go_when_nothing_of_their_kind_is_left_even_in_a_later_run() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            for kind in ("Widget", "Gadget"):
                await w.sandbox.client().create(DEFINITIONS, definition("web", kind))
            await after(1)
            once_deleted(s, "web", create_widget(w))
            report = await s.torn_down()
            assert report.summary.exit_code == 2
            name = "CustomResourceDefinition widgets.example.com (apiextensions.k8s.io)"
            assert report.removal.orphans == (f"{name}: there are objects of its kind",)
            assert "gadgets.example.com" not in await s.names(DEFINITIONS)
            before = len(s.writes())
            assert (await s.torn_down()).summary.exit_code == 2
            assert len(s.writes()) == before
            await w.sandbox.client().delete("widgets.example.com", "mine", "default")
            report = await s.torn_down()
            assert (report.summary.exit_code, report.removal.orphans) == (0, ())
            assert "widgets.example.com" not in await s.names(DEFINITIONS)

    run(main())


def test_what_still_carries_the_mark_of_what_is_gone_is_an_orphan_unless_it_says_that_it_stays() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web; api")
            await s.deployed()
            calls = w.sandbox.client()
            for made in (
                role("web", "left"),
                role("web", "kept", **{"argocd.argoproj.io/sync-options": "Prune=false, Delete=false"}),
                role("web", "helm", **{"helm.sh/resource-policy": "keep"}),
                role("other", "foreign"),
                role("api", "of-a-node-that-stays"),
            ):
                await calls.create("clusterroles.rbac.authorization.k8s.io", made)
            report = await s.torn_down("app:web")
            assert report.summary.exit_code == 2
            assert report.removal.orphans == ("ClusterRole left (rbac.authorization.k8s.io)",)
            assert [line.split()[1] for line in report.removal.retained] == ["helm", "kept"]
            report = await s.torn_down("app:web")
            assert report.summary.exit_code == 0, "what is left is removed in the turn of its node"
            assert [line.split()[1] for line in report.removal.retained] == ["helm", "kept"]
            roles = await s.names("clusterroles.rbac.authorization.k8s.io")
            assert set(roles) & {"left", "kept", "helm", "foreign", "of-a-node-that-stays"} == {
                *("kept", "helm", "foreign", "of-a-node-that-stays"),
            }

    run(main())


def test_labels_are_marks_where_argo_cd_uses_them() -> None:
    async def main() -> None:
        async with world() as w:
            w.argocd.tracks_by_label = True
            s = stand(w, "web", web=pod_of("web"))
            await s.deployed()
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.names("deployments.apps") == []

    run(main())
