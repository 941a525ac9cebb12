"""Installs the Kubernetes controllers in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.sandbox.controllers.behaviours import BehaviourTable
from windlass.sandbox.controllers.daemon_sets import DaemonSets
from windlass.sandbox.controllers.deployments import Deployments
from windlass.sandbox.controllers.jobs import Jobs
from windlass.sandbox.controllers.pods import NODE_NAME, Pods
from windlass.sandbox.controllers.replica_sets import ReplicaSets
from windlass.sandbox.controllers.stateful_sets import StatefulSets
from windlass.sandbox.controllers.volumes import DEFAULT_CLASS_ANNOTATION, STORAGE_CLASSES, Volumes

if TYPE_CHECKING:
    from windlass.sandbox.controllers.controller import SandboxController
    from windlass.sandbox.controllers.programs import Programs
    from windlass.sandbox.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Workloads:
    """The controllers by class name, the behaviours of containers, and the programs that images run."""

    behaviours: BehaviourTable
    programs: Programs
    controllers: dict[str, SandboxController] = field(default_factory=dict)


async def install_workloads(sandbox: Sandbox) -> Workloads:
    """Create a node and a default StorageClass, and start the controllers of Kubernetes."""
    client = sandbox.client()
    await client.create("nodes", {"metadata": {"name": NODE_NAME}})
    meta = {"name": "standard", "annotations": {DEFAULT_CLASS_ANNOTATION: "true"}}
    await client.create(STORAGE_CLASSES, {"metadata": meta, "provisioner": "sandbox.windlass.dev/volumes"})
    table = BehaviourTable()
    pods = Pods(sandbox, table)
    workloads = Workloads(table, pods.programs)
    classes: tuple[type[SandboxController], ...] = (Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, Volumes)
    controllers: list[SandboxController] = [kind(sandbox) for kind in classes] + [pods]
    workloads.controllers.update({type(controller).__name__: controller for controller in controllers})
    return workloads
