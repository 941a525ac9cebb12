"""The outcome of each node of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import Failed, Reason

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from windlass.core.platform.gate_values import Open


class Result(StrEnum):
    UNCHANGED = "unchanged"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    """A dependency failed."""
    INTERRUPTED = "interrupted"
    """In progress when the run was stopped or timed out."""
    NOT_STARTED = "not started"


SUCCESSFUL_RESULTS = frozenset({Result.UNCHANGED, Result.SUCCEEDED})


@dataclass(frozen=True, slots=True)
class StepResult:
    """How the step of one node ended, and after how many attempts."""

    decision: Open | Failed
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    result: Result
    decision: Open | Failed | None = None
    causes: tuple[str, ...] = ()
    """Skipped: the failures that led to it. Failed: the parent that is the cause, if the node itself is not."""
    started: datetime | None = None
    finished: datetime | None = None
    attempts: int = 0

    @property
    def is_successful(self) -> bool:
        return self.result in SUCCESSFUL_RESULTS

    @property
    def is_failed(self) -> bool:
        return self.result is Result.FAILED

    @property
    def is_refused(self) -> bool:
        """The node was left alone, because its removal would destroy foreign objects."""
        return isinstance(self.decision, Failed) and self.decision.reason is Reason.FOREIGN_OBJECTS

    @property
    def is_blocked(self) -> bool:
        """Whether it was skipped because a dependency was unhealthy, and not because one had failed before."""
        return self.result is Result.SKIPPED and self.decision is not None

    @property
    def duration(self) -> timedelta | None:
        return self.finished - self.started if self.started and self.finished else None
