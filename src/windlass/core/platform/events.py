"""Events of a run, emitted as they happen, for logs, metrics and the live view. No decision depends on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.log_lines import LogLine

if TYPE_CHECKING:
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Plan, Verb


class RunPhase(StrEnum):
    """The phases of a run, in order; an action skips the phases it does not need."""

    CONNECT = "connect"
    OBSERVE = "observe"
    PLAN = "plan"
    LOCK = "lock"
    RUN = "run"
    CLEAN = "clean"
    VERIFY = "verify"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    phase: RunPhase


@dataclass(frozen=True, slots=True)
class PlanReady:
    plan: Plan


@dataclass(frozen=True, slots=True)
class NodeStarted:
    """`attempt` counts from 1."""

    name: str
    verb: Verb
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class NodeWaiting:
    """What a started node is waiting for; emitted whenever that changes."""

    name: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class NodeFinished:
    outcome: Outcome


Event = PhaseStarted | PlanReady | NodeStarted | NodeWaiting | NodeFinished | LogLine
EmitEvent = Callable[[Event], None]
