"""PersistentVolume controller: binds claims, provisions volumes, and applies the reclaim policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.controllers.controller import Actor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.store import Change
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import Place

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
PROTECTIONS = ("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection")
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Volumes(Actor):
    user = controller("persistent-volume-binder")
    primary = CLAIMS
    watched: ClassVar[tuple[str, ...]] = (VOLUMES, CLASSES, "pods")

    def concerned(self, change: Change) -> Iterable[Place]:
        new = change.new
        if new.kind_id == VOLUMES:
            yield (VOLUMES, "", new.name)
        if new.kind_id == CLAIMS:
            yield (CLAIMS, new.namespace, new.name)
            for volume in self.every(VOLUMES):
                if _claim_of(volume) == (new.namespace, new.name):
                    yield (VOLUMES, "", volume["metadata"]["name"])
        else:  # a volume, class or pod changed: a pending claim may bind, a terminating one may go
            for claim in self.every(CLAIMS, new.namespace):
                if claim.get("status", {}).get("phase") != "Bound" or claim["metadata"].get("deletionTimestamp"):
                    yield (CLAIMS, claim["metadata"]["namespace"], claim["metadata"]["name"])

    async def reconcile(self, place: Place, found: Body) -> None:
        if found["metadata"].get("deletionTimestamp"):
            await self._unprotect(place[0], found)
        elif place[0] == VOLUMES:
            await self._volume(found)
        elif found.get("status", {}).get("phase") != "Bound":
            await self._claim(found)

    async def _unprotect(self, kind: str, found: Body) -> None:
        finalizers = found["metadata"].get("finalizers", [])
        kept = [name for name in finalizers if name not in PROTECTIONS]
        is_used = self._users(found) if kind == CLAIMS else found.get("status", {}).get("phase") == "Bound"
        if kept != finalizers and not is_used:
            await self.patch(kind, found, {"metadata": {"finalizers": kept or None}})

    def _users(self, claim: Body) -> bool:
        meta = claim["metadata"]
        pods = (pod["spec"].get("volumes", ()) for pod in self.every("pods", meta["namespace"]))
        return any(
            row.get("persistentVolumeClaim", {}).get("claimName") == meta["name"] for rows in pods for row in rows
        )

    async def _volume(self, found: Body) -> None:
        claim_ref = found["spec"].get("claimRef") or {}
        claim = self.find(CLAIMS, claim_ref["name"], claim_ref["namespace"]) if claim_ref else None
        phase = found.get("status", {}).get("phase", "Pending")
        if not claim_ref.get("uid"):
            await self._phase(found, "Available")
        elif claim is None or claim["metadata"]["uid"] != claim_ref["uid"]:
            await self._phase(found, "Released")
            if found["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                await self.delete(VOLUMES, found)
        elif phase != "Bound" and claim["spec"].get("volumeName") == found["metadata"]["name"]:
            await self._phase(found, "Bound")

    async def _phase(self, volume: Body, phase: str) -> Body:
        if volume.get("status", {}).get("phase") == phase:
            return volume
        status = {**volume.get("status", {}), "phase": phase, "lastPhaseTransitionTime": self.sources.timestamp()}
        return await self.patch(VOLUMES, volume, {"status": status}, subresource="status")

    async def _claim(self, claim: Body) -> None:
        spec, meta = claim["spec"], claim["metadata"]
        if "storageClassName" not in spec and (default := self._default_class()):
            claim = await self.patch(CLAIMS, claim, {"spec": {"storageClassName": default}})
            spec = claim["spec"]
        volume = self._volume_for(claim) or await self._made_for(claim)
        if volume is None:
            phase = "Lost" if spec.get("volumeName") and self._was_bound(claim) else "Pending"
            await self.patch(CLAIMS, claim, {"status": {"phase": phase}}, subresource="status")
            return
        name = volume["metadata"]["name"]
        if (volume["spec"].get("claimRef") or {}).get("uid") != meta["uid"]:
            volume = await self.patch(VOLUMES, volume, {"spec": {"claimRef": _reference(meta)}})
        await self._phase(volume, "Bound")
        done = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        claim = await self.patch(CLAIMS, claim, {"metadata": {"annotations": done}, "spec": {"volumeName": name}})
        bound = {"phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
        await self.patch(CLAIMS, claim, {"status": bound}, subresource="status")

    def _was_bound(self, claim: Body) -> bool:
        return "pv.kubernetes.io/bind-completed" in (claim["metadata"].get("annotations") or {})

    def _default_class(self) -> str:
        marked = (row for row in self.every(CLASSES) if row["metadata"].get("annotations", {}).get(DEFAULT) == "true")
        return next((str(row["metadata"]["name"]) for row in marked), "")

    def _volume_for(self, claim: Body) -> Body | None:
        """The volume the claim names, else the smallest matching one; volumes reserved for the claim come first."""
        meta, spec = claim["metadata"], claim["spec"]
        fitting = []
        for volume in self.every(VOLUMES):
            reference = volume["spec"].get("claimRef") or {}
            is_kept = _claim_of(volume) == (meta["namespace"], meta["name"])
            mine = is_kept and reference.get("uid") in {None, meta["uid"]}
            if (reference and not mine) or volume["metadata"].get("deletionTimestamp"):
                continue
            if spec.get("volumeName", volume["metadata"]["name"]) == volume["metadata"]["name"] and _fits(volume, spec):
                size = _size(volume["spec"]["capacity"]["storage"])
                fitting.append((not mine, size, volume["metadata"]["name"], volume))
        return min(fitting, key=lambda row: row[:3])[3] if fitting else None

    async def _made_for(self, claim: Body) -> Body | None:
        spec, meta = claim["spec"], claim["metadata"]
        found = self.find(CLASSES, spec.get("storageClassName") or "")
        if found is None or spec.get("volumeName") or found["provisioner"] == "kubernetes.io/no-provisioner":
            return None
        if found.get("volumeBindingMode") == "WaitForFirstConsumer" and not self._users(claim):
            return None
        name = f"pvc-{meta['uid']}"
        body = {
            "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": found["provisioner"]}},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "storageClassName": found["metadata"]["name"],
                "persistentVolumeReclaimPolicy": found.get("reclaimPolicy", "Delete"),
                "claimRef": _reference(meta),
                "hostPath": {"path": f"/sandbox/{name}"},
            },
        }
        return self.find(VOLUMES, name) or await self.create(VOLUMES, body)


def _reference(meta: Body) -> Body:
    own = {name: meta[name] for name in ("name", "uid", "namespace")}
    return {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **own}


def _claim_of(volume: Body) -> tuple[str, str]:
    reference = volume["spec"].get("claimRef") or {}
    return (reference.get("namespace", ""), reference.get("name", ""))


def _fits(volume: Body, wanted: Body) -> bool:
    given = volume["spec"]
    same_class = given.get("storageClassName", "") == wanted.get("storageClassName", "")
    enough = _size(given["capacity"]["storage"]) >= _size(wanted["resources"]["requests"]["storage"])
    return same_class and enough and set(wanted["accessModes"]) <= set(given["accessModes"])


def _size(text: str) -> float:
    number = text.rstrip("".join(UNITS))
    return float(number) * UNITS.get(text.removeprefix(number), 1)
