"""The state of the cluster at one moment: everything that a decision needs, without further requests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.health import Health
from windlass.printable_text import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

COMMIT_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
FIXED_VERSION = re.compile(r"v?\d+(\.\d+){0,2}([-+][0-9A-Za-z.+-]+)?")
"""What Argo CD takes as one chart version, not as a range; missing parts count as zero: `1.2` is a pin."""

QUOTED_START, QUOTED_END = 120, 280  # characters of a long error that are quoted: its end is where the cause is


class SyncStatus(StrEnum):
    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"


class OperationPhase(StrEnum):
    RUNNING = "Running"
    TERMINATING = "Terminating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ERROR = "Error"


TERMINATED = "Operation terminated"
RUNNING_PHASES = frozenset({OperationPhase.RUNNING, OperationPhase.TERMINATING})


@dataclass(frozen=True, slots=True)
class Source:
    """A source of an Application. `fingerprint` covers all of its fields: equal fingerprints mean equal sources."""

    target_revision: str
    fingerprint: str
    is_chart: bool = False

    @property
    def has_mutable_revision(self) -> bool:
        """Whether the revision is a branch, tag or range, which may change; a commit or exact chart version may not."""
        fixed = FIXED_VERSION if self.is_chart else COMMIT_HASH
        return not fixed.fullmatch(self.target_revision)


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook of a sync. `is_internal`: it is declared to serve only its own application."""

    kind: str
    name: str
    type: str
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """The last operation in the status, finished or not. `revisions` are those of its result."""

    phase: OperationPhase
    started_at: datetime
    finished_at: datetime | None = None
    revisions: tuple[str, ...] = ()
    run_id: str | None = None
    """The Windlass run that started it; `None` if another client or Argo CD itself did."""
    started_by: str = ""
    is_automated: bool = False
    """Argo CD itself started it: automated sync or self-heal."""
    is_partial: bool = False
    """Only some resources were synced; it says nothing about the others."""
    message: str = ""
    hooks: tuple[Hook, ...] = ()

    @property
    def is_finished(self) -> bool:
        return self.phase not in RUNNING_PHASES

    @property
    def was_terminated(self) -> bool:
        """Whether a client terminated it. Argo CD, which ends what takes too long, says so in its message."""
        return self.message.startswith(TERMINATED) and "timeout" not in self.message


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
    """The state of an Argo CD Application that exists."""

    uid: str = ""
    revisions: tuple[str, ...] = ()
    """The revisions of the last comparison, one for each source."""
    sync: SyncStatus = SyncStatus.UNKNOWN
    health: Health = Health.UNKNOWN
    health_message: str = ""
    health_since: datetime | None = None
    """When the health last changed; `None` if Argo CD does not record it."""
    sources: tuple[Source, ...] = ()
    compared_sources: tuple[Source, ...] = ()
    """The sources of the last comparison; the sources in the spec may be newer."""
    operation_requested: bool = False
    requesting_run_id: str | None = None
    """The Windlass run that requested the operation that waits or runs, if one did."""
    operation: Operation | None = None
    reconciled_at: datetime | None = None
    """When the last comparison started, in whole seconds."""
    written_at: datetime | None = None
    """When Argo CD last changed the status, by the API server's clock; all other times are by Argo CD's clock."""
    stamped_at: datetime | None = None
    """The latest time in the status, which is that of its last change if the two clocks agree."""
    refresh_requested: bool = False
    conditions: tuple[Condition, ...] = ()
    previous_revisions: tuple[str, ...] = ()
    """The revisions deployed before the last operation."""
    is_automated: bool = False
    is_deleting: bool = False
    is_remote: bool = False
    """It deploys to another cluster, so the health that Argo CD reports cannot be verified."""
    resource_kinds: frozenset[ResourceKind] = frozenset()
    objects_read: int = 0
    """Objects of the Application that were read directly and are part of its health."""
    missing_right: str = ""
    """The right without which an object could not be read; empty if none is missing."""

    @property
    def has_abandoned_operation(self) -> bool:
        """The status shows an unfinished operation that Argo CD no longer runs: its request was removed."""
        return not self.operation_requested and self.operation is not None and not self.operation.is_finished

    @property
    def errors(self) -> tuple[Condition, ...]:
        return tuple(condition for condition in self.conditions if condition.is_error)

    @property
    def has_mutable_revision(self) -> bool:
        return any(source.has_mutable_revision for source in self.sources)

    @property
    def comparison_problem(self) -> str:  # noqa: PLR0911 - ordered rules
        """Why Argo CD has no comparison with the wanted revisions; empty if it has one.

        Without one, the resources in the status are those of an earlier comparison.
        """
        if self.is_deleting:
            return "it is being deleted"
        if self.errors:
            return shortened(str(self.errors[0]), QUOTED_START, QUOTED_END)
        if self.sync is SyncStatus.UNKNOWN or not self.revisions:
            return "Argo CD has not compared it"
        if not self.sources:  # a hydrated source, of which only the result is known
            return ""
        if self.compared_sources != self.sources:
            return "Argo CD has not compared it with the sources it has now"
        if self.revisions != (wanted := desired_revisions(self)):
            return f"Argo CD compared it at {', '.join(self.revisions)}, desired is {', '.join(wanted) or 'unknown'}"
        return ""


@dataclass(frozen=True, slots=True)
class ResourceState:
    """The state of a resource node's object that exists; its health comes from a health check."""

    health: Health = Health.UNKNOWN
    health_message: str = ""
    is_deleting: bool = False
    missing_right: str = ""
    """The right without which it could not be read; empty if none is missing."""


NodeState = ApplicationState | ResourceState


@dataclass(frozen=True, slots=True)
class ParentApplication:
    """What defines an Application: an Application whose sync creates and updates it, or an ApplicationSet."""

    namespace: str
    name: str
    revisions: tuple[str, ...] = ()
    """The revisions of its last comparison: where the child's definition comes from."""
    sources: tuple[Source, ...] = ()
    """Its own sources. What it defines depends on their parameters too, not on the revisions alone."""
    is_automated: bool = False
    """It creates and updates its children without being asked."""
    is_child_in_sync: bool = True
    """The child in the cluster matches its definition."""
    last_run_revisions: tuple[str, ...] = ()
    """The revisions of its last operation if a Windlass run started that; otherwise empty."""
    kind: str = "Application"
    defines_child: bool = True
    """Its sources contain the child; false if it only still manages the child, which would be pruned."""
    problem: str = ""
    """Why it is not known what it defines at the wanted revision; empty if that is known."""
    read_error: str = ""
    """Why it cannot be read, so that it is not known whether it has a problem; empty if it can."""
    missing_right: str = ""
    """The right without which it cannot be read; empty if none is missing."""
    is_answering: bool = True
    """Argo CD answered the last request to compare it."""
    is_settled: bool = True
    """Its last operation was at the revisions of its last comparison: it will not update its children by itself."""
    node: str = ""
    """The node of the platform that it is; empty if it is none."""
    parent: ParentApplication | None = None
    """What defines it; `None` if nothing does, or a cycle leads back here."""

    def __str__(self) -> str:
        key = f"{self.namespace}/{self.name}"
        return key if self.kind == "Application" else f"{self.kind} {key}"

    @property
    def is_outdated(self) -> bool:
        """Its own definition has changed, so what it defines is known only after it was updated."""
        return self.parent is not None and self.parent.updates_child

    @property
    def updates_child(self) -> bool:
        """The child is not as it defines it, and a sync changes that, or it will by itself."""
        return not self.is_child_in_sync and self.defines_child and not (self.is_automated and self.is_settled)

    @property
    def lineage(self) -> tuple[ParentApplication, ...]:
        """It and what is above it, the topmost first."""
        return (*(self.parent.lineage if self.parent else ()), self)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """States by node. A node that is not in `states` does not exist."""

    taken_at: datetime
    """The time of the API server."""
    states: Mapping[str, NodeState] = field(default_factory=dict)
    parents: Mapping[str, ParentApplication] = field(default_factory=dict)
    """What defines each node, whether the node exists or not; nodes that nothing defines have no entry."""
    platform_parents: tuple[ParentApplication, ...] = ()
    """Everything that defines a node, directly or not, and the root."""
    unanswered: frozenset[str] = frozenset()
    """Nodes that Argo CD was asked to compare again, and did not."""
    has_all_definitions: bool = False
    """No definition is out of date or still to be written: a node without parent gets none."""
    unknown_applications: tuple[str, ...] = ()
    """Applications that a parent of the platform defines and the platform does not contain."""


def desired_revisions(state: ApplicationState) -> tuple[str, ...]:
    """The revisions an Application should have unless the run resolved others.

    A fixed revision is used as it is; for a branch, tag or range, the revision that Argo CD last resolved. Empty if
    unknown: the Application was not compared yet, or Argo CD could not resolve a branch and repeats its name.
    """
    if not state.has_mutable_revision:
        return tuple(source.target_revision for source in state.sources)
    pairs = list(zip(state.sources, state.revisions, strict=False))
    if len(pairs) != len(state.sources) or any(
        s.has_mutable_revision and s.target_revision == found for s, found in pairs
    ):
        return ()
    return tuple(found if source.has_mutable_revision else source.target_revision for source, found in pairs)
