"""StatefulSet controller: pods in ordinal order, updated and removed in reverse order, with their claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import Actor

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import Place

HASH = "controller-revision-hash"
CLAIMS = "persistentvolumeclaims"


class StatefulSets(Actor):
    user = controller("statefulset-controller")
    primary = "statefulsets.apps"
    watched: ClassVar[tuple[str, ...]] = ("pods", CLAIMS, object_builders.REVISIONS)

    async def reconcile(self, place: Place, found: Body) -> None:
        if found["metadata"].get("deletionTimestamp"):
            return
        name = found["metadata"]["name"]
        new = f"{name}-{object_builders.short_hash(found['spec']['template'])}"
        old = found.get("status", {}).get("currentRevision") or new
        await object_builders.keep_revision(self, found, new)
        pods = {_number(pod): pod for pod in self.owned("pods", found)}
        await self._step(found, pods, new, old)
        pods = {_number(pod): pod for pod in self.owned("pods", found)}
        await self._tell(found, pods, new, old)

    async def _step(self, found: Body, pods: dict[int, Body], new: str, old: str) -> None:
        """Create missing pods, then delete excess ones, then replace those of the old revision, one step at a time."""
        spec = found["spec"]
        wanted, one_by_one = spec["replicas"], spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        strategy = spec.get("updateStrategy", {})
        partition = strategy.get("rollingUpdate", {}).get("partition", 0)
        for number in range(wanted):
            pod = pods.get(number)
            if pod is None:
                await self._create(found, number, new if number >= partition else old)
            if one_by_one and (pod is None or not object_builders.is_ready(pod) or not object_builders.is_active(pod)):
                return
        beyond = sorted((number for number in pods if number >= wanted), reverse=True)
        for number in beyond[:1] if one_by_one else beyond:
            await self._remove(pods[number])
        if beyond or strategy.get("type") == "OnDelete":
            return
        for number in range(wanted - 1, partition - 1, -1):
            pod = pods.get(number)
            if pod is not None and pod["metadata"]["labels"].get(HASH) != new:
                await self._remove(pod)
            if pod is None or not object_builders.is_ready(pod) or pod["metadata"]["labels"].get(HASH) != new:
                return

    async def _remove(self, pod: Body) -> None:
        if not pod["metadata"].get("deletionTimestamp"):
            await self.delete("pods", pod)

    async def _create(self, found: Body, number: int, revision: str) -> None:
        meta, spec = found["metadata"], found["spec"]
        name = f"{meta['name']}-{number}"
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
            HASH: revision,
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
        body = object_builders.pod_from(
            spec["template"], found, {"name": name, "generateName": f"{meta['name']}-", "labels": labels}
        )
        volumes = [row for row in body["spec"].get("volumes", ()) if row["name"] not in claims]
        volumes += [{"name": key, "persistentVolumeClaim": {"claimName": claim}} for key, claim in claims.items()]
        body["spec"] = {**body["spec"], "hostname": name, **({"volumes": volumes} if volumes else {})}
        await self.create("pods", body, meta["namespace"])

    async def _tell(self, found: Body, pods: dict[int, Body], new: str, old: str) -> None:
        there = list(pods.values())
        by_hash = [pod["metadata"]["labels"].get(HASH) for pod in there if object_builders.is_active(pod)]
        ready = sum(object_builders.is_ready(pod) for pod in there)
        wanted = found["spec"]["replicas"]
        if by_hash.count(new) == len(there) == ready == wanted:
            old = new
        counts = {"readyReplicas": ready, "currentReplicas": by_hash.count(old), "updatedReplicas": by_hash.count(new)}
        status: Body = {"observedGeneration": found["metadata"]["generation"], "replicas": len(there)}
        status |= {name: count for name, count in counts.items() if count}
        status |= {"currentRevision": old, "updateRevision": new, "collisionCount": 0, "availableReplicas": ready}
        await self.write_status(self.primary, found, status)


def _number(pod: Body) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
