"""What happens in a run, told as it happens: for logs, metrics and the live view. Nothing decides by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Plan, Verb


class RunPhase(StrEnum):
    """The parts of an action, in their order; an action leaves out what it does not need."""

    CONNECT = "connect"
    OBSERVE = "observe"
    PLAN = "plan"
    LOCK = "lock"
    RUN = "run"
    CLEAN = "clean"
    VERIFY = "verify"
    REPORT = "report"


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PhaseBegan:
    phase: RunPhase


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan


@dataclass(frozen=True, slots=True)
class NodeStarted:
    """`attempt` counts from 1."""

    name: str
    verb: Verb
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class NodeWaits:
    """What a node that was started waits for; told whenever that changes."""

    name: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class NodeEnded:
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Noticed:
    """Anything else worth a line; `name` is the node it is about, if it is about one."""

    level: Level
    message: str
    name: str = ""


Event = PhaseBegan | Planned | NodeStarted | NodeWaits | NodeEnded | Noticed
Tell = Callable[[Event], None]
