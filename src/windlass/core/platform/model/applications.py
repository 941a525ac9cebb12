"""The platform: its nodes, their stacks, timeouts and retries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from windlass.core.platform.model.graphs import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping


class Barrier(StrEnum):
    """When a node may start: as soon as its dependencies are healthy, or only after the whole previous wave."""

    NONE = "none"
    WAVE = "wave"


@dataclass(frozen=True, slots=True)
class NodeTiming:
    """Timeouts of one node, how long it must stay healthy, and how long it usually takes."""

    sync: timedelta = timedelta(minutes=5)
    health: timedelta = timedelta(minutes=5)
    stability: timedelta = timedelta(0)
    """How long the node must have been Healthy."""
    degraded_grace: timedelta = timedelta(seconds=30)
    """How long the node may be Degraded or have an error condition: rollouts pass through both."""
    expected: timedelta = timedelta(minutes=1)
    """Usual duration; used for estimates and to choose which node starts first, never to decide about health."""


@dataclass(frozen=True, slots=True)
class Retries:
    max_attempts: int = 3
    backoff: timedelta = timedelta(seconds=10)

    def pause_after(self, attempt: int) -> timedelta | None:
        """Pause after an attempt (the first is 1); `None` after the last. It doubles each time, without jitter."""
        return self.backoff * 2 ** (attempt - 1) if attempt < self.max_attempts else None


@dataclass(frozen=True, slots=True)
class ApplicationRef:
    """An Argo CD Application. Without a namespace it is in the namespace of Argo CD."""

    name: str
    namespace: str | None = None

    def key(self, argocd_namespace: str) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace or argocd_namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """Any object that is a node of its own, with its health as the gate."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {key} ({self.api_version})"


@dataclass(frozen=True, slots=True)
class ApplicationNode:
    """A node of the platform. Its name is unique in the platform; `target` is its object in the cluster."""

    name: str
    stack: str
    target: ApplicationRef | ResourceRef
    profile: str = "simple"
    critical: bool = False
    timing: NodeTiming = NodeTiming()
    retries: Retries = Retries()


@dataclass(frozen=True, slots=True)
class Stack:
    name: str
    applications: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Platform:
    """The platform. Only `managed_nodes` may be changed; the other nodes are at most checked as dependencies."""

    name: str
    stacks: tuple[Stack, ...]
    applications: Mapping[str, ApplicationNode]
    graph: Graph
    managed_nodes: frozenset[str]
    max_parallel: int = 10
    barrier: Barrier = Barrier.NONE

    @cached_property
    def expected_durations(self) -> Mapping[str, timedelta]:
        return {name: application.timing.expected for name, application in self.applications.items()}

    @cached_property
    def resource_nodes(self) -> frozenset[str]:
        return frozenset(name for name, node in self.applications.items() if isinstance(node.target, ResourceRef))


def stack_dependencies(stacks: tuple[Stack, ...]) -> Mapping[str, tuple[str, ...]]:
    """By stack: the nodes that all nodes of the stack depend on. An empty stack passes on its own dependencies.

    The dependencies between stacks must be acyclic and complete.
    """
    by_name = {stack.name: stack for stack in stacks}
    dependencies: dict[str, tuple[str, ...]] = {}
    for name in Graph.build({stack.name: stack.depends_on for stack in stacks}).order:
        nodes: set[str] = set()
        for dependency in by_name[name].depends_on:
            nodes.update(by_name[dependency].applications or dependencies[dependency])
        dependencies[name] = tuple(sorted(nodes))
    return dependencies
