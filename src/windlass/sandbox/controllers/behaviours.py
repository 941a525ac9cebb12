"""Simulated container behaviour, chosen by image or annotation, and the container state it gives. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.sandbox.apiserver.wire.api_status import Body

ANNOTATION_PREFIX = "sandbox.windlass.dev/"
DURATION_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
PULL_FAILURES = frozenset({"ErrImagePull", "ImagePullBackOff"})
CRASH_REASONS = frozenset({"CrashLoopBackOff", "OOMKilled", "Error"})
UNSCHEDULABLE = "Unschedulable"
INITIAL_BACKOFF, MAX_BACKOFF = 10.0, 300.0  # seconds before a container that ended is restarted, doubling
TERMINATED_FOR = 1.0  # seconds for which a container stays `terminated` before its next state


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How a simulated container starts, runs and ends. Times are seconds; `inf` means never.

    A pod annotation overrides a field by its name, so the field names are part of the user interface.
    """

    starts_after: float = 0.3
    """From scheduled to running."""
    ready_after: float = 0.5
    """From running to ready."""
    ends_after: float | None = None
    """From running to terminated. `None`: after one second if the container fails or its pod's restart policy is not
    `Always`, otherwise never."""
    exit_code: int = 0
    fails_with: str = ""
    """`ImagePullBackOff`, `CrashLoopBackOff`, `OOMKilled`, `Unschedulable`, or another reason to stay `waiting`."""
    flaps_every: float = inf
    """Once the container has been ready: seconds between changes from ready to unready and back."""
    stops_after: float = 0.1
    """From the deletion of the pod to its end, at most its grace period."""
    log: str = ""

    @property
    def effective_exit_code(self) -> int:
        return self.exit_code or {"OOMKilled": 137}.get(self.fails_with, int(self.fails_with in CRASH_REASONS))

    @property
    def termination_reason(self) -> str:
        if self.fails_with == "OOMKilled":
            return "OOMKilled"
        return "Error" if self.effective_exit_code else "Completed"

    def run_duration(self, policy: str) -> float:
        if self.ends_after is not None:
            return self.ends_after
        is_finite = policy != "Always" or self.exit_code or self.fails_with in CRASH_REASONS
        return 1.0 if is_finite else inf


@dataclass(slots=True)
class BehaviourTable:
    """Behaviours by image pattern: the first match applies; annotations of the pod override single fields.

    A pattern matches an image, or an image with command and arguments: `busybox:*`, `busybox:1 *exit 3`. The
    annotation `sandbox.windlass.dev/ready-after: 3s` sets the field `ready_after` of `Behaviour`.
    """

    default: Behaviour = field(default_factory=Behaviour)
    by_image: dict[str, Behaviour] = field(default_factory=dict)
    outages: set[str] = field(default_factory=set)
    """Image patterns of containers that are not ready for now, whatever their behaviour; enqueue their pods after a
    change."""

    def lookup(self, pod: Body, container: Body) -> Behaviour:
        image = container["image"]
        command_line = " ".join([image, *container.get("command", ()), *container.get("args", ())])
        matches = (b for p, b in self.by_image.items() if fnmatchcase(image, p) or fnmatchcase(command_line, p))
        behaviour = next(matches, self.default)
        overrides = _annotation_overrides(pod["metadata"].get("annotations") or {})
        if any(fnmatchcase(image, pattern) for pattern in self.outages):
            overrides["ready_after"] = inf
        return replace(behaviour, **overrides)


def _annotation_overrides(annotations: Mapping[str, str]) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    for name, text in annotations.items():
        field_name = name.removeprefix(ANNOTATION_PREFIX).replace("-", "_")
        if name.startswith(ANNOTATION_PREFIX) and field_name in Behaviour.__slots__:
            overrides[field_name] = (
                text
                if field_name in {"fails_with", "log"}
                else parse_duration(text)
                if field_name != "exit_code"
                else _parse_exit_code(text)
            )
    return overrides


def _parse_exit_code(text: str) -> int:
    return int(text) if text.isdecimal() else 1


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `3s`, `500ms` or `1h30m`; `never` is `inf`."""
    if text == "never":
        return inf
    return sum(float(number) * DURATION_UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", text))


@dataclass(frozen=True, slots=True)
class ContainerState:
    """State of a container; all times are ages of its pod in seconds."""

    phase: str
    """`waiting`, `running` or `terminated`."""
    since: float
    until: float
    reason: str = ""
    ready: bool = False
    restarts: int = 0
    run_started: float = 0.0
    """When the current or last run began."""
    last_run: tuple[float, float, int] | None = None
    """Start, end and exit code of the previous run."""


def container_state(behaviour: Behaviour, policy: str, age: float) -> ContainerState:
    """State of a container with this behaviour at an age of its pod, under a restart policy."""
    started = behaviour.starts_after
    if age < started:
        return ContainerState("waiting", 0.0, started, "ContainerCreating")
    waiting_reason = behaviour.fails_with if behaviour.fails_with not in CRASH_REASONS else ""
    if waiting_reason in PULL_FAILURES:
        backoff_from = started + INITIAL_BACKOFF
        until, reason = (backoff_from, "ErrImagePull") if age < backoff_from else (inf, waiting_reason)
        return ContainerState("waiting", started, until, reason)
    if waiting_reason:
        return ContainerState("waiting", started, inf, waiting_reason)
    will_restart = policy == "Always" or (policy == "OnFailure" and behaviour.effective_exit_code != 0)
    restarts, backoff, duration = 0, INITIAL_BACKOFF, behaviour.run_duration(policy)
    last_run: tuple[float, float, int] | None = None
    while True:
        ended, runs = started + duration, (False, restarts, started, last_run)
        if age < ended:
            state = ContainerState("running", started, ended, "", *runs)
            return _running_state(behaviour, started, ended, age, state)
        if not will_restart or age < ended + TERMINATED_FOR:
            until = ended + TERMINATED_FOR if will_restart else inf
            return ContainerState("terminated", ended, until, behaviour.termination_reason, *runs)
        last_run = (started, ended, behaviour.effective_exit_code)
        wait = backoff if restarts else 0.0
        if age < ended + TERMINATED_FOR + wait:
            since, runs = ended + TERMINATED_FOR, (False, restarts, started, last_run)
            return ContainerState("waiting", since, since + wait, "CrashLoopBackOff", *runs)
        backoff = min(MAX_BACKOFF, backoff * 2) if restarts else backoff
        restarts, started = restarts + 1, ended + TERMINATED_FOR + wait


def _running_state(
    behaviour: Behaviour, started: float, ended: float, age: float, state: ContainerState
) -> ContainerState:
    ready_from = started + behaviour.ready_after
    if age < ready_from:
        return replace(state, until=min(ended, ready_from))
    turns, rest = (0.0, inf) if behaviour.flaps_every == inf else divmod(age - ready_from, behaviour.flaps_every)
    until = inf if rest == inf else ready_from + (turns + 1) * behaviour.flaps_every
    return replace(state, ready=turns % 2 == 0, until=min(ended, until))
