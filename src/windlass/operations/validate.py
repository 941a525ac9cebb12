"""`validate`: check with evidence that everything in scope is healthy, and that the platform follows its rules.

Reads only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo import policy_reports
from windlass.argo.cd.diagnostics import diagnose_application
from windlass.core.platform import gates
from windlass.core.platform.freshness import SETTLE_TIME
from windlass.core.platform.gate_values import Closed, GateDecision, GateHistory, GateTarget, Open, Reason
from windlass.core.platform.identity import ClusterIdentity
from windlass.core.platform.model import scopes
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.snapshots import ApplicationState, Snapshot, desired_revisions
from windlass.core.platform.planning.definitions import definition_failures, definition_notices
from windlass.core.platform.reporting import compliance, reports
from windlass.core.platform.reporting.compliance import Rule
from windlass.core.platform.reporting.reports import Action, ApiCalls, FinalState, RunRecord
from windlass.errors import WindlassError
from windlass.operations.cluster_identity import identity_notices
from windlass.operations.object_health import assess_snapshot
from windlass.operations.observation import (
    illegal_row_notices,
    observe,
    observe_all_applications,
    platform_from_applications,
)

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.argo.cd.applications import Application
    from windlass.core.platform.model.applications import NodeTiming, Platform
    from windlass.core.platform.model.snapshots import NodeState
    from windlass.core.platform.reporting.reports import Component, Report
    from windlass.operations.observation import Observation, ObservedCluster

SETTLING_TIMEOUT = SETTLE_TIME + timedelta(seconds=2)  # by then every health reflects the last operation, or never will
MAX_OBJECT_LINES = 10  # on the objects of one Application; more lines do not help
DIAGNOSTICS_TIMEOUT = 60.0  # seconds to read what explains all failures together
REPORT_TIME = 1.0  # seconds of the timeout that are kept for the report itself
SETTLING_POLL_INTERVAL = 1.0  # seconds between two observations while a health is not settled
Histories = Mapping[str, GateHistory]
ALL_APPLICATIONS = "all Applications"
WHOLE_PLATFORM = Scope()
UNCHECKED_RULE_NOTICE = (
    f"rule {Rule.SINGLE_PATH} is not checked with --all: without a platform file there is no order to keep"
)
DENIED_NOTICE = "what explains failures is incomplete: no right to {} (see windlass rbac --for validate)"
_TRANSIENT_REASONS = {Reason.NOT_FRESH, Reason.NOT_COMPARED}
_HEALTH_BY_REASON = {
    Reason.OPERATION_REQUESTED: Health.PROGRESSING,
    Reason.OPERATION_RUNNING: Health.PROGRESSING,
    Reason.DELETING: Health.DEGRADED,
    Reason.ERROR_CONDITION: Health.DEGRADED,
}


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    """What `validate` was asked to check; `platform` is `None` for all Applications of the cluster."""

    environment: str
    platform: Platform | None = None
    scope: Scope = WHOLE_PLATFORM
    is_strict: bool = False
    platform_file: str = ""
    """Path of the platform file, or `EMBEDDED_PLATFORM`."""


async def validate(cluster: ObservedCluster, request: ValidateRequest, timeout: float = DIAGNOSTICS_TIMEOUT) -> Report:
    """Validate. What explains the failures is read in what is left of the timeout, in seconds."""
    started, clock = cluster.now(), cluster.reader.clock
    deadline = clock.monotonic() + timeout - REPORT_TIME
    platform, observation, histories = await _observe_until_settled(cluster, request)
    names = scopes.selected_nodes(platform, request.scope)
    proven = replace(observation, snapshot=with_proven_health(observation.snapshot, platform, histories))
    snapshot, unhealthy = await assess_snapshot(cluster, platform, proven, names)
    snapshot = with_definition_health(snapshot, platform)
    findings = compliance.findings(snapshot, observation.assessed_kinds | cluster.assessor.kinds)
    if request.platform is None:  # no platform file gives an order that could be bypassed
        findings = tuple(finding for finding in findings if finding.rule is not Rule.SINGLE_PATH)
    if local_applications := _local_applications(observation):
        policies = await policy_reports.read_policy_reports(cluster.reader)
        findings += policy_reports.findings(policies, local_applications)
    outdated = compliance.outdated_findings(snapshot) if request.platform else ()
    findings += outdated if request.is_strict else ()
    notices = await _notices(cluster, request)
    notices += () if request.is_strict else tuple(map(compliance.finding_text, outdated))
    lines = {name: tuple(map(str, objects[:MAX_OBJECT_LINES])) for name, objects in unhealthy.items()}
    failed = {name: each for name, each in observation.applications.items() if _needs_explanation(snapshot, name)}
    explained, denied = await _explain_failures(cluster, failed, min(deadline - clock.monotonic(), DIAGNOSTICS_TIMEOUT))
    lines |= {name: (*lines.get(name, ()), *found) for name, found in explained.items()}
    notices += (DENIED_NOTICE.format(", ".join(sorted(denied))),) if denied else ()
    record = _run_record(request, started, cluster)
    report = reports.validate_report(record, platform, names, FinalState(snapshot, lines), findings)
    components = tuple(_with_evidence(each, snapshot, platform, histories) for each in report.components)
    dropped = illegal_row_notices(observation.applications.values())
    return replace(report, components=components, notices=(*notices, *definition_notices(snapshot), *dropped))


def _needs_explanation(snapshot: Snapshot, name: str) -> bool:
    return name in snapshot.states and snapshot.states[name].health is not Health.HEALTHY


async def _explain_failures(
    cluster: ObservedCluster, applications: Mapping[str, Application], timeout: float
) -> tuple[dict[str, tuple[str, ...]], set[str]]:
    """What explains failures, by node, as far as it is read in time; and what the user is not permitted to read."""
    lines: dict[str, tuple[str, ...]] = {}
    denied: set[str] = set()
    with suppress(WindlassError, TimeoutError):
        async with asyncio.timeout(max(timeout, 0)):
            for name, application in sorted(applications.items()):
                lines[name] = await diagnose_application(cluster.reader, application, denied)
    return lines, denied


async def _notices(cluster: ObservedCluster, request: ValidateRequest) -> tuple[str, ...]:
    """Whether the cluster is recorded as another one, and whether anything is selected; none for all Applications."""
    if request.platform is None:
        return (UNCHECKED_RULE_NOTICE,) if request.is_strict else ()
    notices = await identity_notices(cluster, ClusterIdentity(request.environment, request.platform.name))
    return (*notices, *filter(None, [scopes.empty_selection_notice(request.platform, request.scope)]))


async def validate_with_timeout(timeout: float, cluster: ObservedCluster, request: ValidateRequest) -> Report:
    """Validate; if that takes too long, return a report that says so."""
    started, platform = cluster.now(), request.platform or platform_from_applications({})
    try:
        async with asyncio.timeout(timeout):
            return await validate(cluster, request, timeout)
    except TimeoutError:
        record = replace(_run_record(request, started, cluster), is_out_of_time=True)
        report = reports.unobserved_report(record, platform, scopes.selected_nodes(platform, request.scope))
        return replace(report, notices=("out of time (see --timeout): nothing is known",))


def _run_record(request: ValidateRequest, started: datetime, cluster: ObservedCluster) -> RunRecord:
    counts = cluster.reader.counts
    return RunRecord(
        action=Action.VALIDATE,
        environment=request.environment,
        scope=str(request.scope) if request.platform else ALL_APPLICATIONS,
        started=started,
        finished=cluster.now(),
        calls=ApiCalls(reads=counts.total - counts.writes, writes=counts.writes),
        is_strict=request.is_strict,
        argocd_namespace=cluster.argocd_namespace,
        platform=request.platform.name if request.platform else "",
        platform_file=request.platform_file,
        server=cluster.reader.server,
    )


def _local_applications(observation: Observation) -> Mapping[str, Application]:
    """Applications deployed to this cluster; for those in other clusters only the status from Argo CD is available."""
    states = observation.snapshot.states
    remote = {name for name, state in states.items() if isinstance(state, ApplicationState) and state.is_remote}
    return {name: application for name, application in observation.applications.items() if name not in remote}


def with_definition_health(snapshot: Snapshot, platform: Platform) -> Snapshot:
    """Replace Healthy by Unknown where it is not known what the Application should be, or git does not define it."""
    failures = definition_failures(platform, snapshot, snapshot.states)
    unknown = {
        name: replace(state, health=Health.UNKNOWN, health_message=failures[name].detail)
        for name, state in snapshot.states.items()
        if name in failures and state.health is Health.HEALTHY
    }
    return replace(snapshot, states={**snapshot.states, **unknown})


def _with_evidence(component: Component, snapshot: Snapshot, platform: Platform, histories: Histories) -> Component:
    """Add the evidence for its health to a healthy component."""
    if component.health is not Health.HEALTHY:
        return component
    timing, history = platform.applications[component.name].timing, histories.get(component.name)
    decision = _gate_decision(snapshot.states[component.name], timing, snapshot.taken_at, history)
    return replace(component, evidence=decision.evidence) if isinstance(decision, Open) else component


async def _observe_until_settled(
    cluster: ObservedCluster, request: ValidateRequest
) -> tuple[Platform, Observation, Histories]:
    """Observe again while an operation has just ended and the health shown may predate its end."""
    clock, histories = cluster.reader.clock, dict[str, GateHistory]()
    started = clock.monotonic()
    while True:
        platform, observation = await _observe(cluster, request)
        taken_at, states = observation.snapshot.taken_at, observation.snapshot.states
        histories = {name: _next_history(histories.get(name), state, taken_at) for name, state in states.items()}
        closed_gates = [
            _closed_gate(state, platform.applications[name].timing, taken_at, histories[name])
            for name, state in states.items()
        ]
        is_settled = not any(closed and closed.reason in _TRANSIENT_REASONS for closed in closed_gates)
        if is_settled or clock.monotonic() - started > SETTLING_TIMEOUT.total_seconds():
            return platform, observation, histories
        await clock.sleep(SETTLING_POLL_INTERVAL)


async def _observe(cluster: ObservedCluster, request: ValidateRequest) -> tuple[Platform, Observation]:
    if request.platform is None:
        return await observe_all_applications(cluster)
    return request.platform, await observe(
        cluster, request.platform, scopes.selected_nodes(request.platform, request.scope)
    )


def _next_history(history: GateHistory | None, state: NodeState, now: datetime) -> GateHistory:
    """A new history that remembers only since when the operation has been seen: nothing else is waited for."""
    since = gates.extend_history(history, state, now).operation_since if history else now
    return replace(gates.start_history(state, now), operation_since=since)


def with_proven_health(snapshot: Snapshot, platform: Platform, histories: Histories) -> Snapshot:
    """Replace Healthy that lacks proof by what the closed gate says; any worse health is believed without proof."""
    now, states = snapshot.taken_at, dict(snapshot.states)
    for name, state in snapshot.states.items():
        timing = platform.applications[name].timing
        if state.health is Health.HEALTHY and (closed := _closed_gate(state, timing, now, histories.get(name))):
            health = _HEALTH_BY_REASON.get(closed.reason, Health.UNKNOWN)
            states[name] = replace(state, health=health, health_message=closed.detail)
    return replace(snapshot, states=states)


def _closed_gate(state: NodeState, timing: NodeTiming, now: datetime, history: GateHistory | None) -> Closed | None:
    decision = _gate_decision(state, timing, now, history)
    return None if isinstance(decision, Open) else decision


def _gate_decision(state: NodeState, timing: NodeTiming, now: datetime, history: GateHistory | None) -> GateDecision:
    """Evaluate the gate on one observation, without the stability period: one observation cannot show a duration."""
    target = GateTarget((), (), replace(timing, stability=timedelta(0)))
    if isinstance(state, ApplicationState):
        target = replace(target, revisions=desired_revisions(state), sources=state.sources)
    return gates.evaluate_gate(target, _next_history(history, state, now), now)
