"""Compliance findings: where a platform breaks the rules that its deployment order relies on, each with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import abbreviate
from windlass.core.platform.model.snapshots import ApplicationState, Hook, OperationPhase, ResourceKind
from windlass.core.platform.reporting.text_layout import join_names, pluralize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from windlass.core.platform.model.snapshots import ParentApplication, Snapshot

MAX_NAMES = 5  # of applications or commits in one finding
INTERNAL_HOOK = "windlass.dev/hook: internal"
_ORDERING_HOOKS = {"PreSync", "PostSync"}
_BUILT_IN_GROUPS = {"", "apps", "autoscaling", "batch", "events", "extensions", "policy"}


class Rule(StrEnum):
    SINGLE_PATH = "INV-2"
    HEALTH_CHECKS = "INV-7"
    NO_HOOKS = "INV-8"
    POLICIES = "policy"
    """Not a rule of Windlass: violations that the cluster's own policy engine reports."""
    UP_TO_DATE = "up-to-date"
    """Not a rule of Windlass: the cluster has what git defines. Only `validate --strict` counts it as a finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    application: str
    what: str
    remedy: str


def findings(snapshot: Snapshot, assessable_kinds: Collection[ResourceKind]) -> tuple[Finding, ...]:
    """Findings about every Application in the snapshot.

    `assessable_kinds` are the kinds whose health can be assessed, by Argo CD or by Windlass.
    """
    found: list[Finding] = []
    for name, state in sorted(snapshot.states.items()):
        if isinstance(state, ApplicationState):
            found += _bypass_findings(name, state, snapshot.parents.get(name))
            found += _moving_revision_findings(name, state)
            found += (
                _missing_check_finding(name, kind)
                for kind in sorted(state.resource_kinds, key=str)
                if _lacks_health_check(kind, assessable_kinds)
            )
            found += (_hook_finding(name, hook) for hook in _hooks(state) if _is_ordering_hook(hook))
    return tuple(found)


def outdated_findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """One for each parent whose children are not as git defines them: git is ahead of the cluster."""
    behind: dict[str, set[str]] = {}
    for name, parent in snapshot.parents.items():
        if parent.updates_child:
            behind.setdefault(str(parent), set()).add(name)
        for each in parent.lineage:
            if each.parent is not None and each.is_outdated:
                behind.setdefault(str(each.parent), set()).add(each.node or str(each))
    remedy = "windlass plan shows the changes, windlass deploy applies them"
    return tuple(
        Finding(Rule.UP_TO_DATE, parent, _outdated_text(snapshot, parent, sorted(names)), remedy)
        for parent, names in sorted(behind.items())
    )


def _outdated_text(snapshot: Snapshot, parent: str, names: list[str]) -> str:
    """`out of sync, git is ahead at 417b79f72dfd: 2 applications are behind (dns, web), at 2 commits: ...`."""
    revisions = next((each.revisions for each in snapshot.platform_parents if str(each) == parent), ())
    head = f" at {abbreviate(revisions)}" if revisions else ""
    states = [snapshot.states.get(name) for name in names]
    commits = sorted({abbreviate(each.revisions) for each in states if isinstance(each, ApplicationState)})
    verb = "is" if len(names) == 1 else "are"
    text = f"out of sync, git is ahead{head}: {pluralize(len(names), 'application')} {verb} behind"
    at = f", at {'different commits: ' if len(commits) > 1 else ''}{join_names(commits, MAX_NAMES)}" if commits else ""
    return f"{text} ({join_names(names, MAX_NAMES)}){at}"


def finding_text(finding: Finding) -> str:
    return f"{finding.application}: {finding.what} ({finding.remedy})"


def _bypass_findings(name: str, state: ApplicationState, parent: ParentApplication | None) -> Iterator[Finding]:
    """The last operation succeeded at a new revision, and no Windlass run requested it.

    Self-healing at the same revision is not a bypass. Neither is an Application that syncs itself because a Windlass
    run synced its parent to that revision: its dependencies were checked then.
    """
    operation = state.operation
    if operation is None or operation.phase is not OperationPhase.SUCCEEDED or operation.run_id is not None:
        return
    if parent and parent.last_run_revisions and operation.revisions == parent.last_run_revisions:
        return
    if operation.revisions != state.previous_revisions:
        initiator = operation.started_by or "another client"
        revisions = abbreviate(operation.revisions)
        what = f"{initiator} synced it to {revisions} outside a windlass run, not in dependency order"
        remedy = "deploy it with windlass; turn automated sync off, and revoke the sync rights of other clients"
        yield Finding(Rule.SINGLE_PATH, name, what, remedy)


def _moving_revision_findings(name: str, state: ApplicationState) -> Iterator[Finding]:
    if state.is_automated and state.has_mutable_revision:
        what = "it syncs automatically from a revision that can move, so its order cannot be enforced"
        yield Finding(Rule.SINGLE_PATH, name, what, "pin targetRevision to a commit, or turn automated sync off")


def _lacks_health_check(kind: ResourceKind, assessable_kinds: Collection[ResourceKind]) -> bool:
    is_built_in = kind.group in _BUILT_IN_GROUPS or kind.group.endswith(".k8s.io")
    return not is_built_in and kind not in assessable_kinds


def _missing_check_finding(name: str, kind: ResourceKind) -> Finding:
    what = f"{kind} has no health check: applied counts as healthy"
    return Finding(Rule.HEALTH_CHECKS, name, what, f"write one: /config/health/{kind.group}_{kind.kind}.lua")


def _hooks(state: ApplicationState) -> tuple[Hook, ...]:
    return state.operation.hooks if state.operation else ()


def _is_ordering_hook(hook: Hook) -> bool:
    return hook.type in _ORDERING_HOOKS and not hook.is_internal


def _hook_finding(name: str, hook: Hook) -> Finding:
    what = f"{hook.kind} {hook.name} is a {hook.type} hook"
    remedy = f"remove it and declare dependsOn; if it serves {name} alone, annotate it {INTERNAL_HOOK}"
    return Finding(Rule.NO_HOOKS, name, what, remedy)
