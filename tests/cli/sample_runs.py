"""A sample run: events of every kind, and its report."""

from __future__ import annotations

from datetime import timedelta

from tests.builders import NEW, NOW, at, platform, snapshot
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.events import (
    Event,
    NodeFinished,
    NodeStarted,
    NodeWaiting,
    PhaseStarted,
    PlanReady,
    RunPhase,
)
from windlass.core.platform.gate_values import Evidence, Failed, Open, Proof, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans
from windlass.core.platform.planning.plans import Verb
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, FinalState, Report, RunRecord

PLATFORM = platform("keycloak: postgres; postgres: ceph; ready: ceph")
PLAN = plans.plan_deploy(PLATFORM, snapshot(), parse_scope("platform"))
HEALTHY_EVIDENCE = Evidence(at(60), Health.HEALTHY, shown=(NEW,), proof=Proof.NEW_REVISION)
DEGRADED_EVIDENCE = Evidence(at(90), Health.DEGRADED)


def outcomes(external_text: str = "it is Degraded") -> tuple[Outcome, ...]:
    return (
        Outcome("ceph", Result.SUCCEEDED, Open(HEALTHY_EVIDENCE), started=at(0), finished=at(60), attempts=1),
        Outcome(
            "postgres",
            Result.FAILED,
            Failed(Reason.DEGRADED, external_text, DEGRADED_EVIDENCE),
            started=at(60),
            finished=at(90),
            attempts=3,
        ),
        Outcome("keycloak", Result.SKIPPED, causes=("postgres",)),
        Outcome("ready", Result.INTERRUPTED, started=at(60)),
    )


def events(external_text: str = "it is Degraded") -> list[Event]:
    """`external_text` is in every place where text of another program may be."""
    return [
        PhaseStarted(RunPhase.PLAN),
        PlanReady(PLAN),
        PhaseStarted(RunPhase.RUN),
        NodeStarted("ceph", Verb.SYNC),
        NodeWaiting("ceph", "Progressing", external_text),
        NodeStarted("postgres", Verb.SYNC, 2),
        LogLine(Level.WARN, external_text, "postgres"),
        LogLine(Level.ERROR, external_text),
        *(NodeFinished(outcome) for outcome in outcomes(external_text)),
    ]


def report(external_text: str = "it is Degraded", *, seconds: float = 90) -> Report:
    run = RunRecord(Action.DEPLOY, "staging", "platform", NOW, NOW + timedelta(seconds=seconds), ApiCalls(12, 3, 1))
    final_state = FinalState(snapshot("ceph=healthy postgres=degraded"), {"postgres": (external_text,)})
    return reports.run_report(run, PLATFORM, PLAN, outcomes(external_text), final_state)
