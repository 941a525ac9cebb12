"""Mutants of the shared health assessment and of clocks."""

from __future__ import annotations

from tests.mutant_rows import Mutant

ASSESSMENT, SKEW = "operations/test_one_assessment.py", "operations/test_clock_skew.py"
FRESHNESS = "core/platform/freshness.py"

HEALTH_MUTANTS = (
    Mutant(
        "the gate believes Argo CD alone",
        "INV-7",
        "argo/gate_evaluation.py",
        "    if isinstance(state, ApplicationState) and (isinstance(decision, Open) or is_newly_healthy):",
        "    if isinstance(state, ApplicationState) and is_newly_healthy:",
        ASSESSMENT,
    ),
    Mutant(
        "stability counts from before the objects agree",
        "INV-7",
        "argo/gate_evaluation.py",
        "    if isinstance(state, ApplicationState) and (isinstance(decision, Open) or is_newly_healthy):",
        "    if isinstance(state, ApplicationState) and isinstance(decision, Open):",
        ASSESSMENT,
    ),
    Mutant(
        "the plan believes Argo CD alone",
        "INV-7",
        "operations/planner.py",
        "    snapshot, _ = await assess_snapshot(cluster, platform, observation, unchanged)",
        "    snapshot, _ = await assess_snapshot(cluster, platform, observation, unchanged - unchanged)",
        ASSESSMENT,
    ),
    Mutant(
        "the final check believes Argo CD alone",
        "INV-7",
        "operations/deploy.py",
        "        names = () if run.control.stop.is_set() else names_to_assess",
        "        names = ()",
        ASSESSMENT,
    ),
    Mutant(
        "a missing right is waited for",
        "INV-4",
        "core/platform/gates.py",
        "        case Health.UNKNOWN if history.latest is not None and history.latest.missing_right:",
        "        case Health.UNKNOWN if False:",
        "operations/test_missing_rights.py",
    ),
    Mutant(
        "an action writes without a printed right",
        "rights",
        "core/platform/permissions.py",
        '("persistentvolumes",), ("patch",)',
        '("persistentvolumes",), ("get",)',
        "operations/test_permissions.py",
    ),
    Mutant(
        "what cannot be read is healthy",
        "INV-7",
        "operations/object_health.py",
        '        return _unreadable(name, "it cannot be read", objects)',
        "        return None",
        ASSESSMENT,
    ),
    Mutant(
        "a verdict is never stale",
        "INV-7",
        "operations/object_health.py",
        "    limit = await cluster.resync.stale_after() if old else None",
        "    limit = await cluster.resync.stale_after() if not old else None",
        ASSESSMENT,
    ),
    Mutant(
        "Argo CD's clock counts as the server's",
        "INV-7",
        FRESHNESS,
        "    return now - (timestamp if is_agreed else state.written_at)",
        "    return now - timestamp",
        SKEW,
    ),
    Mutant(
        "what was seen for long enough does not count",
        "INV-7",
        FRESHNESS,
        "    return max(now - (history.operation_since or now), _age(finished, state, now))",
        "    return _age(finished, state, now)",
        SKEW,
    ),
    Mutant(
        "a request that another client removed counts as a refresh",
        "INV-7",
        FRESHNESS,
        "    if history.was_refreshed and is_compared_again:",
        "    if history.was_refreshed:",
        SKEW,
    ),
    Mutant(
        "a step of our clock is patience",
        "INV-7",
        "kube/clocks.py",
        "        return lambda: start + timedelta(seconds=self.monotonic() - started)",
        "        return lambda began=self.now(): start + (self.now() - began)",
        "scenarios/test_clocks.py",
    ),
)
