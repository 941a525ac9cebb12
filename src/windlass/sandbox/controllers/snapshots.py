"""Optional VolumeSnapshot controller: creates the content of a snapshot and deletes it if the policy says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import SandboxController

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.store import StoreChange
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import StoreKey
    from windlass.sandbox.sandbox import Sandbox

GROUP = "snapshot.storage.k8s.io"
SNAPSHOT_CONTENTS, SNAPSHOT_CLASSES = f"volumesnapshotcontents.{GROUP}", f"volumesnapshotclasses.{GROUP}"
STRING_SCHEMA = {"type": "string"}
BOUND_FINALIZER = f"{GROUP}/volumesnapshot-bound-protection"


class Snapshots(SandboxController):
    user = controller_user("snapshot-controller")
    primary = f"volumesnapshots.{GROUP}"
    watched: ClassVar[tuple[str, ...]] = ("persistentvolumeclaims", SNAPSHOT_CLASSES, SNAPSHOT_CONTENTS)

    def affected_keys(self, change: StoreChange) -> Iterable[StoreKey]:
        """Also pending snapshots: their claim or class may exist now."""
        yield (self.primary, change.new.namespace, change.new.name)
        for snapshot in self.list_objects(self.primary, change.new.namespace):
            if "status" not in snapshot:
                yield (self.primary, snapshot["metadata"]["namespace"], snapshot["metadata"]["name"])

    async def reconcile(self, key: StoreKey, snapshot: Body) -> None:
        if "status" in snapshot:
            if snapshot["metadata"].get("deletionTimestamp"):
                await self._finalize(snapshot)
            return
        claim = self.find("persistentvolumeclaims", snapshot["spec"]["source"]["persistentVolumeClaimName"], key[1])
        snapshot_class = self.find(SNAPSHOT_CLASSES, snapshot["spec"].get("volumeSnapshotClassName", ""))
        if claim is None or snapshot_class is None or claim.get("status", {}).get("phase") != "Bound":
            return
        meta = snapshot["metadata"]
        name = f"snapcontent-{meta['uid']}"
        if self.find(SNAPSHOT_CONTENTS, name) is None:
            reference = {"kind": "VolumeSnapshot", "name": meta["name"], "namespace": key[1], "uid": meta["uid"]}
            spec = {
                "deletionPolicy": snapshot_class["deletionPolicy"],
                "driver": snapshot_class["driver"],
                "volumeSnapshotRef": reference,
            }
            spec["source"] = {"volumeHandle": claim["spec"]["volumeName"]}
            head = {"apiVersion": snapshot["apiVersion"], "kind": "VolumeSnapshotContent", "metadata": {"name": name}}
            await self.create(SNAPSHOT_CONTENTS, {**head, "spec": spec})
        snapshot = await self.patch(self.primary, snapshot, {"metadata": {"finalizers": [BOUND_FINALIZER]}})
        status: Body = {"boundVolumeSnapshotContentName": name, "creationTime": self.clock.timestamp()}
        status |= {"readyToUse": True, "restoreSize": claim["status"]["capacity"]["storage"]}
        await self.write_status(self.primary, snapshot, status)

    async def _finalize(self, snapshot: Body) -> None:
        content = self.find(SNAPSHOT_CONTENTS, snapshot["status"]["boundVolumeSnapshotContentName"])
        if content and content["spec"]["deletionPolicy"] == "Delete":
            await self.delete(SNAPSHOT_CONTENTS, content)
        await self.patch(self.primary, snapshot, {"metadata": {"finalizers": None}})


async def install_snapshots(sandbox: Sandbox) -> Snapshots:
    for kind, fields, scope in (
        ("VolumeSnapshot", {"spec": object_builders.OPEN_SCHEMA, "status": object_builders.OPEN_SCHEMA}, "Namespaced"),
        (
            "VolumeSnapshotContent",
            {"spec": object_builders.OPEN_SCHEMA, "status": object_builders.OPEN_SCHEMA},
            "Cluster",
        ),
        (
            "VolumeSnapshotClass",
            {"driver": STRING_SCHEMA, "deletionPolicy": STRING_SCHEMA, "parameters": object_builders.OPEN_SCHEMA},
            "Cluster",
        ),
    ):
        crd = object_builders.build_crd(f"{GROUP}/v1", {"kind": kind}, fields, scope=scope, status="status" in fields)
        await sandbox.client().create("customresourcedefinitions.apiextensions.k8s.io", crd)
    return Snapshots(sandbox)
