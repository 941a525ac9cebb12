"""ReplicaSet controller: creates or deletes pods to match `replicas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import SandboxController

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import StoreKey


class ReplicaSets(SandboxController):
    user = controller_user("replicaset-controller")
    primary = "replicasets.apps"
    watched: ClassVar[tuple[str, ...]] = ("pods",)

    async def reconcile(self, key: StoreKey, replica_set: Body) -> None:
        pods = [pod for pod in self.list_owned("pods", replica_set) if object_builders.is_active(pod)]
        if not replica_set["metadata"].get("deletionTimestamp"):
            pods = await self._scale_pods(replica_set, pods)
        await self._update_status(replica_set, pods)

    async def _scale_pods(self, replica_set: Body, pods: list[Body]) -> list[Body]:
        desired = replica_set["spec"].get("replicas", 1)
        name = replica_set["metadata"]["name"]
        for _ in range(desired - len(pods)):
            body = object_builders.pod_from_template(
                replica_set["spec"]["template"], replica_set, {"generateName": f"{name}-"}
            )
            pods = [*pods, await self.create("pods", body, replica_set["metadata"]["namespace"])]
        for pod in sorted(pods, key=object_builders.is_ready)[: max(0, len(pods) - desired)]:
            await self.delete("pods", pod)
            pods = [other for other in pods if other is not pod]
        return pods

    async def _update_status(self, replica_set: Body, pods: list[Body]) -> None:
        ready = sum(object_builders.is_ready(pod) for pod in pods)
        counts = {"fullyLabeledReplicas": len(pods), "readyReplicas": ready, "availableReplicas": ready}
        status: Body = {"replicas": len(pods), **{name: count for name, count in counts.items() if count}}
        status["observedGeneration"] = replica_set["metadata"]["generation"]
        await self.write_status(self.primary, replica_set, status)
