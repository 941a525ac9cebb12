"""Reports of every action, from the functions that make real ones."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from tests.builders import NEW, NOW, at, platform, snapshot, state
from windlass.core.platform.gate_values import Evidence, Failed, Open, Proof, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.model.snapshots import Snapshot
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans, schedules
from windlass.core.platform.reporting import compliance, reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, FinalState, Removal, Report, RunRecord
from windlass.settings.source import SettingsSource

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.core.platform.model.applications import Platform

SMALL = platform("keycloak: postgres*; postgres*: ceph; ready+: ceph")
WHOLE = parse_scope("platform")
GOOD = Evidence(at(60), Health.HEALTHY, proof=Proof.NEW_REVISION)
FINDING = compliance.Finding(compliance.Rule.NO_HOOKS, "ceph", "a hook", "remove it")


def run(**changes: Any) -> RunRecord:
    given: dict[str, Any] = {
        "action": Action.DEPLOY,
        "environment": "staging",
        "scope": "platform",
        "started": NOW,
        "finished": at(90),
        "calls": ApiCalls(12, 3, 1),
        "run_id": "run-1",
        "platform": "reference",
        "platform_file": "dag.yaml",
        "server": "https://staging.example.org:6443",
    }
    return RunRecord(**given | changes)


@cache
def reference() -> Platform:
    """43 applications."""
    return SettingsSource({}).settings({}).platform


def deployed(
    platform: Platform, broken: Collection[str] = (), diagnostics: tuple[str, ...] = (), slower: float = 1
) -> Report:
    """A whole run on paper, each taking `slower` than expected; what is broken fails when its time is over."""
    plan = plans.plan_deploy(platform, snapshot(), WHOLE)
    limits = schedules.ScheduleLimits(platform.max_parallel)
    causes = schedules.skip_causes(plan.graph, {name: (name,) for name in broken})
    outcomes = []
    for span in schedules.estimate_timeline(plan.graph, platform.expected_durations, limits):
        times: dict[str, Any] = {
            "started": NOW + span.start * slower,
            "finished": NOW + span.end * slower,
            "attempts": 1,
        }
        if span.name in causes and span.name not in broken:
            outcomes.append(Outcome(span.name, Result.SKIPPED, causes=causes[span.name]))
        elif span.name in broken:
            failed = Failed(Reason.DEGRADED, f"{span.name}: 1 of 3 ready", GOOD)
            outcomes.append(Outcome(span.name, Result.FAILED, failed, **times))
        else:
            outcomes.append(Outcome(span.name, Result.SUCCEEDED, Open(GOOD), **times))
    good = {each.name: state() for each in outcomes if each.is_successful}
    ending = FinalState(Snapshot(NOW, good), dict.fromkeys(broken, diagnostics))
    finished = max(each.finished for each in outcomes if each.finished) + timedelta(seconds=1)
    return reports.run_report(run(finished=finished), platform, plan, tuple(outcomes), ending)


def partial_deploy(**changes: Any) -> Report:
    """One of each result but `unchanged` and `not started`."""
    plan = plans.plan_deploy(SMALL, snapshot(), WHOLE)
    failed = Failed(Reason.DEGRADED, "it is Degraded", GOOD)
    outcomes = (
        Outcome("ceph", Result.SUCCEEDED, Open(GOOD), started=at(0), finished=at(60), attempts=1),
        Outcome("postgres", Result.FAILED, failed, started=at(60), finished=at(90), attempts=3),
        Outcome("keycloak", Result.SKIPPED, causes=("postgres",)),
        Outcome("ready", Result.INTERRUPTED, started=at(60)),
    )
    ending = FinalState(snapshot("ceph=healthy postgres=degraded"), {"postgres": ("pod postgres-0 restarts",)})
    return reports.run_report(run(**changes), SMALL, plan, outcomes, ending)


def dry_run(scope: str = "app:keycloak") -> Report:
    plan = plans.plan_deploy(SMALL, snapshot("ceph=healthy"), parse_scope(scope))
    return reports.plan_report(run(is_dry_run=True, scope=scope), SMALL, plan, snapshot("ceph=healthy"))


def validated(cluster: str = "ceph=healthy postgres=degraded", **changes: Any) -> Report:
    wish = run(action=Action.VALIDATE, **changes)
    return reports.validate_report(
        wish, SMALL, ["ceph", "keycloak", "postgres"], FinalState(snapshot(cluster)), (FINDING,)
    )


def torn_down(orphans: tuple[str, ...] = ("Namespace rook-ceph",)) -> Report:
    plan = plans.plan_teardown(SMALL, snapshot("ceph=healthy"), WHOLE)
    gone = Open(Evidence(at(1), Health.MISSING, proof=Proof.ABSENT))
    outcomes = (Outcome("ceph", Result.SUCCEEDED, gone, started=at(0), finished=at(1), attempts=1),)
    removal = Removal(("PersistentVolume pv-1",), orphans)
    wish = run(action=Action.TEARDOWN)
    return reports.run_report(wish, SMALL, plan, outcomes, FinalState(snapshot()), removal)


SAMPLES = {
    "deploy": partial_deploy(),
    "deploy of the reference": deployed(reference()),
    "interrupted": partial_deploy(was_interrupted=True),
    "dry run": dry_run("platform"),
    "dry run with something in the way": dry_run(),
    "validate": validated(),
    "strict validate": validated("ceph=healthy postgres=healthy keycloak=healthy", is_strict=True),
    "teardown": torn_down(),
    "clean teardown": torn_down(()),
}


@st.composite
def any_reports(draw: st.DrawFn) -> Report:
    """Deploys and teardowns with any outcome of anything, and texts as hostile as they come."""
    texts = st.text(st.characters(), max_size=20)
    plan = plans.plan_deploy(SMALL, snapshot(), WHOLE)
    outcomes = []
    for name in SMALL.graph.names:
        result = draw(st.sampled_from(Result))
        failed = Failed(draw(st.sampled_from(Reason)), draw(texts))
        evidence = Evidence(
            NOW, draw(st.sampled_from(Health)), draw(texts), wanted=(NEW,), is_drifting=draw(st.booleans())
        )
        judgement = failed if result is Result.FAILED else Open(evidence)
        finished = draw(st.none() | st.integers(0, 99).map(at))
        outcomes.append(Outcome(name, result, judgement, draw(st.just(()) | st.just(("ceph",))), NOW, finished))
    diagnostics = {name: tuple(draw(st.lists(texts, max_size=3))) for name in SMALL.graph.names}
    removal = Removal((draw(texts),), tuple(draw(st.lists(texts, max_size=2))))
    wish = run(
        action=draw(st.sampled_from([Action.DEPLOY, Action.TEARDOWN])),
        environment=draw(texts),
        is_out_of_time=draw(st.booleans()),
    )
    return reports.run_report(wish, SMALL, plan, tuple(outcomes), FinalState(snapshot(), diagnostics), removal)
