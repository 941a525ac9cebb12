"""Puts actors to work in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.sandbox.actors.behaviours import Behaviours
from windlass.sandbox.actors.daemon_sets import DaemonSets
from windlass.sandbox.actors.deployments import Deployments
from windlass.sandbox.actors.jobs import Jobs
from windlass.sandbox.actors.pods import NODE, Pods
from windlass.sandbox.actors.replica_sets import ReplicaSets
from windlass.sandbox.actors.stateful_sets import StatefulSets
from windlass.sandbox.actors.volumes import CLASSES, DEFAULT, Volumes

if TYPE_CHECKING:
    from windlass.sandbox.actors.programs import Programs
    from windlass.sandbox.actors.reconciling import Actor
    from windlass.sandbox.sandboxes import Sandbox


@dataclass(frozen=True, slots=True)
class Workloads:
    """The actors by name, the table of how containers behave, and the programs that images really run."""

    behaviours: Behaviours
    programs: Programs
    actors: dict[str, Actor] = field(default_factory=dict)


async def install_workloads(sandbox: Sandbox) -> Workloads:
    """A node, a default storage class, and the controllers of Kubernetes itself."""
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
