"""The plan file that a user approves, and the comparison of an approved plan with the plan computed at execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.platform.documents import API_VERSION, to_json
from windlass.core.platform.planning.plans import Verb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windlass.core.platform.planning.plans import Plan

KIND = "Plan"
StepSummary = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Verb, names of the steps it follows, and revisions."""
StepSummaries = Mapping[str, StepSummary]


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """The parts of a plan that must not change between approval and execution: the steps and the unchanged nodes."""

    steps: StepSummaries
    unchanged: frozenset[str]
    root: str = ""
    """The source of the root Application, if the run has to write the root first; otherwise empty."""


def summarize_plan(plan: Plan, root: str) -> ApprovedPlan:
    steps = {step.name: (str(step.verb), step.after, step.revisions) for step in plan.steps}
    return build_approved_plan(steps, plan.unchanged, root)


def _without_awaited(steps: StepSummaries) -> StepSummaries:
    """Drop awaited nodes from the ordering: they may have become healthy since the plan was made."""
    awaited = {name for name, (verb, _, _) in steps.items() if verb == Verb.AWAIT}
    return {
        name: (verb, tuple(each for each in after if each not in awaited), revisions)
        for name, (verb, after, revisions) in steps.items()
    }


def plan_document(plan: Plan, header: Mapping[str, str], root: str) -> dict[str, Any]:
    """`header`: action, environment and scope."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **header,
        "root": root,
        "steps": [to_json(step) for step in plan.steps],
        "unchanged": list(plan.unchanged),
        "criticalPath": to_json(plan.critical_path),
        "makespan": plan.makespan.total_seconds(),
    }


def build_approved_plan(steps: StepSummaries, unchanged: Iterable[str], root: str) -> ApprovedPlan:
    return ApprovedPlan(_without_awaited(steps), frozenset(unchanged), root)


def differences(approved: ApprovedPlan, computed: ApprovedPlan) -> tuple[str, ...]:
    """How the computed plan differs from the approved one; empty if it does not."""
    return tuple(_differences(approved, computed))


def _differences(approved: ApprovedPlan, computed: ApprovedPlan) -> Iterator[str]:
    if approved.root and computed.root and approved.root != computed.root:
        yield f"the root would follow {computed.root}, not {approved.root}"
    elif approved.root != computed.root:
        yield "the root would now be written" if computed.root else "the root would not be written any more"
    for name in sorted(approved.steps.keys() | computed.steps.keys()):
        before, now = approved.steps.get(name), computed.steps.get(name)
        if before is None and now is not None:
            yield f"{name} would now be {past_participle(now[0])}"
        elif now is None and before is not None and before[0] != Verb.AWAIT:  # an awaited node may have become healthy
            yield f"{name} would not be {past_participle(before[0])} any more"
        elif before != now and before is not None and now is not None:
            yield f"{name} would be {past_participle(now[0])} otherwise: {_describe_change(before, now)}"
    if approved.unchanged | approved.steps.keys() != computed.unchanged | computed.steps.keys():
        yield "the platform has other applications"


def past_participle(verb: str) -> str:
    participles = {"sync": "synced", "await": "awaited", "recheck": "rechecked", "remove": "removed", "fail": "failed"}
    return participles.get(verb, verb)


def _describe_change(before: StepSummary, now: StepSummary) -> str:
    if before[0] != now[0]:
        return f"it was {past_participle(before[0])}"
    if before[1] != now[1]:
        return f"after {', '.join(now[1]) or 'nothing'}, not {', '.join(before[1]) or 'nothing'}"
    return f"at {', '.join(now[2]) or 'nothing known'}, not {', '.join(before[2]) or 'nothing known'}"
