"""How containers behave here: by image, by annotation; and what that means at any age of a pod. Pure."""

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
FIRST_BACKOFF, LAST_BACKOFF = 10.0, 300.0  # seconds before a container that ended is started again, doubling
SHOWN = 1.0  # seconds for which an end is seen before what follows from it


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Times are seconds; `inf` is never."""

    starts_after: float = 0.3
    """From a node to running."""
    ready_after: float = 0.5
    """From running to ready."""
    ends_after: float | None = None
    """From running to its end. None: never where pods always restart, after a second where they do not."""
    exit_code: int = 0
    fails_with: str = ""
    """`ImagePullBackOff`, `CrashLoopBackOff`, `OOMKilled`, `Unschedulable`, or another reason to wait for ever."""
    flaps_every: float = inf
    """Once ready, seconds for which it is in turn ready and not."""
    stops_after: float = 0.1
    """From being asked to stop to its end; not longer than the grace."""
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
    """The table: the first pattern that fits counts; annotations of the pod have the last word.

    A pattern is of an image, or of an image with command and arguments: `busybox:*`, `busybox:1 *exit 3`. Of an
    annotation `sandbox.windlass.dev/ready-after: 3s` the name is that of a field of `Behaviour`.
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
    """`3s`, `500ms`, `1h30m`, `never`."""
    if text == "never":
        return inf
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", text))


@dataclass(frozen=True, slots=True)
class State:
    """What a container is doing, since which age of the pod, until which."""

    word: str
    """`waiting`, `running` or `terminated`."""
    since: float
    until: float
    reason: str = ""
    ready: bool = False
    restarts: int = 0
    ran_from: float = 0.0
    """Of one that ended: when that run began."""
    last: tuple[float, float, int] | None = None
    """The run before this one: its beginning, end and exit code."""


def state_at(behaviour: Behaviour, policy: str, age: float) -> State:
    """What a container with this behaviour does at an age, under a restart policy."""
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
