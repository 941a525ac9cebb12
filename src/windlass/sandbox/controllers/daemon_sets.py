"""DaemonSet controller: one pod per node, updated one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import SandboxController

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.sandbox.apiserver.store import StoreChange
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import StoreKey

REVISION_HASH_LABEL = "controller-revision-hash"


class DaemonSets(SandboxController):
    user = controller_user("daemon-set-controller")
    primary = "daemonsets.apps"
    watched: ClassVar[tuple[str, ...]] = ("pods", "nodes", object_builders.CONTROLLER_REVISIONS)

    def affected_keys(self, change: StoreChange) -> Iterable[StoreKey]:
        if change.new.kind_id == "nodes":
            metas = (item["metadata"] for item in self.list_objects(self.primary))
            return [(self.primary, meta["namespace"], meta["name"]) for meta in metas]
        return super().affected_keys(change)

    async def reconcile(self, key: StoreKey, daemon_set: Body) -> None:
        if daemon_set["metadata"].get("deletionTimestamp"):
            return
        meta, spec = daemon_set["metadata"], daemon_set["spec"]
        revision_hash = object_builders.short_hash(spec["template"])
        await object_builders.ensure_revision(self, daemon_set, f"{meta['name']}-{revision_hash}")
        nodes = [node["metadata"]["name"] for node in self.list_objects("nodes")]
        pods = {pod["spec"].get("nodeName"): pod for pod in self.list_owned("pods", daemon_set)}
        for node in nodes:
            if node not in pods:
                body = object_builders.pod_from_template(
                    spec["template"],
                    daemon_set,
                    {"generateName": f"{meta['name']}-", "labels": {REVISION_HASH_LABEL: revision_hash}},
                )
                body["spec"] = {**body["spec"], "nodeName": node}
                pods[node] = await self.create("pods", body, meta["namespace"])
        outdated = [pod for pod in pods.values() if pod["metadata"]["labels"].get(REVISION_HASH_LABEL) != revision_hash]
        can_roll = spec.get("updateStrategy", {}).get("type") != "OnDelete" and all(
            map(object_builders.is_active, pods.values())
        )
        if outdated and can_roll and all(object_builders.is_ready(pod) for pod in pods.values() if pod not in outdated):
            await self.delete("pods", outdated[0])
        await self._update_status(daemon_set, [pods[node] for node in nodes], revision_hash)

    async def _update_status(self, daemon_set: Body, pods: list[Body], revision_hash: str) -> None:
        ready = sum(object_builders.is_ready(pod) for pod in pods)
        updated = sum(pod["metadata"]["labels"].get(REVISION_HASH_LABEL) == revision_hash for pod in pods)
        status: Body = {"currentNumberScheduled": len(pods), "desiredNumberScheduled": len(pods), "numberReady": ready}
        status |= {"numberMisscheduled": 0, "observedGeneration": daemon_set["metadata"]["generation"]}
        counts = {"updatedNumberScheduled": updated, "numberAvailable": ready, "numberUnavailable": len(pods) - ready}
        status |= {name: count for name, count in counts.items() if count}
        await self.write_status(self.primary, daemon_set, status)
