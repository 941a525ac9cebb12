"""Compliance findings: where a platform breaks the rules that its deployment order relies on, each with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.snapshots import ApplicationState, Hook, Phase, ResourceKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from windlass.core.platform.model.snapshots import Parent, Snapshot

INTERNAL_HOOK = "windlass.dev/hook: internal"
_ORDERING_HOOKS = {"PreSync", "PostSync"}
_BUILT_IN_GROUPS = {"", "apps", "autoscaling", "batch", "events", "extensions", "policy"}


class Rule(StrEnum):
    SINGLE_PATH = "INV-2"
    HEALTH_CHECKS = "INV-7"
    NO_HOOKS = "INV-8"
    POLICIES = "policy"
    """Not a rule of Windlass: violations that the cluster's own policy engine reports."""


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    application: str
    what: str
    remedy: str


def findings(snapshot: Snapshot, checked: Collection[ResourceKind]) -> tuple[Finding, ...]:
    """Findings about every Application in the snapshot.

    `assessable_kinds` are the kinds whose health can be assessed, by Argo CD or by Windlass.
    """
    found: list[Finding] = []
    for name, state in sorted(snapshot.states.items()):
        if isinstance(state, ApplicationState):
            found += _bypasses(name, state, snapshot.parents.get(name))
            found += _unordered(name, state)
            found += (_unchecked(name, kind) for kind in sorted(state.kinds, key=str) if _needs_check(kind, checked))
            found += (_hook(name, hook) for hook in _hooks(state) if _orders(hook))
    return tuple(found)


def _bypasses(name: str, state: ApplicationState, parent: Parent | None) -> Iterator[Finding]:
    """The last operation succeeded at a new revision, and no Windlass run requested it.

    Self-healing at the same revision is not a bypass. Neither is an Application that syncs itself because a Windlass
    run synced its parent to that revision: its dependencies were checked then.
    """
    operation = state.operation
    if operation is None or operation.phase is not Phase.SUCCEEDED or operation.run_id is not None:
        return
    if parent and parent.moved_by_us_to and operation.revisions == parent.moved_by_us_to:
        return
    if operation.revisions != state.previous_revisions:
        who = operation.started_by or "somebody"
        what = f"{who} moved it to {', '.join(operation.revisions)} past the dependency order"
        yield Finding(Rule.SINGLE_PATH, name, what, "deploy it with windlass; take sync rights from others")


def _unordered(name: str, state: ApplicationState) -> Iterator[Finding]:
    if state.is_automated and state.is_moving:
        what = "it syncs a moving revision by itself, so its turn cannot be enforced"
        yield Finding(Rule.SINGLE_PATH, name, what, "pin targetRevision to a commit, or turn automated sync off")


def _needs_check(kind: ResourceKind, checked: Collection[ResourceKind]) -> bool:
    is_built_in = kind.group in _BUILT_IN_GROUPS or kind.group.endswith(".k8s.io")
    return not is_built_in and kind not in checked


def _unchecked(name: str, kind: ResourceKind) -> Finding:
    what = f"{kind} has no health check: applied counts as healthy"
    return Finding(Rule.HEALTH_CHECKS, name, what, f"write one: /config/health/{kind.group}_{kind.kind}.lua")


def _hooks(state: ApplicationState) -> tuple[Hook, ...]:
    return state.operation.hooks if state.operation else ()


def _orders(hook: Hook) -> bool:
    return hook.type in _ORDERING_HOOKS and not hook.is_internal


def _hook(name: str, hook: Hook) -> Finding:
    what = f"{hook.kind} {hook.name} is a {hook.type} hook"
    remedy = f"remove it and declare dependsOn; if it serves {name} alone, annotate it {INTERNAL_HOOK}"
    return Finding(Rule.NO_HOOKS, name, what, remedy)
