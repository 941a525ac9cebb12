"""ReplicaSet controller: creates or deletes pods to match `replicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import Actor

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import Place


class ReplicaSets(Actor):
    user = controller("replicaset-controller")
    primary = "replicasets.apps"
    watched: ClassVar[tuple[str, ...]] = ("pods",)

    async def reconcile(self, place: Place, found: Body) -> None:
        pods = [pod for pod in self.owned("pods", found) if object_builders.is_active(pod)]
        if not found["metadata"].get("deletionTimestamp"):
            pods = await self._scaled(found, pods)
        await self._tell(found, pods)

    async def _scaled(self, found: Body, pods: list[Body]) -> list[Body]:
        wanted = found["spec"].get("replicas", 1)
        name = found["metadata"]["name"]
        for _ in range(wanted - len(pods)):
            body = object_builders.pod_from(found["spec"]["template"], found, {"generateName": f"{name}-"})
            pods = [*pods, await self.create("pods", body, found["metadata"]["namespace"])]
        for pod in sorted(pods, key=object_builders.is_ready)[: max(0, len(pods) - wanted)]:
            await self.delete("pods", pod)
            pods = [other for other in pods if other is not pod]
        return pods

    async def _tell(self, found: Body, pods: list[Body]) -> None:
        ready = sum(object_builders.is_ready(pod) for pod in pods)
        counts = {"fullyLabeledReplicas": len(pods), "readyReplicas": ready, "availableReplicas": ready}
        status: Body = {"replicas": len(pods), **{name: count for name, count in counts.items() if count}}
        status["observedGeneration"] = found["metadata"]["generation"]
        await self.write_status(self.primary, found, status)
