"""The approval of a plan: what must not change until it is executed, and whether a plan or a step still fits it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import Failed, Reason, abbreviate
from windlass.core.platform.model.snapshots import ApplicationState, Source, desired_revisions
from windlass.core.platform.planning.plans import Verb

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from windlass.core.platform.model.snapshots import ParentApplication, Snapshot
    from windlass.core.platform.planning.plans import Plan

DIGEST_LENGTH = 16  # hexadecimal digits: enough to notice every change that is not an attack on SHA-256


@dataclass(frozen=True, slots=True)
class StepSummary:
    """The parts of a step that are approved."""

    verb: str
    after: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()
    """Of the node; if its parent creates or changes its definition, of the parent."""
    definition: str = ""
    """Digest of the sources that the Application had when the plan was made; empty if it did not exist."""
    parent: str = ""
    """Digest of the sources of the parent from which its definition is synced; empty if that is not necessary."""


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """The parts of a plan that must not change between approval and execution."""

    steps: Mapping[str, StepSummary]
    unchanged: frozenset[str]
    root: str = ""
    """The source of the root Application, if the run has to write the root first; otherwise empty."""
    root_revision: str = ""
    """The commit of that root; empty if it follows a branch or tag."""
    parents: tuple[str, ...] = ()
    """Parents that a teardown deletes before the nodes."""
    cluster: str = ""
    """The cluster for which the plan was made."""
    delete_foreign: tuple[str, ...] = ()
    """Nodes that a teardown removes although foreign objects are destroyed with them."""


def summarize_plan(plan: Plan, snapshot: Snapshot) -> ApprovedPlan:
    """The plan without root, parents and cluster."""
    steps = {
        step.name: StepSummary(
            str(step.verb), step.after, step.revisions, _definition(snapshot, step.name), _parent(snapshot, step.name)
        )
        for step in plan.steps
    }
    return ApprovedPlan(steps, frozenset(plan.unchanged))


def _parent(snapshot: Snapshot, name: str) -> str:
    parent = snapshot.parents.get(name)
    return definition_digest(parent.sources) if parent and parent.updates_child else ""


def _definition(snapshot: Snapshot, name: str) -> str:
    state = snapshot.states.get(name)
    return definition_digest(state.sources) if isinstance(state, ApplicationState) else ""


def definition_digest(sources: tuple[Source, ...]) -> str:
    content = "\n".join(source.fingerprint for source in sources)
    return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_LENGTH]


def approval_problems(plan: ApprovedPlan) -> tuple[str, ...]:
    """Why this plan cannot be approved: it does not say at which revision it would deploy something."""
    if plan.root and not plan.root_revision:
        return (f"the root Application changes, and the commit that it will resolve to is not known: {plan.root}",)
    return tuple(
        f"which revision {name} would get is not known"
        for name, step in sorted(plan.steps.items())
        if step.verb == Verb.SYNC and not step.revisions
    )


def differences(approved: ApprovedPlan, computed: ApprovedPlan) -> tuple[str, ...]:
    """How the computed plan differs from the approved one; empty if it does not."""
    return tuple(_differences(_comparable(approved), _comparable(computed)))


def _comparable(plan: ApprovedPlan) -> ApprovedPlan:
    """The plan without the order after awaited nodes: they may be healthy by now. Rechecked nodes are unchanged."""
    passive = {name for name, step in plan.steps.items() if step.verb in {Verb.AWAIT, Verb.RECHECK}}
    steps = {
        name: replace(step, after=tuple(each for each in step.after if each not in passive))
        for name, step in plan.steps.items()
        if step.verb != Verb.RECHECK
    }
    return replace(plan, steps=steps, unchanged=plan.unchanged | (plan.steps.keys() - steps.keys()))


def _differences(approved: ApprovedPlan, computed: ApprovedPlan) -> Iterator[str]:
    if approved.root and computed.root and approved.root != computed.root:
        yield f"the root would follow {computed.root}, not {approved.root}"
    elif approved.root != computed.root:
        yield "the root would now be written" if computed.root else "the root would not be written any more"
    yield from (f"{name} would now be deleted first" for name in computed.parents if name not in approved.parents)
    yield from (f"{name} would not be deleted first" for name in approved.parents if name not in computed.parents)
    allowed = set(computed.delete_foreign) - set(approved.delete_foreign)
    yield from (f"foreign objects in {name} could be destroyed" for name in sorted(allowed))
    for name in sorted(approved.steps.keys() | computed.steps.keys()):
        before, now = approved.steps.get(name), computed.steps.get(name)
        if before is None and now is not None:
            yield f"{name} would now be {past_participle(now.verb)}"
        elif now is None and before is not None and before.verb != Verb.AWAIT:  # it may have become healthy
            yield f"{name} would not be {past_participle(before.verb)} any more"
        elif before != now and before is not None and now is not None:
            yield f"{name} would be {past_participle(now.verb)} otherwise: {_describe_change(before, now)}"
    if approved.unchanged | approved.steps.keys() != computed.unchanged | computed.steps.keys():
        yield "the platform has other applications"


def differences_after_root(
    approved: ApprovedPlan, computed: ApprovedPlan, root_nodes: Collection[str]
) -> tuple[str, ...]:
    """How the plan differs from the approved one after the approved root was written.

    Writing the root changes the plan: nodes that the root defines, `root_nodes`, may be synced at its approved commit.
    All other steps must be as approved. An Application that the root does not change must be the approved one.
    """
    changed = []
    for name, step in sorted(computed.steps.items()):
        before = approved.steps.get(name) or StepSummary("")
        is_from_root = name in root_nodes and step.revisions == (approved.root_revision,)
        is_as_before = (before.revisions, before.parent) == (step.revisions, step.parent)
        if step.verb in {Verb.AWAIT, Verb.RECHECK, Verb.FAIL}:
            continue
        if not is_from_root and not is_as_before:
            changed.append(f"{name} would be {past_participle(step.verb)} at {abbreviate(step.revisions)}")
        elif not step.parent and step.definition not in {"", before.definition}:
            changed.append(f"{name} would be {past_participle(step.verb)} otherwise: its definition has changed")
    return tuple(changed)


def past_participle(verb: str) -> str:
    participles = {"sync": "synced", "await": "awaited", "recheck": "rechecked", "remove": "removed", "fail": "failed"}
    return participles.get(verb, verb)


def _describe_change(before: StepSummary, now: StepSummary) -> str:
    if before.verb != now.verb:
        return f"it was {past_participle(before.verb)}"
    if before.after != now.after:
        return f"after {', '.join(now.after) or 'nothing'}, not {', '.join(before.after) or 'nothing'}"
    if before.revisions != now.revisions:
        known, approved = ", ".join(now.revisions), ", ".join(before.revisions)
        return f"at {known or 'nothing known'}, not {approved or 'nothing known'}"
    return "its definition has changed"


def unapproved_reason(
    approved: StepSummary | None, state: ApplicationState, new_definition: tuple[Source, ...] | None
) -> str:
    """Why the Application must not be synced as it is now; empty if that was approved.

    `new_definition`: the sources with which this run created or changed it, from the approved commit of its parent.
    """
    if approved is None:
        return "the approved plan has no step for it"
    if new_definition is not None:
        is_expected = state.sources == new_definition
    else:
        is_expected = approved.definition in {"", definition_digest(state.sources)}
    if not is_expected:
        return "its definition is not the approved one"
    revisions = desired_revisions(state)
    if revisions == approved.revisions:
        return ""
    if new_definition is None:
        return f"it is to be at {abbreviate(revisions)} now, approved is {abbreviate(approved.revisions)}"
    if state.has_mutable_revision:
        names = ", ".join(source.target_revision for source in state.sources if source.has_mutable_revision)
        return f"its new definition follows {names}, which may be any commit: a plan can only name a fixed revision"
    return ""


@dataclass(frozen=True, slots=True)
class RunApproval:
    """Holds the steps of a run to an approved plan, until the write of each."""

    steps: Mapping[str, StepSummary]
    _new_definitions: dict[str, tuple[Source, ...]] = field(default_factory=dict)
    """By node: its sources right after this run had synced its definition from its parent."""

    def check_parent(self, name: str, parent: ParentApplication) -> Failed | None:
        """Failure if the parent would define the node from other revisions or sources than the approved ones."""
        approved = self.steps.get(name)
        if approved is not None and approved.revisions == parent.revisions:
            if approved.parent in {"", definition_digest(parent.sources)}:
                return None
            detail = f"the sources of {parent}, which defines it, have changed"
            return Failed(Reason.NOT_APPROVED, detail, is_final=True)
        revisions = abbreviate(approved.revisions) if approved else "no sync"
        detail = f"{parent}, which defines it, is at {abbreviate(parent.revisions)}, approved is {revisions}"
        return Failed(Reason.NOT_APPROVED, detail, is_final=True)

    def check(self, name: str, state: ApplicationState, *, is_redefined: bool) -> Failed | None:
        """Failure if the node as it is now was not approved. `is_redefined`: this run has synced its definition."""
        if is_redefined:
            self._new_definitions.setdefault(name, state.sources)
        reason = unapproved_reason(self.steps.get(name), state, self._new_definitions.get(name))
        return Failed(Reason.NOT_APPROVED, reason, is_final=True) if reason else None
