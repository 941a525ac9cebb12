"""Deployment controller: one ReplicaSet per pod template, rollouts within surge and unavailability, status."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import Actor

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import Place

REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"
SETS = "replicasets.apps"
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


class Deployments(Actor):
    user = controller("deployment-controller")
    primary = "deployments.apps"
    watched: ClassVar[tuple[str, ...]] = (SETS,)

    async def reconcile(self, place: Place, found: Body) -> float | None:
        sets = self.owned(SETS, found)
        code = object_builders.short_hash(found["spec"]["template"])
        new = next((item for item in sets if item["metadata"]["labels"].get(HASH) == code), None)
        olds = [item for item in sets if item is not new]
        is_paused = found["spec"].get("paused", False) or "deletionTimestamp" in found["metadata"]
        created = new is None and not is_paused
        if created:
            new = await self._begin(found, code, olds)
        if new is not None and not is_paused:
            found = await self._number(found, new, olds)
            await self._roll(found, new, olds)
            new, olds = self.again(SETS, new), [self.again(SETS, item) for item in olds]
        return await self._tell(found, new, olds, created=created)

    async def _begin(self, found: Body, code: str, olds: list[Body]) -> Body:
        meta, spec = found["metadata"], found["spec"]
        template = {**spec["template"], "metadata": {**spec["template"].get("metadata", {})}}
        labels = {**template["metadata"].get("labels", {}), HASH: code}
        template["metadata"]["labels"] = labels
        match = {**spec["selector"], "matchLabels": {**spec["selector"].get("matchLabels", {}), HASH: code}}
        first = 0 if olds else spec["replicas"]
        body = {
            "metadata": {
                "name": f"{meta['name']}-{code}",
                "labels": labels,
                "annotations": {REVISION: str(max(map(_revision, olds), default=0) + 1)},
                "ownerReferences": [object_builders.owner_reference(found)],
            },
            "spec": {"replicas": first, "selector": match, "template": template},
        }
        return await self.create(SETS, body, meta["namespace"])

    async def _number(self, found: Body, new: Body, olds: list[Body]) -> Body:
        """Give the new ReplicaSet the highest revision and copy it to the Deployment."""
        highest = max((_revision(item) for item in olds), default=0)
        if _revision(new) <= highest:
            patch = {"metadata": {"annotations": {REVISION: str(highest + 1)}}}
            new = await self.patch(SETS, new, patch)
        if _revision(found) != _revision(new):
            patch = {"metadata": {"annotations": {REVISION: str(_revision(new))}}}
            found = await self.patch(self.primary, found, patch, subresource="status")
        return found

    async def _roll(self, found: Body, new: Body, olds: list[Body]) -> None:
        wanted = found["spec"]["replicas"]
        strategy = found["spec"].get("strategy", {})
        current = sum(item["spec"]["replicas"] for item in olds)
        if strategy.get("type") == "Recreate":
            for item in olds:
                await self._scale(item, 0)
            gone = not any(item.get("status", {}).get("replicas") for item in olds)
            await self._scale(new, wanted if gone and not current else new["spec"]["replicas"])
            return
        rolling = strategy.get("rollingUpdate", {})
        surge = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
        unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
        if not surge and not unavailable:
            unavailable = 1
        room = max(0, wanted + surge - current - new["spec"]["replicas"])
        have = new["spec"]["replicas"]
        target = wanted if have > wanted or not current else min(wanted, have + room)
        await self._scale(new, target)
        available = sum(_available(item) for item in (new, *olds))
        spare = available - (wanted - min(unavailable, wanted))
        for item in sorted(olds, key=_revision):
            idle = item["spec"]["replicas"] - _available(item)
            less = min(item["spec"]["replicas"], idle + max(0, min(spare, _available(item))))
            spare -= max(0, less - idle)
            await self._scale(item, item["spec"]["replicas"] - less)

    async def _scale(self, item: Body, replicas: int) -> None:
        if item["spec"]["replicas"] != replicas:
            await self.patch(SETS, item, {"spec": {"replicas": replicas}})

    async def _tell(self, found: Body, new: Body | None, olds: list[Body], *, created: bool) -> float | None:
        old = found.get("status", {})
        counts = _counts(found, new, olds)
        rows: list[Body] = [*old.get("conditions", ())]
        wanted = found["spec"]["replicas"]
        rolling = found["spec"].get("strategy", {}).get("rollingUpdate", {})
        least = wanted - _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
        enough = counts["availableReplicas"] >= least
        moved = any(old.get(name, 0) != counts[name] for name in COUNTS[:4])
        progress, wait = (
            ({}, None)
            if "deletionTimestamp" in found["metadata"]
            else self._progress(found, new, counts, moved=moved, created=created)
        )
        if not created:
            rows = self._with(rows, _availability(enough=enough))
        if progress:
            rows = self._with(rows, progress, renew=moved)
        status: Body = {"observedGeneration": found["metadata"]["generation"], "conditions": rows}
        status = {**old, "conditions": rows} if created else status | {name: n for name, n in counts.items() if n}
        await self.write_status(self.primary, found, status)
        return wait

    def _with(self, rows: list[Body], row: Body, *, renew: bool = False) -> list[Body]:
        now = self.sources.timestamp()
        old = object_builders.condition_in({"conditions": rows}, row["type"])
        same = not renew and (old.get("status"), old.get("reason")) == (row["status"], row["reason"])
        return rows if same else object_builders.with_condition(rows, {**row, "lastUpdateTime": now}, now)

    def _progress(
        self, found: Body, new: Body | None, counts: dict[str, int], *, moved: bool, created: bool
    ) -> tuple[Body, float | None]:
        """The `Progressing` condition, empty if it stays as it is, and the seconds until the progress deadline."""
        if found["spec"].get("paused"):
            return _row("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"), None
        name = f'ReplicaSet "{new["metadata"]["name"]}"' if new else ""
        wanted = found["spec"]["replicas"]
        if created and new:
            why = f'Created new replica set "{new["metadata"]["name"]}"'
            return _row("Progressing", "True", "NewReplicaSetCreated", why), None
        if counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted:
            why = f"{name} has successfully progressed."
            return _row("Progressing", "True", "NewReplicaSetAvailable", why), None
        old = object_builders.condition_in(found.get("status", {}), "Progressing")
        only_scaled = old.get("reason") == "NewReplicaSetAvailable" and counts["replicas"] == counts["updatedReplicas"]
        if only_scaled or (not moved and old.get("reason") in {None, "ProgressDeadlineExceeded"}):
            return {}, None
        since = self.sources.now() if moved else object_builders.moment_of(old["lastUpdateTime"])
        deadline = timedelta(seconds=found["spec"].get("progressDeadlineSeconds", 600))
        left = (since + deadline - self.sources.now()).total_seconds()
        if left <= 0:
            why = f"{name} has timed out progressing."
            return _row("Progressing", "False", "ProgressDeadlineExceeded", why), None
        return _row("Progressing", "True", "ReplicaSetUpdated", f"{name} is progressing.") if moved else {}, left


def _row(kind: str, status: str, reason: str, message: str) -> Body:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _availability(*, enough: bool) -> Body:
    if enough:
        return _row("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return _row("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")


def _counts(found: Body, new: Body | None, olds: list[Body]) -> dict[str, int]:
    sets = [item.get("status", {}) for item in ([new] if new else []) + olds]
    total = sum(status.get("replicas", 0) for status in sets)
    available = sum(status.get("availableReplicas", 0) for status in sets)
    updated = new.get("status", {}).get("replicas", 0) if new else 0
    ready = sum(status.get("readyReplicas", 0) for status in sets)
    missing = max(0, max(total, found["spec"]["replicas"]) - available)
    return dict(zip(COUNTS, (total, updated, ready, available, missing), strict=True))


def _available(item: Body) -> int:
    count: int = item.get("status", {}).get("availableReplicas", 0)
    return count


def _revision(item: Body) -> int:
    return int((item["metadata"].get("annotations") or {}).get(REVISION, 0))


def _share(value: Any, of: int, *, up: bool) -> int:
    """An integer as it is, or a percentage such as `25%` of the total."""
    if isinstance(value, int):
        return value
    exact = of * int(value.rstrip("%")) / 100
    return ceil(exact) if up else int(exact)
