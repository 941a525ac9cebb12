"""PersistentVolume controller: binds claims, provisions volumes, and applies the reclaim policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.controllers.controller import SandboxController

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.store import StoreChange
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import StoreKey

CLAIMS, VOLUMES, STORAGE_CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
PROTECTION_FINALIZERS = ("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection")
QUANTITY_UNITS = {
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}


class Volumes(SandboxController):
    user = controller_user("persistent-volume-binder")
    primary = CLAIMS
    watched: ClassVar[tuple[str, ...]] = (VOLUMES, STORAGE_CLASSES, "pods")

    def affected_keys(self, change: StoreChange) -> Iterable[StoreKey]:
        new = change.new
        if new.kind_id == VOLUMES:
            yield (VOLUMES, "", new.name)
        if new.kind_id == CLAIMS:
            yield (CLAIMS, new.namespace, new.name)
            for volume in self.list_objects(VOLUMES):
                if _claim_key(volume) == (new.namespace, new.name):
                    yield (VOLUMES, "", volume["metadata"]["name"])
        else:  # a volume, class or pod changed: a pending claim may bind, a terminating one may go
            for claim in self.list_objects(CLAIMS, new.namespace):
                if claim.get("status", {}).get("phase") != "Bound" or claim["metadata"].get("deletionTimestamp"):
                    yield (CLAIMS, claim["metadata"]["namespace"], claim["metadata"]["name"])

    async def reconcile(self, key: StoreKey, body: Body) -> None:
        if body["metadata"].get("deletionTimestamp"):
            await self._remove_protection(key[0], body)
        elif key[0] == VOLUMES:
            await self._reconcile_volume(body)
        elif body.get("status", {}).get("phase") != "Bound":
            await self._reconcile_claim(body)

    async def _remove_protection(self, kind: str, body: Body) -> None:
        finalizers = body["metadata"].get("finalizers", [])
        kept = [name for name in finalizers if name not in PROTECTION_FINALIZERS]
        is_used = self._is_in_use(body) if kind == CLAIMS else body.get("status", {}).get("phase") == "Bound"
        if kept != finalizers and not is_used:
            await self.patch(kind, body, {"metadata": {"finalizers": kept or None}})

    def _is_in_use(self, claim: Body) -> bool:
        meta = claim["metadata"]
        pods = (pod["spec"].get("volumes", ()) for pod in self.list_objects("pods", meta["namespace"]))
        return any(
            row.get("persistentVolumeClaim", {}).get("claimName") == meta["name"] for rows in pods for row in rows
        )

    async def _reconcile_volume(self, volume: Body) -> None:
        claim_ref = volume["spec"].get("claimRef") or {}
        claim = self.find(CLAIMS, claim_ref["name"], claim_ref["namespace"]) if claim_ref else None
        phase = volume.get("status", {}).get("phase", "Pending")
        if not claim_ref.get("uid"):
            await self._set_phase(volume, "Available")
        elif claim is None or claim["metadata"]["uid"] != claim_ref["uid"]:
            await self._set_phase(volume, "Released")
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                await self.delete(VOLUMES, volume)
        elif phase != "Bound" and claim["spec"].get("volumeName") == volume["metadata"]["name"]:
            await self._set_phase(volume, "Bound")

    async def _set_phase(self, volume: Body, phase: str) -> Body:
        if volume.get("status", {}).get("phase") == phase:
            return volume
        status = {**volume.get("status", {}), "phase": phase, "lastPhaseTransitionTime": self.clock.timestamp()}
        return await self.patch(VOLUMES, volume, {"status": status}, subresource="status")

    async def _reconcile_claim(self, claim: Body) -> None:
        spec, meta = claim["spec"], claim["metadata"]
        if "storageClassName" not in spec and (default := self._default_class()):
            claim = await self.patch(CLAIMS, claim, {"spec": {"storageClassName": default}})
            spec = claim["spec"]
        volume = self._find_volume(claim) or await self._provision_volume(claim)
        if volume is None:
            phase = "Lost" if spec.get("volumeName") and self._was_bound(claim) else "Pending"
            await self.patch(CLAIMS, claim, {"status": {"phase": phase}}, subresource="status")
            return
        name = volume["metadata"]["name"]
        if (volume["spec"].get("claimRef") or {}).get("uid") != meta["uid"]:
            volume = await self.patch(VOLUMES, volume, {"spec": {"claimRef": _claim_reference(meta)}})
        await self._set_phase(volume, "Bound")
        annotations = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        claim = await self.patch(
            CLAIMS, claim, {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}}
        )
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        await self.patch(CLAIMS, claim, {"status": status}, subresource="status")

    def _was_bound(self, claim: Body) -> bool:
        return "pv.kubernetes.io/bind-completed" in (claim["metadata"].get("annotations") or {})

    def _default_class(self) -> str:
        defaults = (
            row
            for row in self.list_objects(STORAGE_CLASSES)
            if row["metadata"].get("annotations", {}).get(DEFAULT_CLASS_ANNOTATION) == "true"
        )
        return next((str(row["metadata"]["name"]) for row in defaults), "")

    def _find_volume(self, claim: Body) -> Body | None:
        """The volume the claim names, else the smallest matching one; volumes reserved for the claim come first."""
        meta, spec = claim["metadata"], claim["spec"]
        matching = []
        for volume in self.list_objects(VOLUMES):
            reference = volume["spec"].get("claimRef") or {}
            names_claim = _claim_key(volume) == (meta["namespace"], meta["name"])
            is_reserved = names_claim and reference.get("uid") in {None, meta["uid"]}
            if (reference and not is_reserved) or volume["metadata"].get("deletionTimestamp"):
                continue
            if spec.get("volumeName", volume["metadata"]["name"]) == volume["metadata"]["name"] and _fits(volume, spec):
                size = _parse_quantity(volume["spec"]["capacity"]["storage"])
                matching.append((not is_reserved, size, volume["metadata"]["name"], volume))
        return min(matching, key=lambda row: row[:3])[3] if matching else None

    async def _provision_volume(self, claim: Body) -> Body | None:
        spec, meta = claim["spec"], claim["metadata"]
        storage_class = self.find(STORAGE_CLASSES, spec.get("storageClassName") or "")
        if (
            storage_class is None
            or spec.get("volumeName")
            or storage_class["provisioner"] == "kubernetes.io/no-provisioner"
        ):
            return None
        if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not self._is_in_use(claim):
            return None
        name = f"pvc-{meta['uid']}"
        body = {
            "metadata": {
                "name": name,
                "annotations": {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]},
            },
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "storageClassName": storage_class["metadata"]["name"],
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
                "claimRef": _claim_reference(meta),
                "hostPath": {"path": f"/sandbox/{name}"},
            },
        }
        return self.find(VOLUMES, name) or await self.create(VOLUMES, body)


def _claim_reference(meta: Body) -> Body:
    own = {name: meta[name] for name in ("name", "uid", "namespace")}
    return {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **own}


def _claim_key(volume: Body) -> tuple[str, str]:
    reference = volume["spec"].get("claimRef") or {}
    return (reference.get("namespace", ""), reference.get("name", ""))


def _fits(volume: Body, claim_spec: Body) -> bool:
    volume_spec = volume["spec"]
    same_class = volume_spec.get("storageClassName", "") == claim_spec.get("storageClassName", "")
    enough = _parse_quantity(volume_spec["capacity"]["storage"]) >= _parse_quantity(
        claim_spec["resources"]["requests"]["storage"]
    )
    return same_class and enough and set(claim_spec["accessModes"]) <= set(volume_spec["accessModes"])


def _parse_quantity(text: str) -> float:
    number = text.rstrip("".join(QUANTITY_UNITS))
    return float(number) * QUANTITY_UNITS.get(text.removeprefix(number), 1)
