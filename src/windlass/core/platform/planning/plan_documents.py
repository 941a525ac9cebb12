"""The plan file that a user approves, and the comparison of an approved plan with the plan computed at execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.platform.documents import API_VERSION, plain
from windlass.core.platform.planning.plans import Verb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windlass.core.platform.planning.plans import Plan

KIND = "Plan"
Doing = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Verb, names of the steps it follows, and revisions."""
Steps = Mapping[str, Doing]


@dataclass(frozen=True, slots=True)
class Approved:
    """The parts of a plan that must not change between approval and execution: the steps and the unchanged nodes."""

    steps: Steps
    unchanged: frozenset[str]
    root: str = ""
    """The source of the root Application, if the run has to write the root first; otherwise empty."""


def essence(plan: Plan, root: str) -> Approved:
    steps = {step.name: (str(step.verb), step.after, step.revisions) for step in plan.steps}
    return approved(steps, plan.unchanged, root)


def _changes_first(steps: Steps) -> Steps:
    """Drop awaited nodes from the ordering: they may have become healthy since the plan was made."""
    awaited = {name for name, (verb, _, _) in steps.items() if verb == Verb.AWAIT}
    return {
        name: (verb, tuple(each for each in after if each not in awaited), revisions)
        for name, (verb, after, revisions) in steps.items()
    }


def document(plan: Plan, about: Mapping[str, str], root: str) -> dict[str, Any]:
    """`header`: action, environment and scope."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **about,
        "root": root,
        "steps": [plain(step) for step in plan.steps],
        "unchanged": list(plan.unchanged),
        "criticalPath": plain(plan.critical_path),
        "makespan": plan.makespan.total_seconds(),
    }


def approved(steps: Steps, unchanged: Iterable[str], root: str) -> Approved:
    return Approved(_changes_first(steps), frozenset(unchanged), root)


def differences(approved: Approved, found: Approved) -> tuple[str, ...]:
    """How the computed plan differs from the approved one; empty if it does not."""
    return tuple(_differences(approved, found))


def _differences(approved: Approved, found: Approved) -> Iterator[str]:
    if approved.root and found.root and approved.root != found.root:
        yield f"the root would follow {found.root}, not {approved.root}"
    elif approved.root != found.root:
        yield "the root would now be written" if found.root else "the root would not be written any more"
    for name in sorted(approved.steps.keys() | found.steps.keys()):
        before, now = approved.steps.get(name), found.steps.get(name)
        if before is None and now is not None:
            yield f"{name} would now be {done(now[0])}"
        elif now is None and before is not None and before[0] != Verb.AWAIT:  # an awaited node may have become healthy
            yield f"{name} would not be {done(before[0])} any more"
        elif before != now and before is not None and now is not None:
            yield f"{name} would be {done(now[0])} otherwise: {_change(before, now)}"
    if approved.unchanged | approved.steps.keys() != found.unchanged | found.steps.keys():
        yield "the platform has other applications"


def done(verb: str) -> str:
    return {"sync": "synced", "await": "awaited", "remove": "removed"}.get(verb, verb)


def _change(before: Doing, now: Doing) -> str:
    if before[0] != now[0]:
        return f"it was {done(before[0])}"
    if before[1] != now[1]:
        return f"after {', '.join(now[1]) or 'nothing'}, not {', '.join(before[1]) or 'nothing'}"
    return f"at {', '.join(now[2]) or 'nothing known'}, not {', '.join(before[2]) or 'nothing known'}"
