"""What a platform consists of: applications and other nodes, their stacks, and how patient to be with each."""

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
    """When a node may start: as soon as what it waits for is healthy, or only after the whole wave before."""

    NONE = "none"
    WAVE = "wave"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one node may take, and how long it must hold."""

    sync: timedelta = timedelta(minutes=5)
    health: timedelta = timedelta(minutes=5)
    stability: timedelta = timedelta(0)
    """Healthy must have lasted this long."""
    degraded_grace: timedelta = timedelta(seconds=30)
    """Degraded, or an error condition, may last this long: roll-outs pass through both."""
    expected: timedelta = timedelta(minutes=1)
    """What it usually takes; for estimates and for who starts first, never for a decision about health."""


@dataclass(frozen=True, slots=True)
class Retries:
    max_attempts: int = 3
    backoff: timedelta = timedelta(seconds=10)

    def pause_after(self, attempt: int) -> timedelta | None:
        """Before the attempt that follows this one, counted from 1; None if it was the last. Doubles, never random."""
        return self.backoff * 2 ** (attempt - 1) if attempt < self.max_attempts else None


@dataclass(frozen=True, slots=True)
class ApplicationRef:
    """An Argo CD Application. Without a namespace it is where Argo CD is."""

    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """Any object whose health is a gate of its own."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place} ({self.api_version})"


@dataclass(frozen=True, slots=True)
class Application:
    """One node. Its name is unique in the platform; what it stands for in the cluster is `target`."""

    name: str
    stack: str
    target: ApplicationRef | ResourceRef
    profile: str = "simple"
    critical: bool = False
    patience: Patience = Patience()
    retries: Retries = Retries()


@dataclass(frozen=True, slots=True)
class Stack:
    name: str
    applications: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Platform:
    """`subset` is what this platform may touch: the rest is known, checked when needed, and never changed."""

    name: str
    stacks: tuple[Stack, ...]
    applications: Mapping[str, Application]
    graph: Graph
    subset: frozenset[str]
    max_parallel: int = 10
    barrier: Barrier = Barrier.NONE

    @cached_property
    def expected(self) -> Mapping[str, timedelta]:
        return {name: application.patience.expected for name, application in self.applications.items()}

    @cached_property
    def resource_nodes(self) -> frozenset[str]:
        return frozenset(name for name, node in self.applications.items() if isinstance(node.target, ResourceRef))


def stack_needs(stacks: tuple[Stack, ...]) -> Mapping[str, tuple[str, ...]]:
    """By stack: the applications all of its own wait for. An empty stack hands on what it waits for itself.

    The stacks' own dependencies are known to be a graph.
    """
    by_name = {stack.name: stack for stack in stacks}
    needed: dict[str, tuple[str, ...]] = {}
    for name in Graph.build({stack.name: stack.depends_on for stack in stacks}).order:
        found: set[str] = set()
        for dependency in by_name[name].depends_on:
            found.update(by_name[dependency].applications or needed[dependency])
        needed[name] = tuple(sorted(found))
    return needed
