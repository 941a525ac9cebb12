"""DaemonSet controller: one pod per node, updated one at a time."""

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

HASH = "controller-revision-hash"


class DaemonSets(Actor):
    user = controller("daemon-set-controller")
    primary = "daemonsets.apps"
    watched: ClassVar[tuple[str, ...]] = ("pods", "nodes", object_builders.REVISIONS)

    def concerned(self, change: Change) -> Iterable[Place]:
        if change.new.kind_id == "nodes":
            found = (item["metadata"] for item in self.every(self.primary))
            return [(self.primary, meta["namespace"], meta["name"]) for meta in found]
        return super().concerned(change)

    async def reconcile(self, place: Place, found: Body) -> None:
        if found["metadata"].get("deletionTimestamp"):
            return
        meta, spec = found["metadata"], found["spec"]
        code = object_builders.short_hash(spec["template"])
        await object_builders.keep_revision(self, found, f"{meta['name']}-{code}")
        nodes = [node["metadata"]["name"] for node in self.every("nodes")]
        pods = {pod["spec"].get("nodeName"): pod for pod in self.owned("pods", found)}
        for node in nodes:
            if node not in pods:
                body = object_builders.pod_from(
                    spec["template"], found, {"generateName": f"{meta['name']}-", "labels": {HASH: code}}
                )
                body["spec"] = {**body["spec"], "nodeName": node}
                pods[node] = await self.create("pods", body, meta["namespace"])
        olds = [pod for pod in pods.values() if pod["metadata"]["labels"].get(HASH) != code]
        can_roll = spec.get("updateStrategy", {}).get("type") != "OnDelete" and all(
            map(object_builders.is_active, pods.values())
        )
        if olds and can_roll and all(object_builders.is_ready(pod) for pod in pods.values() if pod not in olds):
            await self.delete("pods", olds[0])
        await self._tell(found, [pods[node] for node in nodes], code)

    async def _tell(self, found: Body, pods: list[Body], code: str) -> None:
        ready = sum(object_builders.is_ready(pod) for pod in pods)
        updated = sum(pod["metadata"]["labels"].get(HASH) == code for pod in pods)
        status: Body = {"currentNumberScheduled": len(pods), "desiredNumberScheduled": len(pods), "numberReady": ready}
        status |= {"numberMisscheduled": 0, "observedGeneration": found["metadata"]["generation"]}
        counts = {"updatedNumberScheduled": updated, "numberAvailable": ready, "numberUnavailable": len(pods) - ready}
        status |= {name: count for name, count in counts.items() if count}
        await self.write_status(self.primary, found, status)
