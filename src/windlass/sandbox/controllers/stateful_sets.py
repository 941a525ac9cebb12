"""StatefulSet controller: pods in ordinal order, updated and removed in reverse order, with their claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import SandboxController

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import StoreKey

REVISION_HASH_LABEL = "controller-revision-hash"
CLAIMS = "persistentvolumeclaims"


class StatefulSets(SandboxController):
    user = controller_user("statefulset-controller")
    primary = "statefulsets.apps"
    watched: ClassVar[tuple[str, ...]] = ("pods", CLAIMS, object_builders.CONTROLLER_REVISIONS)

    async def reconcile(self, key: StoreKey, stateful_set: Body) -> None:
        if stateful_set["metadata"].get("deletionTimestamp"):
            return
        name = stateful_set["metadata"]["name"]
        new_revision = f"{name}-{object_builders.short_hash(stateful_set['spec']['template'])}"
        old_revision = stateful_set.get("status", {}).get("currentRevision") or new_revision
        await object_builders.ensure_revision(self, stateful_set, new_revision)
        pods = {_ordinal(pod): pod for pod in self.list_owned("pods", stateful_set)}
        await self._scale_and_update(stateful_set, pods, new_revision, old_revision)
        pods = {_ordinal(pod): pod for pod in self.list_owned("pods", stateful_set)}
        await self._update_status(stateful_set, pods, new_revision, old_revision)

    async def _scale_and_update(
        self, stateful_set: Body, pods: dict[int, Body], new_revision: str, old_revision: str
    ) -> None:
        """Create missing pods, then delete excess ones, then replace those of the old revision, one step at a time."""
        spec = stateful_set["spec"]
        desired, is_ordered = spec["replicas"], spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        strategy = spec.get("updateStrategy", {})
        partition = strategy.get("rollingUpdate", {}).get("partition", 0)
        for ordinal in range(desired):
            pod = pods.get(ordinal)
            if pod is None:
                await self._create_pod(stateful_set, ordinal, new_revision if ordinal >= partition else old_revision)
            if is_ordered and (pod is None or not object_builders.is_ready(pod) or not object_builders.is_active(pod)):
                return
        excess = sorted((number for number in pods if number >= desired), reverse=True)
        for ordinal in excess[:1] if is_ordered else excess:
            await self._delete_pod(pods[ordinal])
        if excess or strategy.get("type") == "OnDelete":
            return
        for ordinal in range(desired - 1, partition - 1, -1):
            pod = pods.get(ordinal)
            if pod is not None and pod["metadata"]["labels"].get(REVISION_HASH_LABEL) != new_revision:
                await self._delete_pod(pod)
            if (
                pod is None
                or not object_builders.is_ready(pod)
                or pod["metadata"]["labels"].get(REVISION_HASH_LABEL) != new_revision
            ):
                return

    async def _delete_pod(self, pod: Body) -> None:
        if not pod["metadata"].get("deletionTimestamp"):
            await self.delete("pods", pod)

    async def _create_pod(self, stateful_set: Body, ordinal: int, revision: str) -> None:
        meta, spec = stateful_set["metadata"], stateful_set["spec"]
        name = f"{meta['name']}-{ordinal}"
        claims = {
            row["metadata"]["name"]: f"{row['metadata']['name']}-{name}" for row in spec.get("volumeClaimTemplates", ())
        }
        for row in spec.get("volumeClaimTemplates", ()):
            claim = claims[row["metadata"]["name"]]
            if self.find(CLAIMS, claim, meta["namespace"]) is None:
                labels = spec["selector"].get("matchLabels", {})
                body = {"metadata": {"name": claim, "labels": labels}, "spec": row["spec"]}
                await self.create(CLAIMS, body, meta["namespace"])
        labels = {
            REVISION_HASH_LABEL: revision,
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
        }
        body = object_builders.pod_from_template(
            spec["template"], stateful_set, {"name": name, "generateName": f"{meta['name']}-", "labels": labels}
        )
        volumes = [row for row in body["spec"].get("volumes", ()) if row["name"] not in claims]
        volumes += [{"name": key, "persistentVolumeClaim": {"claimName": claim}} for key, claim in claims.items()]
        body["spec"] = {**body["spec"], "hostname": name, **({"volumes": volumes} if volumes else {})}
        await self.create("pods", body, meta["namespace"])

    async def _update_status(
        self, stateful_set: Body, pods: dict[int, Body], new_revision: str, old_revision: str
    ) -> None:
        existing = list(pods.values())
        hashes = [
            pod["metadata"]["labels"].get(REVISION_HASH_LABEL) for pod in existing if object_builders.is_active(pod)
        ]
        ready = sum(object_builders.is_ready(pod) for pod in existing)
        desired = stateful_set["spec"]["replicas"]
        if hashes.count(new_revision) == len(existing) == ready == desired:
            old_revision = new_revision
        counts = {
            "readyReplicas": ready,
            "currentReplicas": hashes.count(old_revision),
            "updatedReplicas": hashes.count(new_revision),
        }
        status: Body = {"observedGeneration": stateful_set["metadata"]["generation"], "replicas": len(existing)}
        status |= {name: count for name, count in counts.items() if count}
        status |= {
            "currentRevision": old_revision,
            "updateRevision": new_revision,
            "collisionCount": 0,
            "availableReplicas": ready,
        }
        await self.write_status(self.primary, stateful_set, status)


def _ordinal(pod: Body) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
