"""What the cluster showed at one moment: all that a decision needs, and nothing that was asked later."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.health import Health

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
FIXED_VERSION = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")


class Sync(StrEnum):
    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"


class Phase(StrEnum):
    RUNNING = "Running"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERROR = "Error"


RUNNING = frozenset({Phase.RUNNING, Phase.TERMINATING})


@dataclass(frozen=True, slots=True)
class Source:
    """`fingerprint` stands for every field of it: two sources are the same if it is."""

    target_revision: str
    fingerprint: str
    is_chart: bool = False

    @property
    def is_moving(self) -> bool:
        """A branch, tag or range: it may mean something else tomorrow. A commit or a fixed chart version may not."""
        fixed = FIXED_VERSION if self.is_chart else COMMIT
        return not fixed.fullmatch(self.target_revision)


@dataclass(frozen=True, slots=True)
class Hook:
    """An object that ran before or after a sync. `is_internal`: its owner says it serves the application alone."""

    kind: str
    name: str
    type: str
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """The last operation Argo CD shows, finished or not. `revisions` are those of its result."""

    phase: Phase
    started_at: datetime
    finished_at: datetime | None = None
    revisions: tuple[str, ...] = ()
    run_id: str | None = None
    """Of a run of ours; None if somebody else, or Argo CD itself, started it."""
    started_by: str = ""
    is_partial: bool = False
    """Only some resources were synced: it proves nothing about the others."""
    message: str = ""
    hooks: tuple[Hook, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.phase not in RUNNING


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"

    @property
    def is_error(self) -> bool:
        return self.type.endswith("Error")


@dataclass(frozen=True, slots=True)
class ResourceKind:
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.kind}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """One Argo CD Application. It is there: an absent one has no state."""

    revisions: tuple[str, ...] = ()
    """What it was last compared with, one for each source."""
    sync: Sync = Sync.UNKNOWN
    health: Health = Health.UNKNOWN
    health_message: str = ""
    sources: tuple[Source, ...] = ()
    compared_to: tuple[Source, ...] = ()
    """The sources of that comparison; those of the specification may be newer."""
    operation_requested: bool = False
    operation: Operation | None = None
    reconciled_at: datetime | None = None
    """When that comparison began, in whole seconds."""
    refresh_requested: bool = False
    conditions: tuple[Condition, ...] = ()
    previous_revisions: tuple[str, ...] = ()
    """What was deployed before the last operation."""
    is_automated: bool = False
    is_deleting: bool = False
    is_remote: bool = False
    """It deploys to another cluster: Argo CD's word is all we have."""
    kinds: frozenset[ResourceKind] = frozenset()

    @property
    def is_abandoned(self) -> bool:
        """An operation that is shown as going on, and that nobody drives: its request was taken back in between."""
        return not self.operation_requested and self.operation is not None and not self.operation.is_over

    @property
    def errors(self) -> tuple[Condition, ...]:
        return tuple(condition for condition in self.conditions if condition.is_error)

    @property
    def is_moving(self) -> bool:
        return any(source.is_moving for source in self.sources)


@dataclass(frozen=True, slots=True)
class ResourceState:
    """The object behind a resource node, judged by its health check. It is there."""

    health: Health = Health.UNKNOWN
    health_message: str = ""
    is_deleting: bool = False


State = ApplicationState | ResourceState


@dataclass(frozen=True, slots=True)
class Parent:
    """The Application that defines another one: it creates it, and moves it when its definition changes."""

    namespace: str
    name: str
    revisions: tuple[str, ...] = ()
    """What it was last compared with: where the definition comes from."""
    is_automated: bool = False
    """It moves what it defines by itself."""
    is_followed: bool = True
    """What is there is as the definition says."""
    moved_by_us_to: tuple[str, ...] = ()
    """Where a run of ours last moved definitions to; empty if its last operation was somebody else's."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """By node. What is not in `states` is absent."""

    taken_at: datetime
    """By the server's clock."""
    states: Mapping[str, State] = field(default_factory=dict)
    parents: Mapping[str, Parent] = field(default_factory=dict)
    """Of nodes that another Application defines, there or not."""


def wanted_revisions(state: ApplicationState) -> tuple[str, ...]:
    """What it should be at when nobody says more: a fixed ref itself, of a moving one what Argo CD last found.

    Nothing if nobody knows: it was not compared yet, or a branch could not be resolved and stands for itself.
    """
    if not state.is_moving:
        return tuple(source.target_revision for source in state.sources)
    pairs = list(zip(state.sources, state.revisions, strict=False))
    if len(pairs) != len(state.sources) or any(s.is_moving and s.target_revision == found for s, found in pairs):
        return ()
    return tuple(found if source.is_moving else source.target_revision for source, found in pairs)
