"""The failures of a report: one for each cause, which is a node, or the parent that defines several of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import Failed, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning.definitions import definition_failures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import Snapshot

NO_REASON = "Argo CD gives no reason"
CAUSE_MARKS = ("  container ", "condition ", "  event ")
"""How diagnostic lines begin that name a cause; other lines say where it is."""
DiagnosticLines = Mapping[str, tuple[str, ...]]
"""Diagnostic lines by node."""


@dataclass(frozen=True, slots=True)
class Failure:
    name: str
    """The component; or, if that is the cause, the parent that defines it: `NAMESPACE/NAME`."""
    reason: str
    detail: str
    blocks: tuple[str, ...]
    """Components that were skipped because of this failure; for `validate`, all dependents.

    If the cause is a parent, also the components that it defines.
    """
    diagnostics: tuple[str, ...] = ()


def outcome_failures(outcomes: Iterable[Outcome], diagnostics: DiagnosticLines) -> tuple[Failure, ...]:
    """Failed and interrupted nodes, and dependencies that were unhealthy when a dependent was to start."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.name)
    blocked: dict[str, list[str]] = {}
    failed: dict[str, Outcome] = {}
    for outcome in ordered:
        for cause in outcome.causes:
            blocked.setdefault(cause, []).append(outcome.name)
        if outcome.result in {Result.FAILED, Result.INTERRUPTED}:
            failed.setdefault((*outcome.causes, outcome.name)[0], outcome)
    for outcome in ordered:
        for cause in outcome.causes if outcome.is_blocked else ():
            failed.setdefault(cause, outcome)
    return tuple(
        _failure(name, *_reason_and_detail(each), blocked.get(name, ()), diagnostics.get(name, ()))
        for name, each in sorted(failed.items())
    )


def _failure(name: str, reason: str, detail: str, blocks: Iterable[str], diagnostics: tuple[str, ...] = ()) -> Failure:
    """A failure whose detail repeats neither its name nor its reason.

    Without a better detail it is the first diagnostic that is a cause.
    """
    detail = detail.removeprefix(f"{name}: ")
    if detail == f"it is {reason}":
        detail = next((line.strip() for line in diagnostics if line.startswith(CAUSE_MARKS)), NO_REASON)
    return Failure(name, reason, detail.removeprefix(f"it is {reason}: "), tuple(blocks), diagnostics)


def root_causes(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Failures that no other failure blocks; the one that blocks the most components comes first."""
    every = tuple(failures)
    explained = {name for failure in every for name in failure.blocks}
    roots = [failure for failure in every if failure.name not in explained]
    return tuple(sorted(roots, key=lambda failure: (-len(failure.blocks), failure.name)))


def _reason_and_detail(outcome: Outcome) -> tuple[str, str]:
    if isinstance(outcome.decision, Failed):
        return str(outcome.decision.reason), outcome.decision.detail
    return str(Reason.INTERRUPTED), "it was in progress when the run ended"


def unhealthy_failures(
    platform: Platform, healths: Mapping[str, Health], snapshot: Snapshot, diagnostics: DiagnosticLines
) -> tuple[Failure, ...]:
    """The failures of unhealthy nodes; each blocks all dependents, also indirect ones."""
    undefined = definition_failures(platform, snapshot, healths)
    dependents = platform.graph.reversed()
    found: dict[str, Failure] = {}
    for node, health in sorted(healths.items()):
        failed = undefined.get(node) or _health_failure(health, node, snapshot)
        name = failed.cause or node
        blocks = dependents.closure([node]) - (frozenset() if failed.cause else {node})
        earlier = found[name].blocks if name in found else ()
        lines = diagnostics.get(name, ())
        found[name] = _failure(name, str(failed.reason), failed.detail, sorted(blocks.union(earlier)), lines)
    return tuple(failure for _, failure in sorted(found.items()))


def _health_failure(health: Health, name: str, snapshot: Snapshot) -> Failed:
    state = snapshot.states.get(name)
    if state is None:
        return Failed(Reason.ABSENT, "it does not exist")
    if state.missing_right and health is Health.UNKNOWN:
        return Failed(Reason.RIGHT_MISSING, f"it is Unknown: {state.missing_right}")
    return Failed(Reason(health.value), state.health_message or f"it is {health}")
