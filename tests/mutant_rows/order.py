"""Mutants of order and of other clients: starts, gates, operations, the lock."""

from __future__ import annotations

from tests.mutant_rows import Mutant

DEPENDENCIES, PLANS = "operations/test_dependency_checks.py", "core/platform/planning/test_plans.py"
THIRD_PARTIES, ENDED = "operations/test_takeovers.py", "operations/test_ended_operations.py"
OWN, TAKEOVERS = "core/platform/test_own_operations.py", "core/platform/takeovers.py"
LOCK, STEP, LEASE = "operations/run/test_run_lock.py", "argo/cd/test_sync_step.py", "kube/leases.py"
ASSESSED = "operations/run/assessed_states.py"
GATES, STEPS = "core/platform/gates.py", "argo/cd/sync_step.py"

ORDER_MUTANTS = (
    Mutant(
        "annotations are not read",
        "INV-1",
        "operations/planner.py",
        "    annotated = annotated_dependencies(cluster, request.platform, applications)",
        "    annotated: dict[str, tuple[str, ...]] = {}",
        "seeds:annotations@4",
    ),
    Mutant(
        "a dependency is judged once", "INV-1", "core/platform/rechecks.py",
        "    return {name: recheck.closed for name, recheck in rechecks.items() if recheck.closed is not None}",
        "    return {}",
        DEPENDENCIES,
    ),
    Mutant(
        "objects of a dependency are not read at a start", "INV-1", ASSESSED,
        "ObjectCheck(application, application.state, self.platform.applications[name].critical)",
        "ObjectCheck(application, application.state, False)",
        DEPENDENCIES,
    ),
    Mutant(
        "objects of a dependency are read once", "INV-1", ASSESSED,
        "            is_read = name in self._assessed and self._assessed[name][0] >= oldest",
        "            is_read = name in self._assessed",
        DEPENDENCIES,
    ),
    Mutant(
        "the operation starts although a dependency broke", "INV-1", STEPS,
        "                if obstacle := obstacle or await self._await_dependencies():",
        "                if obstacle:",
        DEPENDENCIES,
    ),
    Mutant(
        "a batch takes along what is not ready any more", "INV-1", "argo/cd/parent_sync.py",
        " if nodes & ready]",
        "]",
        DEPENDENCIES,
    ),
    Mutant(
        "what is blocked by a dependency counts as failed", "INV-1", "orchestrators/embedded.py",
        "        result = Result.SKIPPED if ended.decision.blocked_by else Result.FAILED",
        "        result = Result.FAILED",
        DEPENDENCIES,
    ),
    Mutant(
        "what is unchanged has no gate", "INV-1", "core/platform/planning/plans.py",
        "        if dependencies := sorted(graph.closure([name]) & synced):",
        "        if dependencies := []:",
        PLANS,
    ),
    Mutant(
        "needs outside the scope are checked once", "INV-1", "operations/deploy.py",
        "        if not planned.plan.can_run:\n            return run.plan_report(planned)\n        has_own_root",
        "        has_own_root",
        DEPENDENCIES,
    ),
    Mutant(
        "another client's operation opens the gate", "INV-2", GATES,
        "    return is_success and own is not None and operation.revisions == own.revisions",
        "    return operation.phase is OperationPhase.SUCCEEDED",
        OWN,
    ),
    Mutant(
        "the previous operation counts as ours", "INV-1", GATES,
        "    if operation is None or operation == shown_operation(history.initial):",
        "    if operation is None:",
        OWN,
    ),
    Mutant(
        "an awaited node opens by a selective sync", "INV-2", TAKEOVERS,
        "    if target.run_id is None and (why := _sync_reason_while_awaited(target, history, state, now)):",
        "    if False and (why := _sync_reason_while_awaited(target, history, state, now)):",
        THIRD_PARTIES,
    ),
    Mutant(
        "a recreated Application is waited for", "INV-1", TAKEOVERS,
        "    if state.uid != before.uid:",
        "    if False:",
        THIRD_PARTIES,
    ),
    Mutant(
        "what another client defined is synced", "INV-2", STEPS,
        "(parent.updates_child or (is_overtaken and not parent.is_automated))",
        "parent.updates_child",
        THIRD_PARTIES,
    ),
    Mutant(
        "a race repeats for ever", "INV-4", STEPS,
        "            if not has_raced and is_race(decision):",
        "            if is_race(decision):",
        THIRD_PARTIES,
    ),
    Mutant(
        "a rollback after the gate is a success", "INV-4", TAKEOVERS,
        "    return None if is_same_sync else Failed(Reason.OVERTAKEN, detail)",
        "    return None",
        THIRD_PARTIES,
    ),
    Mutant(
        "what is shown as synced after a takeover is synced", "INV-2", STEPS,
        "sync_reason(state, revisions) or (is_overtaken and takeovers.needs_sync(state, revisions))",
        "sync_reason(state, revisions)",
        THIRD_PARTIES,
    ),
    Mutant(
        "operations go on after the end", "one run", "operations/deploy.py",
        "        await run.live.end_operations(writer)",
        "        pass",
        ENDED,
    ),
    Mutant(
        "a request on its way is forgotten", "one run", "argo/cd/application_writer.py",
        "application.version > self.open_requests.get(key, 0):",
        "application.version >= self.open_requests.get(key, 0):",
        STEP,
    ),
    Mutant(
        "a failed step ends others' operations", "one run", STEPS,
        "        if application is None or requested_run_id(application) != self._context.run_id:",
        "        if application is None or application.operation is None:",
        ENDED,
    ),
    Mutant(
        "a child whose row says SyncFailed counts as synced", "INV-4", "argo/cd/parent_sync.py",
        '    if status == "Synced":',
        '    if status == "Synced" or operation.phase is OperationPhase.SUCCEEDED:',
        "argo/cd/test_parent_sync.py",
    ),
    Mutant(
        "lease times counted from the answer", "one run", LEASE,
        "        else:\n            self._renewed_at = requested_at",
        "        else:\n            self._renewed_at = self.clock.monotonic()",
        LOCK,
    ),
    Mutant(
        "a deleted Lease is no loss", "one run", LEASE,
        "        except NotFound:\n            raise self._lost_error() from None",
        "        except NotFound:\n            self._renewed_at = requested_at",
        LOCK,
    ),
    Mutant(
        "states older than our own write shown", "INV-1", "argo/cd/application_watch.py",
        "    return application.version <= reference.version",
        "    return False",
        "argo/cd/test_application_watch.py",
    ),
    Mutant(
        "more time for a container that crashes", "INV-4", "core/platform/reporting/recommendations.py",
        "    if reason in _HEALTH_REASONS:",
        "    if False:",
        "operations/test_crash_loops.py",
    ),
    Mutant(
        "an annotation closes a cycle", "INV-1", "core/platform/model/cycles.py",
        "        if self._reach[dependency] & self._path_bits:",
        "        if self._bits[dependency] & self._path_bits:",
        "core/platform/model/test_annotations.py",
    ),
)  # fmt: skip
