"""Optional VolumeSnapshot controller: creates the content of a snapshot and deletes it if the policy says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import Actor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.store import Change
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import Place
    from windlass.sandbox.sandbox import Sandbox

GROUP = "snapshot.storage.k8s.io"
CONTENTS, CLASSES = f"volumesnapshotcontents.{GROUP}", f"volumesnapshotclasses.{GROUP}"
TEXT = {"type": "string"}
BOUND = f"{GROUP}/volumesnapshot-bound-protection"


class Snapshots(Actor):
    user = controller("snapshot-controller")
    primary = f"volumesnapshots.{GROUP}"
    watched: ClassVar[tuple[str, ...]] = ("persistentvolumeclaims", CLASSES, CONTENTS)

    def concerned(self, change: Change) -> Iterable[Place]:
        """Also pending snapshots: their claim or class may exist now."""
        yield (self.primary, change.new.namespace, change.new.name)
        for found in self.every(self.primary, change.new.namespace):
            if "status" not in found:
                yield (self.primary, found["metadata"]["namespace"], found["metadata"]["name"])

    async def reconcile(self, place: Place, found: Body) -> None:
        if "status" in found:
            if found["metadata"].get("deletionTimestamp"):
                await self._let_go(found)
            return
        claim = self.find("persistentvolumeclaims", found["spec"]["source"]["persistentVolumeClaimName"], place[1])
        kind = self.find(CLASSES, found["spec"].get("volumeSnapshotClassName", ""))
        if claim is None or kind is None or claim.get("status", {}).get("phase") != "Bound":
            return
        meta = found["metadata"]
        name = f"snapcontent-{meta['uid']}"
        if self.find(CONTENTS, name) is None:
            reference = {"kind": "VolumeSnapshot", "name": meta["name"], "namespace": place[1], "uid": meta["uid"]}
            spec = {"deletionPolicy": kind["deletionPolicy"], "driver": kind["driver"], "volumeSnapshotRef": reference}
            spec["source"] = {"volumeHandle": claim["spec"]["volumeName"]}
            head = {"apiVersion": found["apiVersion"], "kind": "VolumeSnapshotContent", "metadata": {"name": name}}
            await self.create(CONTENTS, {**head, "spec": spec})
        found = await self.patch(self.primary, found, {"metadata": {"finalizers": [BOUND]}})
        told: Body = {"boundVolumeSnapshotContentName": name, "creationTime": self.sources.timestamp()}
        told |= {"readyToUse": True, "restoreSize": claim["status"]["capacity"]["storage"]}
        await self.write_status(self.primary, found, told)

    async def _let_go(self, found: Body) -> None:
        content = self.find(CONTENTS, found["status"]["boundVolumeSnapshotContentName"])
        if content and content["spec"]["deletionPolicy"] == "Delete":
            await self.delete(CONTENTS, content)
        await self.patch(self.primary, found, {"metadata": {"finalizers": None}})


async def install_snapshots(sandbox: Sandbox) -> Snapshots:
    for kind, fields, scope in (
        ("VolumeSnapshot", {"spec": object_builders.OPEN, "status": object_builders.OPEN}, "Namespaced"),
        ("VolumeSnapshotContent", {"spec": object_builders.OPEN, "status": object_builders.OPEN}, "Cluster"),
        (
            "VolumeSnapshotClass",
            {"driver": TEXT, "deletionPolicy": TEXT, "parameters": object_builders.OPEN},
            "Cluster",
        ),
    ):
        made = object_builders.open_definition(
            f"{GROUP}/v1", {"kind": kind}, fields, scope=scope, status="status" in fields
        )
        await sandbox.caller().create("customresourcedefinitions.apiextensions.k8s.io", made)
    return Snapshots(sandbox)
