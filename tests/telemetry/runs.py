"""A run as it would be told: events of every kind, and its report."""

from __future__ import annotations

from datetime import timedelta

from tests.builders import NEW, NOW, at, platform, snapshot
from windlass.core.platform.events import (
    Event,
    Level,
    NodeFinished,
    NodeStarted,
    NodeWaiting,
    Notice,
    PhaseStarted,
    PlanReady,
    RunPhase,
)
from windlass.core.platform.gates import Evidence, Failed, Open, Proof, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans
from windlass.core.platform.planning.plans import Verb
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, FinalState, Report, RunRecord

PLATFORM = platform("keycloak: postgres; postgres: ceph; ready: ceph")
PLAN = plans.plan_deploy(PLATFORM, snapshot(), parse_scope("platform"))
GOOD = Evidence(at(60), Health.HEALTHY, shown=(NEW,), proof=Proof.NEW_REVISION)
SICK = Evidence(at(90), Health.DEGRADED)


def outcomes(said: str = "it is Degraded") -> tuple[Outcome, ...]:
    return (
        Outcome("ceph", Result.SUCCEEDED, Open(GOOD), started=at(0), finished=at(60), attempts=1),
        Outcome(
            "postgres",
            Result.FAILED,
            Failed(Reason.DEGRADED, said, SICK),
            started=at(60),
            finished=at(90),
            attempts=3,
        ),
        Outcome("keycloak", Result.SKIPPED, causes=("postgres",)),
        Outcome("ready", Result.INTERRUPTED, started=at(60)),
    )


def events(said: str = "it is Degraded") -> list[Event]:
    """`said` stands wherever a text of others may stand."""
    return [
        PhaseStarted(RunPhase.PLAN),
        PlanReady(PLAN),
        PhaseStarted(RunPhase.RUN),
        NodeStarted("ceph", Verb.SYNC),
        NodeWaiting("ceph", "Progressing", said),
        NodeStarted("postgres", Verb.SYNC, 2),
        Notice(Level.WARN, said, "postgres"),
        Notice(Level.ERROR, said),
        *(NodeFinished(outcome) for outcome in outcomes(said)),
    ]


def report(said: str = "it is Degraded", *, seconds: float = 90) -> Report:
    run = RunRecord(Action.DEPLOY, "staging", "platform", NOW, NOW + timedelta(seconds=seconds), ApiCalls(12, 3, 1))
    ending = FinalState(snapshot("ceph=healthy postgres=degraded"), {"postgres": (said,)})
    return reports.run_report(run, PLATFORM, PLAN, outcomes(said), ending)
