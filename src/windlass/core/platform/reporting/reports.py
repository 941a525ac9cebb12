"""The report of one run: the result and health of each component, failures, durations and recommendations.

A report is an immutable value. Its dataclasses define the JSON document, so their field names are a contract.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import Evidence, Failed, Open
from windlass.core.platform.model.graphs import ZERO, CriticalPath
from windlass.core.platform.model.health import Health, group_health
from windlass.core.platform.model.snapshots import ApplicationState, NodeState, Snapshot
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans
from windlass.core.platform.planning.definitions import definition_failures
from windlass.core.platform.reporting import verdicts
from windlass.core.platform.reporting.failures import Failure, outcome_failures, unhealthy_failures
from windlass.core.platform.reporting.run_recommendations import RunEnding, run_recommendations
from windlass.core.platform.reporting.verdicts import Verdict  # noqa: TC001 - the schema of the report resolves it

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.graphs import Graph
    from windlass.core.platform.planning.object_changes import ApplicationChange
    from windlass.core.platform.planning.plans import Plan, Step, Unmet
    from windlass.core.platform.reporting.compliance import Finding
    from windlass.core.platform.reporting.recommendations import Recommendation


NO_CRITICAL_PATH = CriticalPath((), ZERO)


class Action(StrEnum):
    DEPLOY = "deploy"
    VALIDATE = "validate"
    TEARDOWN = "teardown"


@dataclass(frozen=True, slots=True)
class ApiCalls:
    """API requests counted by the client. A refresh is a write that only asks Argo CD to compare again."""

    reads: int = 0
    writes: int = 0
    refreshes: int = 0


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Facts about a run that its report needs: what was requested, when it ran, and its API calls."""

    action: Action
    environment: str
    scope: str
    started: datetime
    finished: datetime
    calls: ApiCalls
    run_id: str = ""
    is_dry_run: bool = False
    is_out_of_time: bool = False
    was_interrupted: bool = False
    stop_reason: str = ""
    """Why the run was stopped early."""
    is_strict: bool = False
    """Compliance findings turn a successful verdict into a partial one."""
    argocd_namespace: str = "argocd"
    """Namespace of Applications whose target has no namespace."""
    platform: str = ""
    """Name of the platform; empty for all Applications of a cluster, like `platform_file`."""
    platform_file: str = ""
    """Path of the platform file, or `EMBEDDED_PLATFORM`."""
    server: str = ""
    """URL of the API server."""

    @property
    def has_ended_early(self) -> bool:
        return self.is_out_of_time or self.was_interrupted

    @property
    def ending(self) -> RunEnding:
        return RunEnding(
            action=self.action,
            scope=self.scope,
            is_dry_run=self.is_dry_run,
            is_strict=self.is_strict,
            is_out_of_time=self.is_out_of_time,
            was_interrupted=self.was_interrupted,
            stop_reason=self.stop_reason,
            duration=self.finished - self.started,
            argocd_namespace=self.argocd_namespace,
        )


@dataclass(frozen=True, slots=True)
class Summary:
    action: Action
    environment: str
    platform: str
    platform_file: str
    server: str
    scope: str
    verdict: Verdict
    exit_code: int
    health: Health | None
    started: datetime
    finished: datetime
    duration: timedelta
    run_id: str
    is_dry_run: bool
    was_interrupted: bool
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    stack: str
    result: Result | None
    """`None` for `validate`, which changes nothing."""
    health: Health
    is_critical: bool
    sync: str = ""
    revisions: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    attempts: int = 0
    duration: timedelta | None = None
    expected: timedelta | None = None
    """How long its step usually takes; `None` if it had no step."""
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    calls: ApiCalls
    attempts: int = 0
    estimated: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Span:
    name: str
    started: datetime
    finished: datetime


@dataclass(frozen=True, slots=True)
class Timeline:
    spans: tuple[Span, ...] = ()
    critical_path: CriticalPath = NO_CRITICAL_PATH


@dataclass(frozen=True, slots=True)
class Removal:
    """What a teardown kept on purpose, the orphans it left behind, and the volumes that are gone with their data."""

    retained: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    destroyed: tuple[str, ...] = ()


EMPTY_REMOVAL = Removal()


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one run; sections that do not apply to its action are empty."""

    summary: Summary
    components: tuple[Component, ...] = ()
    failures: tuple[Failure, ...] = ()
    metrics: Metrics = Metrics(ApiCalls())
    timeline: Timeline = Timeline()
    recommendations: tuple[Recommendation, ...] = ()
    steps: tuple[Step, ...] = ()
    changes: tuple[ApplicationChange, ...] = ()
    """What each sync of a plan changes."""
    unmet: tuple[Unmet, ...] = ()
    compliance: tuple[Finding, ...] = ()
    removal: Removal = EMPTY_REMOVAL
    notices: tuple[str, ...] = ()
    """Messages about the whole run that readers of the report must know, such as its limitations."""


@dataclass(frozen=True, slots=True)
class FinalState:
    """The cluster at the end of a run, and diagnostic lines by node."""

    snapshot: Snapshot
    diagnostics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def plan_report(run: RunRecord, platform: Platform, plan: Plan, snapshot: Snapshot) -> Report:
    """Report of a run that changed nothing: a dry run, a refused run, or a run that ended before its first step."""
    outcomes = [*plans.unchanged_outcomes(platform, plan, snapshot), *plans.failed_outcomes(plan)]
    outcomes += [Outcome(step.name, Result.NOT_STARTED) for step in plan.steps if step.name not in plan.failures]
    failures = outcome_failures(outcomes, {})
    verdict = (
        verdicts.not_started_verdict(is_out_of_time=run.is_out_of_time)
        if run.has_ended_early
        else verdicts.plan_verdict(plan)
    )
    components = _components(platform, outcomes, snapshot)
    return Report(
        summary=_summary(run, verdict, components),
        components=components,
        failures=failures,
        metrics=Metrics(run.calls, estimated=plan.makespan),
        timeline=Timeline(critical_path=plan.critical_path),
        recommendations=run_recommendations(run.ending, platform, verdict, failures, plan.unmet, plan.makespan),
        steps=plan.steps,
        unmet=plan.unmet,
    )


def unobserved_report(run: RunRecord, platform: Platform, names: Iterable[str]) -> Report:
    """Report of a run that ended before it had observed the cluster: the health of all nodes is unknown."""
    result = None if run.action is Action.VALIDATE else Result.NOT_STARTED
    unobserved = (_component(platform, name, None) for name in sorted(names))
    components = tuple(replace(each, result=result, health=Health.UNKNOWN) for each in unobserved)
    verdict = verdicts.not_started_verdict(is_out_of_time=run.is_out_of_time)
    return Report(
        summary=_summary(run, verdict, components),
        components=components,
        metrics=Metrics(run.calls),
        recommendations=run_recommendations(run.ending, platform, verdict),
    )


def run_report(
    run: RunRecord,
    platform: Platform,
    plan: Plan,
    outcomes: tuple[Outcome, ...],
    final_state: FinalState,
    removal: Removal = EMPTY_REMOVAL,
) -> Report:
    """Report of a deploy or a teardown. `outcomes` covers every node in the scope, including unchanged nodes."""
    if run.action is Action.TEARDOWN:
        has_orphans = bool(removal.orphans)
        verdict = verdicts.teardown_verdict(outcomes, has_orphans=has_orphans, is_out_of_time=run.is_out_of_time)
    else:
        verdict = verdicts.deploy_verdict(outcomes, is_out_of_time=run.is_out_of_time)
    components = _components(platform, outcomes, final_state.snapshot)
    failures = outcome_failures(outcomes, final_state.diagnostics)
    return Report(
        summary=_summary(run, verdict, components),
        components=components,
        failures=failures,
        metrics=Metrics(run.calls, sum(outcome.attempts for outcome in outcomes), plan.makespan),
        timeline=_timeline(plan.graph, outcomes),
        recommendations=run_recommendations(run.ending, platform, verdict, failures, estimated=plan.makespan),
        steps=plan.steps,
        removal=removal,
    )


def validate_report(
    run: RunRecord, platform: Platform, names: Iterable[str], final_state: FinalState, findings: tuple[Finding, ...]
) -> Report:
    """Report of a validate; `names` are the nodes in the scope."""
    snapshot = final_state.snapshot
    undefined = definition_failures(platform, snapshot, names)
    components = tuple(
        replace(
            _component(platform, name, snapshot.states.get(name)),
            causes=undefined[name].causes if name in undefined else (),
        )
        for name in sorted(names)
    )
    verdict = verdicts.validate_verdict(
        {component.name: component.health for component in components},
        [component.name for component in components if component.is_critical],
        is_out_of_time=run.is_out_of_time,
        has_strict_findings=run.is_strict and bool(findings),
    )
    unhealthy = {each.name: each.health for each in components if each.health is not Health.HEALTHY}
    failures = unhealthy_failures(platform, unhealthy, snapshot, final_state.diagnostics)
    return Report(
        summary=_summary(run, verdict, components),
        components=components,
        failures=failures,
        metrics=Metrics(run.calls),
        recommendations=run_recommendations(run.ending, platform, verdict, failures),
        compliance=findings,
    )


def _summary(run: RunRecord, verdict: Verdict, components: tuple[Component, ...]) -> Summary:
    counts: dict[str, int] = {}
    for component in components:
        word = str(component.result or component.health)
        counts[word] = counts.get(word, 0) + 1
    return Summary(
        action=run.action,
        environment=run.environment,
        platform=run.platform,
        platform_file=run.platform_file,
        server=run.server,
        scope=run.scope,
        verdict=verdict,
        exit_code=int(verdicts.exit_code_for(verdict)),
        health=None if run.action is Action.TEARDOWN else group_health(c.health for c in components),
        started=run.started,
        finished=run.finished,
        duration=run.finished - run.started,
        run_id=run.run_id,
        is_dry_run=run.is_dry_run,
        was_interrupted=run.was_interrupted,
        counts=dict(sorted(counts.items())),
    )


def _components(platform: Platform, outcomes: Iterable[Outcome], snapshot: Snapshot) -> tuple[Component, ...]:
    ordered = sorted(outcomes, key=lambda outcome: outcome.name)
    return tuple(_component(platform, each.name, snapshot.states.get(each.name), each) for each in ordered)


def _component(platform: Platform, name: str, state: NodeState | None, outcome: Outcome | None = None) -> Component:
    application = platform.applications[name]
    decision = outcome.decision if outcome else None
    application_state = state if isinstance(state, ApplicationState) else None
    return Component(
        name=name,
        stack=application.stack,
        result=outcome.result if outcome else None,
        health=_health(state, outcome),
        is_critical=application.critical,
        sync=str(application_state.sync) if application_state else "",
        revisions=application_state.revisions if application_state else (),
        causes=outcome.causes if outcome else (),
        attempts=outcome.attempts if outcome else 0,
        duration=outcome.duration if outcome else None,
        expected=application.timing.expected if outcome and outcome.result is not Result.UNCHANGED else None,
        evidence=decision.evidence if isinstance(decision, Open | Failed) else None,
    )


def _health(state: NodeState | None, outcome: Outcome | None) -> Health:
    """The observed health, but Failed instead of Healthy if the node failed in this run."""
    observed_health = state.health if state else Health.MISSING
    has_failed = outcome is not None and outcome.result is Result.FAILED
    return Health.FAILED if has_failed and observed_health is Health.HEALTHY else observed_health


def _timeline(graph: Graph, outcomes: Iterable[Outcome]) -> Timeline:
    spans = [Span(each.name, each.started, each.finished) for each in outcomes if each.started and each.finished]
    measured = {span.name: span.finished - span.started for span in spans}
    durations = {name: measured.get(name, ZERO) for name in graph.names}
    return Timeline(tuple(sorted(spans, key=lambda span: (span.started, span.name))), graph.critical_path(durations))
