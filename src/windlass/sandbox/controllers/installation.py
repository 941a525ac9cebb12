"""Installs the Kubernetes controllers in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.sandbox.controllers.behaviours import Behaviours
from windlass.sandbox.controllers.daemon_sets import DaemonSets
from windlass.sandbox.controllers.deployments import Deployments
from windlass.sandbox.controllers.jobs import Jobs
from windlass.sandbox.controllers.pods import NODE, Pods
from windlass.sandbox.controllers.replica_sets import ReplicaSets
from windlass.sandbox.controllers.stateful_sets import StatefulSets
from windlass.sandbox.controllers.volumes import CLASSES, DEFAULT, Volumes

if TYPE_CHECKING:
    from windlass.sandbox.controllers.controller import Actor
    from windlass.sandbox.controllers.programs import Programs
    from windlass.sandbox.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Workloads:
    """The controllers by class name, the behaviours of containers, and the programs that images run."""

    behaviours: Behaviours
    programs: Programs
    actors: dict[str, Actor] = field(default_factory=dict)


async def install_workloads(sandbox: Sandbox) -> Workloads:
    """Create a node and a default StorageClass, and start the controllers of Kubernetes."""
    calls = sandbox.caller()
    await calls.create("nodes", {"metadata": {"name": NODE}})
    meta = {"name": "standard", "annotations": {DEFAULT: "true"}}
    await calls.create(CLASSES, {"metadata": meta, "provisioner": "sandbox.windlass.dev/volumes"})
    table = Behaviours()
    pods = Pods(sandbox, table)
    found = Workloads(table, pods.programs)
    kinds: tuple[type[Actor], ...] = (Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, Volumes)
    actors: list[Actor] = [kind(sandbox) for kind in kinds] + [pods]
    found.actors.update({type(actor).__name__: actor for actor in actors})
    return found
