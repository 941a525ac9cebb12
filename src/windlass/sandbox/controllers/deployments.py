"""Deployment controller: one ReplicaSet per pod template, rollouts within surge and unavailability, status."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import SandboxController

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import StoreKey

REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
TEMPLATE_HASH_LABEL = "pod-template-hash"
REPLICA_SETS = "replicasets.apps"
COUNT_FIELDS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


class Deployments(SandboxController):
    user = controller_user("deployment-controller")
    primary = "deployments.apps"
    watched: ClassVar[tuple[str, ...]] = (REPLICA_SETS,)

    async def reconcile(self, key: StoreKey, deployment: Body) -> float | None:
        replica_sets = self.list_owned(REPLICA_SETS, deployment)
        template_hash = object_builders.short_hash(deployment["spec"]["template"])
        new_set = next(
            (item for item in replica_sets if item["metadata"]["labels"].get(TEMPLATE_HASH_LABEL) == template_hash),
            None,
        )
        old_sets = [item for item in replica_sets if item is not new_set]
        is_paused = deployment["spec"].get("paused", False) or "deletionTimestamp" in deployment["metadata"]
        created = new_set is None and not is_paused
        if created:
            new_set = await self._create_replica_set(deployment, template_hash, old_sets)
        if new_set is not None and not is_paused:
            deployment = await self._update_revision(deployment, new_set, old_sets)
            await self._roll_out(deployment, new_set, old_sets)
            new_set, old_sets = (
                self.reread(REPLICA_SETS, new_set),
                [self.reread(REPLICA_SETS, item) for item in old_sets],
            )
        return await self._update_status(deployment, new_set, old_sets, created=created)

    async def _create_replica_set(self, deployment: Body, template_hash: str, old_sets: list[Body]) -> Body:
        meta, spec = deployment["metadata"], deployment["spec"]
        template = {**spec["template"], "metadata": {**spec["template"].get("metadata", {})}}
        labels = {**template["metadata"].get("labels", {}), TEMPLATE_HASH_LABEL: template_hash}
        template["metadata"]["labels"] = labels
        selector = {
            **spec["selector"],
            "matchLabels": {**spec["selector"].get("matchLabels", {}), TEMPLATE_HASH_LABEL: template_hash},
        }
        replicas = 0 if old_sets else spec["replicas"]
        body = {
            "metadata": {
                "name": f"{meta['name']}-{template_hash}",
                "labels": labels,
                "annotations": {REVISION_ANNOTATION: str(max(map(_revision, old_sets), default=0) + 1)},
                "ownerReferences": [object_builders.owner_reference(deployment)],
            },
            "spec": {"replicas": replicas, "selector": selector, "template": template},
        }
        return await self.create(REPLICA_SETS, body, meta["namespace"])

    async def _update_revision(self, deployment: Body, new_set: Body, old_sets: list[Body]) -> Body:
        """Give the new ReplicaSet the highest revision and copy it to the Deployment."""
        highest = max((_revision(item) for item in old_sets), default=0)
        if _revision(new_set) <= highest:
            patch = {"metadata": {"annotations": {REVISION_ANNOTATION: str(highest + 1)}}}
            new_set = await self.patch(REPLICA_SETS, new_set, patch)
        if _revision(deployment) != _revision(new_set):
            patch = {"metadata": {"annotations": {REVISION_ANNOTATION: str(_revision(new_set))}}}
            deployment = await self.patch(self.primary, deployment, patch, subresource="status")
        return deployment

    async def _roll_out(self, deployment: Body, new_set: Body, old_sets: list[Body]) -> None:
        desired = deployment["spec"]["replicas"]
        strategy = deployment["spec"].get("strategy", {})
        current = sum(item["spec"]["replicas"] for item in old_sets)
        if strategy.get("type") == "Recreate":
            for item in old_sets:
                await self._scale(item, 0)
            old_gone = not any(item.get("status", {}).get("replicas") for item in old_sets)
            await self._scale(new_set, desired if old_gone and not current else new_set["spec"]["replicas"])
            return
        rolling = strategy.get("rollingUpdate", {})
        surge = _scaled_value(rolling.get("maxSurge", "25%"), desired, round_up=True)
        unavailable = _scaled_value(rolling.get("maxUnavailable", "25%"), desired, round_up=False)
        if not surge and not unavailable:
            unavailable = 1
        room = max(0, desired + surge - current - new_set["spec"]["replicas"])
        have_new = new_set["spec"]["replicas"]
        target = desired if have_new > desired or not current else min(desired, have_new + room)
        await self._scale(new_set, target)
        available = sum(_available_replicas(item) for item in (new_set, *old_sets))
        spare = available - (desired - min(unavailable, desired))
        for item in sorted(old_sets, key=_revision):
            idle = item["spec"]["replicas"] - _available_replicas(item)
            reduction = min(item["spec"]["replicas"], idle + max(0, min(spare, _available_replicas(item))))
            spare -= max(0, reduction - idle)
            await self._scale(item, item["spec"]["replicas"] - reduction)

    async def _scale(self, replica_set: Body, replicas: int) -> None:
        if replica_set["spec"]["replicas"] != replicas:
            await self.patch(REPLICA_SETS, replica_set, {"spec": {"replicas": replicas}})

    async def _update_status(
        self, deployment: Body, new_set: Body | None, old_sets: list[Body], *, created: bool
    ) -> float | None:
        old = deployment.get("status", {})
        counts = _replica_counts(deployment, new_set, old_sets)
        conditions: list[Body] = [*old.get("conditions", ())]
        desired = deployment["spec"]["replicas"]
        rolling = deployment["spec"].get("strategy", {}).get("rollingUpdate", {})
        min_available = desired - _scaled_value(rolling.get("maxUnavailable", "25%"), desired, round_up=False)
        is_available = counts["availableReplicas"] >= min_available
        progressed = any(old.get(name, 0) != counts[name] for name in COUNT_FIELDS[:4])
        progress, wait = (
            ({}, None)
            if "deletionTimestamp" in deployment["metadata"]
            else self._progress_condition(deployment, new_set, counts, progressed=progressed, created=created)
        )
        if not created:
            conditions = self._with_condition(conditions, _available_condition(is_available=is_available))
        if progress:
            conditions = self._with_condition(conditions, progress, renew=progressed)
        status: Body = {"observedGeneration": deployment["metadata"]["generation"], "conditions": conditions}
        status = {**old, "conditions": conditions} if created else status | {name: n for name, n in counts.items() if n}
        await self.write_status(self.primary, deployment, status)
        return wait

    def _with_condition(self, conditions: list[Body], condition: Body, *, renew: bool = False) -> list[Body]:
        now = self.clock.timestamp()
        old = object_builders.find_condition({"conditions": conditions}, condition["type"])
        same = not renew and (old.get("status"), old.get("reason")) == (condition["status"], condition["reason"])
        return (
            conditions
            if same
            else object_builders.with_condition(conditions, {**condition, "lastUpdateTime": now}, now)
        )

    def _progress_condition(
        self, deployment: Body, new_set: Body | None, counts: dict[str, int], *, progressed: bool, created: bool
    ) -> tuple[Body, float | None]:
        """The `Progressing` condition, empty if it stays as it is, and the seconds until the progress deadline."""
        if deployment["spec"].get("paused"):
            return _condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"), None
        name = f'ReplicaSet "{new_set["metadata"]["name"]}"' if new_set else ""
        desired = deployment["spec"]["replicas"]
        if created and new_set:
            message = f'Created new replica set "{new_set["metadata"]["name"]}"'
            return _condition("Progressing", "True", "NewReplicaSetCreated", message), None
        if counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == desired:
            message = f"{name} has successfully progressed."
            return _condition("Progressing", "True", "NewReplicaSetAvailable", message), None
        old = object_builders.find_condition(deployment.get("status", {}), "Progressing")
        only_scaled = old.get("reason") == "NewReplicaSetAvailable" and counts["replicas"] == counts["updatedReplicas"]
        if only_scaled or (not progressed and old.get("reason") in {None, "ProgressDeadlineExceeded"}):
            return {}, None
        since = self.clock.now() if progressed else object_builders.parse_time(old["lastUpdateTime"])
        deadline = timedelta(seconds=deployment["spec"].get("progressDeadlineSeconds", 600))
        remaining = (since + deadline - self.clock.now()).total_seconds()
        if remaining <= 0:
            message = f"{name} has timed out progressing."
            return _condition("Progressing", "False", "ProgressDeadlineExceeded", message), None
        return _condition(
            "Progressing", "True", "ReplicaSetUpdated", f"{name} is progressing."
        ) if progressed else {}, remaining


def _condition(kind: str, status: str, reason: str, message: str) -> Body:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _available_condition(*, is_available: bool) -> Body:
    if is_available:
        return _condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return _condition(
        "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    )


def _replica_counts(deployment: Body, new_set: Body | None, old_sets: list[Body]) -> dict[str, int]:
    statuses = [item.get("status", {}) for item in ([new_set] if new_set else []) + old_sets]
    total = sum(status.get("replicas", 0) for status in statuses)
    available = sum(status.get("availableReplicas", 0) for status in statuses)
    updated = new_set.get("status", {}).get("replicas", 0) if new_set else 0
    ready = sum(status.get("readyReplicas", 0) for status in statuses)
    missing = max(0, max(total, deployment["spec"]["replicas"]) - available)
    return dict(zip(COUNT_FIELDS, (total, updated, ready, available, missing), strict=True))


def _available_replicas(item: Body) -> int:
    count: int = item.get("status", {}).get("availableReplicas", 0)
    return count


def _revision(item: Body) -> int:
    return int((item["metadata"].get("annotations") or {}).get(REVISION_ANNOTATION, 0))


def _scaled_value(value: Any, total: int, *, round_up: bool) -> int:
    """An integer as it is, or a percentage such as `25%` of the total."""
    if isinstance(value, int):
        return value
    exact = total * int(value.rstrip("%")) / 100
    return ceil(exact) if round_up else int(exact)
