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

PREFIX = "sandbox.windlass.dev/"
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
PULLS = frozenset({"ErrImagePull", "ImagePullBackOff"})
CRASHES = frozenset({"CrashLoopBackOff", "OOMKilled", "Error"})
UNSCHEDULABLE = "Unschedulable"
FIRST_BACKOFF, LAST_BACKOFF = 10.0, 300.0  # seconds before a container that ended is restarted, doubling
SHOWN = 1.0  # seconds for which a container stays `terminated` before its next state


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
    def code(self) -> int:
        return self.exit_code or {"OOMKilled": 137}.get(self.fails_with, int(self.fails_with in CRASHES))

    @property
    def end_reason(self) -> str:
        if self.fails_with == "OOMKilled":
            return "OOMKilled"
        return "Error" if self.code else "Completed"

    def runs(self, policy: str) -> float:
        if self.ends_after is not None:
            return self.ends_after
        ends = policy != "Always" or self.exit_code or self.fails_with in CRASHES
        return 1.0 if ends else inf


@dataclass(slots=True)
class Behaviours:
    """Behaviours by image pattern: the first match applies; annotations of the pod override single fields.

    A pattern matches an image, or an image with command and arguments: `busybox:*`, `busybox:1 *exit 3`. The
    annotation `sandbox.windlass.dev/ready-after: 3s` sets the field `ready_after` of `Behaviour`.
    """

    default: Behaviour = field(default_factory=Behaviour)
    by_image: dict[str, Behaviour] = field(default_factory=dict)

    def of(self, pod: Body, container: Body) -> Behaviour:
        image = container["image"]
        words = " ".join([image, *container.get("command", ()), *container.get("args", ())])
        fits = (b for p, b in self.by_image.items() if fnmatchcase(image, p) or fnmatchcase(words, p))
        found = next(fits, self.default)
        return replace(found, **_annotated(pod["metadata"].get("annotations") or {}))


def _annotated(annotations: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in annotations.items():
        what = name.removeprefix(PREFIX).replace("-", "_")
        if name.startswith(PREFIX) and what in Behaviour.__slots__:
            found[what] = (
                text if what in {"fails_with", "log"} else seconds(text) if what != "exit_code" else _code(text)
            )
    return found


def _code(text: str) -> int:
    return int(text) if text.isdecimal() else 1


def seconds(text: str) -> float:
    """Seconds of a duration such as `3s`, `500ms` or `1h30m`; `never` is `inf`."""
    if text == "never":
        return inf
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", text))


@dataclass(frozen=True, slots=True)
class State:
    """State of a container; all times are ages of its pod in seconds."""

    word: str
    """`waiting`, `running` or `terminated`."""
    since: float
    until: float
    reason: str = ""
    ready: bool = False
    restarts: int = 0
    ran_from: float = 0.0
    """When the current or last run began."""
    last: tuple[float, float, int] | None = None
    """Start, end and exit code of the previous run."""


def state_at(behaviour: Behaviour, policy: str, age: float) -> State:
    """State of a container with this behaviour at an age of its pod, under a restart policy."""
    begun = behaviour.starts_after
    if age < begun:
        return State("waiting", 0.0, begun, "ContainerCreating")
    waits = behaviour.fails_with if behaviour.fails_with not in CRASHES else ""
    if waits in PULLS:
        known = begun + FIRST_BACKOFF
        return State("waiting", begun, known if age < known else inf, "ErrImagePull" if age < known else waits)
    if waits:
        return State("waiting", begun, inf, waits)
    again = policy == "Always" or (policy == "OnFailure" and behaviour.code != 0)
    restarts, backoff, runs = 0, FIRST_BACKOFF, behaviour.runs(policy)
    last: tuple[float, float, int] | None = None
    while True:
        ended = begun + runs
        if age < ended:
            return _running(
                behaviour, begun, ended, age, State("running", begun, ended, "", False, restarts, begun, last)
            )
        if not again or age < ended + SHOWN:
            until = ended + SHOWN if again else inf
            return State("terminated", ended, until, behaviour.end_reason, False, restarts, begun, last)
        last = (begun, ended, behaviour.code)
        wait = backoff if restarts else 0.0
        if age < ended + SHOWN + wait:
            return State(
                "waiting", ended + SHOWN, ended + SHOWN + wait, "CrashLoopBackOff", False, restarts, begun, last
            )
        backoff = min(LAST_BACKOFF, backoff * 2) if restarts else backoff
        restarts, begun = restarts + 1, ended + SHOWN + wait


def _running(behaviour: Behaviour, begun: float, ended: float, age: float, state: State) -> State:
    ready_from = begun + behaviour.ready_after
    if age < ready_from:
        return replace(state, until=min(ended, ready_from))
    turns, rest = (0.0, inf) if behaviour.flaps_every == inf else divmod(age - ready_from, behaviour.flaps_every)
    until = inf if rest == inf else ready_from + (turns + 1) * behaviour.flaps_every
    return replace(state, ready=turns % 2 == 0, until=min(ended, until))
