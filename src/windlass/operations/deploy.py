"""`deploy`: sync the applications in scope in dependency order, each after the gates of its dependencies have opened.

An application that is already in its desired state is not touched. The functions below are in the order of a run:
observe and plan, check permissions, acquire the lock, plan again, sync, verify, report.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.argo.cd.sync_step import SyncContext, SyncSteps
from windlass.argo.dependency_checks import DependencyChecks
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform import rechecks
from windlass.core.platform.events import NodeFinished, RunPhase
from windlass.core.platform.gate_values import Failed, Reason
from windlass.core.platform.model import scopes
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans
from windlass.core.platform.planning.approvals import RunApproval
from windlass.core.platform.planning.definitions import definition_failures
from windlass.core.platform.rechecks import Recheck
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import FinalState
from windlass.errors import WindlassError
from windlass.kube import access_reviews
from windlass.kube.access_reviews import Permission
from windlass.kube.api_errors import Conflict
from windlass.operations.object_health import application_assessment, assess_snapshot
from windlass.operations.observation import check_argocd_namespace
from windlass.operations.planner import annotated_platform, check_approved_plan, summarize_run
from windlass.operations.run import run_lock
from windlass.operations.run.assessed_states import AssessedStates
from windlass.operations.run.context import Stopped
from windlass.operations.run.lifecycle import Run
from windlass.operations.run.run_lock import LockPatience
from windlass.operations.validate import SETTLING_POLL_INTERVAL, SETTLING_TIMEOUT
from windlass.orchestrators import embedded
from windlass.orchestrators.embedded import RunHooks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.core.platform.model.annotations import AnnotatedPlatform
    from windlass.core.platform.model.snapshots import NodeState, Snapshot
    from windlass.core.platform.reporting.reports import Report
    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.resources import Ref
    from windlass.operations.planner import PlannedRun, RunRequest
    from windlass.operations.run.context import RunContext

PARENT_RETRY_INTERVAL = 5.0  # seconds between two requests to compare a parent that Argo CD cannot render
ROOT_COMPARISON_TIMEOUT = 120.0  # seconds for Argo CD to compare a root Application that was just written


async def deploy(context: RunContext, request: RunRequest) -> Report:
    run = Run(context, request)
    try:
        async with run.watch():
            report = await _deploy(run)
    except Stopped:
        report = run.not_started_report()
    return run.with_notices(report)


async def _deploy(run: Run) -> Report:
    planned = await run.control.unless_stopped(_observe_and_plan(run))
    check_approved_plan(run.request, planned)
    if not planned.plan.can_run:
        return run.plan_report(planned)
    if planned.plan.is_empty and planned.root_manifest is None and not run.changes_identity:
        failed = plans.failed_outcomes(planned.plan)
        for outcome in failed:
            run.control.emit(NodeFinished(outcome))
        return await _run_report(run, planned, (*_unchanged_outcomes(planned), *failed), planned.snapshot)
    await run.control.unless_stopped(_require_permissions(run, planned.root_manifest))
    async with run.hold_lock() as writer:
        planned = await run.control.unless_stopped(_plan_under_lock(run, writer, planned))
        if not planned.plan.can_run:
            return run.plan_report(planned)
        has_own_root = run.live.root is not None and root_application.is_managed_by_windlass(run.live.root)
        opened = {name: planned.snapshot.states[name] for name in planned.plan.unchanged}
        outcomes = await _sync_applications(run, writer, planned, opened)
        outcomes, snapshot = await _verify_still_ready(run, planned, outcomes, opened)
    if has_own_root:
        _name_root_change(run)
    run.start_phase(RunPhase.REPORT)
    return await _run_report(run, planned, outcomes, snapshot)


async def _observe_and_plan(run: Run) -> PlannedRun:
    run.start_phase(RunPhase.OBSERVE)
    await run.live.wait_for_initial_list()
    await check_argocd_namespace(run.context.cluster, run.live.applications.view)
    await run.check_identity()
    annotated = annotated_platform(run.context.cluster, run.request, run.live.applications.view)
    if run.request.root is not None:  # refused before the first refresh
        root_application.foreign_root_notice(run.request.root, run.live.root)
    names = scopes.selected_nodes(run.request.platform, run.request.scope)
    if keys := run.live.keys_to_refresh(names):
        await _check_before_refresh(run, annotated)
        await run.live.refresh(keys)
    planned = await _plan_when_settled(run, annotated)
    if _broken_parents(planned.plan.failures):
        await _check_before_refresh(run, annotated)
        planned = await _await_parents(run, planned, lambda: _plan_when_settled(run, annotated))
    run.start_phase(RunPhase.PLAN)
    run.announce_plan(planned)
    for message in planned.warnings:
        run.add_notice(message, Level.WARN)
    if planned.root_change:
        run.add_notice(planned.root_change)
    return planned


async def _check_before_refresh(run: Run, annotated: AnnotatedPlatform) -> None:
    """Refuse now what can be refused without a refresh, because a refresh is already a write."""
    if run.request.approved_plan is not None:
        check_approved_plan(run.request, await _plan_when_settled(run, annotated))
    await _require_permissions(run, None)
    patience = LockPatience(run.context.lock_timeout, run.control.emit)
    await run_lock.wait_until_free(run.context.lease, patience)


async def _plan_when_settled(run: Run, annotated: AnnotatedPlatform) -> PlannedRun:
    """Plan, and plan again for up to `SETTLING_TIMEOUT` while health that is too recent to count holds up the plan.

    That is the case if the plan changes nothing and only waits, or if every unmet dependency shows Healthy.
    """
    clock = run.context.clock
    started = clock.monotonic()
    while True:
        planned = await run.plan(annotated)
        is_late = clock.monotonic() - started > SETTLING_TIMEOUT.total_seconds()
        if is_late or (not _is_unsettled(planned) and (planned.plan.changes or planned.plan.is_empty)):
            return planned
        await clock.sleep(SETTLING_POLL_INTERVAL)


async def _await_parents(run: Run, planned: PlannedRun, replan: Callable[[], Awaitable[PlannedRun]]) -> PlannedRun:
    """Ask Argo CD again while it cannot render a parent, up to the grace period: a repository may be down for seconds.

    Return the plan as it is then.
    """
    clock = run.context.clock
    started = clock.monotonic()
    while broken := _broken_parents(planned.plan.failures):
        nodes = [planned.platform.applications[name] for name in planned.plan.failures]
        if clock.monotonic() - started >= max(node.timing.degraded_grace for node in nodes).total_seconds():
            break
        run.control.emit(LogLine(Level.WARN, f"Argo CD cannot render {', '.join(sorted(broken))}: asking again"))
        await _compare_parents_again(run, planned.snapshot, broken)
        planned = await replan()
    return planned


async def _compare_parents_again(run: Run, snapshot: Snapshot, broken: Collection[str]) -> None:
    await run.context.clock.sleep(PARENT_RETRY_INTERVAL)
    applications = {(each.namespace, each.name): each for each in snapshot.platform_parents}
    await run.live.refresh(
        {key for key, each in applications.items() if each.kind == APPLICATIONS.kind and str(each) in broken}
    )


async def _compare_unless_stopped(run: Run, snapshot: Snapshot, broken: Collection[str]) -> None:
    try:
        await run.control.unless_stopped(_compare_parents_again(run, snapshot, broken))
    except WindlassError:
        if not run.control.stop.is_set():
            raise


def _broken_parents(failures: Mapping[str, Failed]) -> frozenset[str]:
    return frozenset(failed.cause for failed in failures.values() if failed.reason is Reason.PARENT_BROKEN)


async def _plan_when_met(run: Run, annotated: AnnotatedPlatform) -> PlannedRun:
    """Plan, and plan again for up to `SETTLING_TIMEOUT` while only the proof of health is missing outside the scope."""
    clock = run.context.clock
    started = clock.monotonic()
    while _is_unsettled(planned := await run.plan(annotated)):
        if clock.monotonic() - started > SETTLING_TIMEOUT.total_seconds():
            break
        await clock.sleep(SETTLING_POLL_INTERVAL)
    return planned


async def _require_permissions(run: Run, root_manifest: RawObject | None) -> None:
    await access_reviews.require_permissions(run.context.cluster.reader, _required_permissions(run, root_manifest))


def _required_permissions(run: Run, root_manifest: RawObject | None) -> Iterator[Permission]:
    for namespace in sorted(run.live.namespaces):
        yield Permission("patch", APPLICATIONS, namespace)
    if root_manifest is not None and run.live.root is None:
        yield Permission("create", APPLICATIONS, run.context.argocd_namespace)
    yield from run_lock.required_permissions(run.context.argocd_namespace)


async def _plan_under_lock(run: Run, writer: ApplicationWriter, before: PlannedRun) -> PlannedRun:
    """Plan again under the lock, when no other run can change anything: this is the plan that is executed.

    Annotations are read again too: the run that held the lock may have changed them.
    """
    annotated = annotated_platform(run.context.cluster, run.request, run.live.applications.view)
    for notice in annotated.notices:
        if notice not in before.warnings:
            run.add_notice(notice, Level.WARN)

    async def replan() -> PlannedRun:
        return await _plan_when_met(run, annotated)

    planned = await replan()
    writes_root = planned.root_manifest is not None and planned.plan.can_run
    if planned.root_manifest is not None and writes_root:
        check_approved_plan(run.request, planned)
        await _write_root(run, writer, planned.root_manifest)
        planned = await replan()  # a root that was just written changes the plan
    planned = run.announce_plan(await _await_parents(run, planned, replan))
    check_approved_plan(run.request, planned, root_is_written=writes_root)
    return planned


async def _write_root(run: Run, writer: ApplicationWriter, manifest: RawObject) -> None:
    key = (run.context.argocd_namespace, root_application.NAME)
    written = await _apply_root(writer, manifest, APPLICATIONS.named(root_application.NAME, key[0]))
    with run.live.applications.watch(key) as watch:
        version, waited = int(written["metadata"]["resourceVersion"]), 0.0
        while waited < ROOT_COMPARISON_TIMEOUT and not _is_compared(watch.current, version):
            waited += 0 if await watch.wait_for_change() else POLL_INTERVAL


async def _apply_root(writer: ApplicationWriter, manifest: RawObject, ref: Ref) -> RawObject:
    """Write the root exactly as defined: an apply leaves the fields in place that other clients added."""
    while True:
        written = await writer.client.apply(ref, manifest, force=True)
        surplus = root_application.surplus_fields(written, manifest)
        if not surplus:
            return written
        version = {"resourceVersion": written["metadata"]["resourceVersion"]}
        with suppress(Conflict):  # changed again since
            return await writer.client.patch(ref, {**surplus, "metadata": version})


async def _sync_applications(
    run: Run, writer: ApplicationWriter, planned: PlannedRun, opened: dict[str, NodeState]
) -> tuple[Outcome, ...]:
    """Run the plan; return the outcomes of all nodes in scope, and add the states on which gates opened."""
    run.start_phase(RunPhase.RUN)
    context, control = run.context, run.control
    sync_context = SyncContext(
        applications=run.live.applications,
        writer=writer,
        refresher=context.refresher,
        read_resource=run.live.read_resource,
        assess=application_assessment(context.cluster, planned.platform),
        clock=context.clock,
        now=context.cluster.now,
        run_id=context.run_id,
        argocd_namespace=context.argocd_namespace,
        nodes=planned.platform.applications,
        parents=planned.snapshot.parents,
        failures=planned.plan.failures,
        outdated_parents=planned.plan.outdated_parents,
        observe_definitions=run.live.observe_definitions,
        dependencies=_dependency_checks(run, planned, opened),
        approval=_approval(run, planned),
    )
    hooks = RunHooks(SyncSteps(sync_context).execute, context.cluster.now, control.emit, control.stop, control.fail)
    try:
        outcomes = {each.name: each for each in await embedded.run(planned.plan, planned.platform, hooks)}
    finally:
        await run.live.end_operations(writer)
    return tuple(({each.name: each for each in _unchanged_outcomes(planned)} | outcomes).values())


def _dependency_checks(run: Run, planned: PlannedRun, opened: dict[str, NodeState]) -> DependencyChecks:
    cluster, platform = run.context.cluster, planned.platform
    read_states = AssessedStates(cluster, run.live, platform).read
    return DependencyChecks(platform, run.context.run_id, opened, read_states, run.context.clock, cluster.now)


def _approval(run: Run, planned: PlannedRun) -> RunApproval | None:
    """What each step must keep to: the plan that was just compared with the approved one, if there is one."""
    return RunApproval(summarize_run(run.request, planned).steps) if run.request.approved_plan else None


async def _verify_still_ready(
    run: Run, planned: PlannedRun, outcomes: tuple[Outcome, ...], opened: Mapping[str, NodeState]
) -> tuple[tuple[Outcome, ...], Snapshot]:
    """Check at the end of the run that finished applications are as their gates saw them, and still defined.

    Wait for unhealthy ones, and for parents that Argo CD cannot render. Return the corrected outcomes and the final
    snapshot.
    """
    nodes, run_id = planned.platform.applications, run.context.run_id
    ready = [each.name for each in outcomes if each.is_successful]
    checked = {name: Recheck(nodes[name].timing, run_id, opened.get(name)) for name in ready}
    announced: set[str] = set()
    names_to_assess = ready
    while True:
        observation = await run.live.observe()
        names = () if run.control.stop.is_set() else names_to_assess
        snapshot, _ = await assess_snapshot(run.context.cluster, planned.platform, observation, names)
        undefined = definition_failures(planned.platform, snapshot, ready)
        checked = rechecks.observe_all(checked, snapshot.states, snapshot.taken_at)
        checked = rechecks.observe_definitions(checked, undefined, snapshot.taken_at)
        closed_gates = rechecks.closed_gates(checked)
        waiting = {name: each for name, each in closed_gates.items() if not isinstance(each, Failed)}
        if run.control.stop.is_set() or (not waiting and names_to_assess is ready):
            break
        suspects = [name for name, each in checked.items() if each.history is not None]
        names_to_assess = suspects if waiting else ready  # all of them once more at the end
        for name in sorted(waiting.keys() - announced):
            message = f"its gate had opened, and it is waited for again: {waiting[name].detail}"
            run.control.emit(LogLine(Level.WARN, message, name))
        announced |= waiting.keys()
        broken = _broken_parents({name: failed for name, failed in undefined.items() if name in waiting})
        if broken:
            await _compare_unless_stopped(run, snapshot, broken)
        else:
            await run.context.clock.sleep(SETTLING_POLL_INTERVAL)
    corrected = tuple(rechecks.apply_final_check(each, closed_gates.get(each.name)) for each in outcomes)
    for each in corrected:
        if each.name in closed_gates:
            run.control.emit(NodeFinished(each))
    return corrected, snapshot


def _name_root_change(run: Run) -> None:
    """Name what another client did to the root during the run: a new commit may not reach its children any more."""
    root, live, namespace = run.request.root, run.live.root, run.context.argocd_namespace
    if root is not None and (change := root_application.foreign_change(root, namespace, live)):
        message = (
            f"another client changed {namespace}/{root_application.NAME} during the run: {change}; run deploy again"
        )
        run.add_notice(message, Level.WARN)


async def _run_report(run: Run, planned: PlannedRun, outcomes: tuple[Outcome, ...], snapshot: Snapshot) -> Report:
    failed = {each.name for each in outcomes if each.result in {Result.FAILED, Result.INTERRUPTED} and not each.causes}
    failed |= {cause for each in outcomes for cause in each.causes if cause in planned.platform.applications}
    final_state = FinalState(snapshot, await run.live.diagnostics(sorted(failed)))
    return reports.run_report(run.record(), planned.platform, planned.plan, outcomes, final_state)


def _unchanged_outcomes(planned: PlannedRun) -> tuple[Outcome, ...]:
    return plans.unchanged_outcomes(planned.platform, planned.plan, planned.snapshot)


def _is_unsettled(planned: PlannedRun) -> bool:
    """Whether every unmet dependency shows Healthy, so that only the proof is missing."""
    states = [planned.snapshot.states.get(each.name) for each in planned.plan.unmet]
    return bool(states) and all(state is not None and state.health is Health.HEALTHY for state in states)


def _is_compared(root: Application | None, version: int) -> bool:
    """Whether Argo CD compared the root after it was written at `version`; an older comparison says nothing."""
    if root is None or int(root.metadata.resource_version) <= version:
        return False
    state = root.state
    return bool(state.revisions) and state.compared_sources == state.sources
