"""`validate`: check with evidence that everything in scope is healthy, and that the platform follows its rules.

Reads only.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo import policy_reports
from windlass.core.platform import gates
from windlass.core.platform.model import scopes
from windlass.core.platform.model.health import Health, worst_of
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.snapshots import ApplicationState, Snapshot, wanted_revisions
from windlass.core.platform.reporting import compliance, reports
from windlass.core.platform.reporting.compliance import Rule
from windlass.core.platform.reporting.reports import Action, ApiCalls, Ending, Run
from windlass.operations.object_health import inspect, places_of
from windlass.operations.observation import observe, observe_everything, platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from windlass.argo.cd.applications import Application
    from windlass.core.platform.model.applications import Patience, Platform
    from windlass.core.platform.model.snapshots import State
    from windlass.core.platform.reporting.reports import Component, Report
    from windlass.operations.object_health import Sick
    from windlass.operations.observation import Cluster, Observation

SETTLING = gates.SETTLED_AFTER + timedelta(seconds=2)  # by then every health reflects the last operation, or never will
LINES = 10  # on the objects of one Application; more lines do not help
PAUSE = 1.0  # seconds between two observations while a health is not settled
EVERYTHING = "all Applications"
WHOLE = Scope()
_PASSING = {gates.Reason.NOT_FRESH, gates.Reason.NOT_COMPARED}
_MEANING = {
    gates.Reason.OPERATION_REQUESTED: Health.PROGRESSING,
    gates.Reason.OPERATION_RUNNING: Health.PROGRESSING,
    gates.Reason.DELETING: Health.DEGRADED,
    gates.Reason.ERROR_CONDITION: Health.DEGRADED,
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What `validate` was asked to check; `platform` is `None` for all Applications of the cluster."""

    environment: str
    platform: Platform | None = None
    scope: Scope = WHOLE
    is_strict: bool = False


async def validate(cluster: Cluster, wish: Wish) -> Report:
    started = cluster.now()
    platform, observation = await _settled(cluster, wish)
    names = scopes.selected(platform, wish.scope)
    here = _here(observation)
    critical = {name: application for name, application in here.items() if platform.applications[name].critical}
    sick = await inspect(cluster, critical, without=places_of(observation.applications.values()))
    snapshot = inspected(proven(observation.snapshot, platform), sick)
    findings = compliance.findings(snapshot, observation.judged_kinds | cluster.judge.kinds)
    if wish.platform is None:  # no platform file gives an order that could be bypassed
        findings = tuple(finding for finding in findings if finding.rule is not Rule.SINGLE_PATH)
    if here:
        findings += policy_reports.findings(await policy_reports.read(cluster.reader), here)
    run = _run(wish, started, cluster)
    lines = {name: tuple(map(str, found[:LINES])) for name, found in sick.items()}
    report = reports.of_validate(run, platform, names, Ending(snapshot, lines), findings)
    return replace(report, components=tuple(_evident(each, platform, snapshot) for each in report.components))


async def validate_within(seconds: float, cluster: Cluster, wish: Wish) -> Report:
    """Validate; if that takes too long, return a report that says so."""
    started, platform = cluster.now(), wish.platform or platform_of({})
    try:
        async with asyncio.timeout(seconds):
            return await validate(cluster, wish)
    except TimeoutError:
        run = replace(_run(wish, started, cluster), is_out_of_time=True)
        report = reports.of_nothing(run, platform, scopes.selected(platform, wish.scope))
        return replace(report, notices=("out of time (see --timeout): nothing is known",))


def _run(wish: Wish, started: datetime, cluster: Cluster) -> Run:
    counts = cluster.reader.counts
    return Run(
        action=Action.VALIDATE,
        environment=wish.environment,
        scope=str(wish.scope) if wish.platform else EVERYTHING,
        started=started,
        finished=cluster.now(),
        calls=ApiCalls(reads=counts.total - counts.writes, writes=counts.writes),
        is_strict=wish.is_strict,
        argocd=cluster.argocd,
    )


def _here(observation: Observation) -> Mapping[str, Application]:
    """Applications deployed to this cluster; for those in other clusters only the status from Argo CD is available."""
    states = observation.snapshot.states
    remote = {name for name, state in states.items() if isinstance(state, ApplicationState) and state.is_remote}
    return {name: application for name, application in observation.applications.items() if name not in remote}


def inspected(snapshot: Snapshot, sick: Mapping[str, Sequence[Sick]]) -> Snapshot:
    """Lower the health of each Application to that of its worst object.

    The message names that object, unless Argo CD shows the Application as unhealthy with a message of its own.
    """
    states = {name: _no_better(state, sick.get(name, ())) for name, state in snapshot.states.items()}
    return replace(snapshot, states=states)


def _no_better(state: State, sick: Sequence[Sick]) -> State:
    if not sick:
        return state
    worst = worst_of(each.health for each in sick)
    first = next(each for each in sick if each.health is worst)
    more = f" (and {len(sick) - 1} more)" if len(sick) > 1 else ""
    said = "" if state.health is Health.HEALTHY else state.health_message
    return replace(state, health=worst_of([state.health, worst]), health_message=said or f"{first}{more}")


def _evident(component: Component, platform: Platform, snapshot: Snapshot) -> Component:
    """Add the evidence for its health to a healthy component."""
    if component.health is not Health.HEALTHY:
        return component
    patience = platform.applications[component.name].patience
    judgement = _judgement(snapshot.states[component.name], patience, snapshot.taken_at)
    return replace(component, evidence=judgement.evidence) if isinstance(judgement, gates.Open) else component


async def _settled(cluster: Cluster, wish: Wish) -> tuple[Platform, Observation]:
    """Observe again while an operation has just ended and the health shown may predate its end."""
    clock = cluster.reader.clock
    began = clock.monotonic()
    while True:
        platform, found = await _look(cluster, wish)
        taken, states = found.snapshot.taken_at, found.snapshot.states
        judged = [_closed(state, platform.applications[name].patience, taken) for name, state in states.items()]
        is_settled = not any(closed and closed.reason in _PASSING for closed in judged)
        if is_settled or clock.monotonic() - began > SETTLING.total_seconds():
            return platform, found
        await clock.sleep(PAUSE)


async def _look(cluster: Cluster, wish: Wish) -> tuple[Platform, Observation]:
    if wish.platform is None:
        return await observe_everything(cluster)
    return wish.platform, await observe(cluster, wish.platform, scopes.selected(wish.platform, wish.scope))


def proven(snapshot: Snapshot, platform: Platform) -> Snapshot:
    """Replace Healthy that lacks proof by what the closed gate says; any worse health is believed without proof."""
    states = {
        name: _proven(state, platform.applications[name].patience, snapshot.taken_at)
        for name, state in snapshot.states.items()
    }
    return replace(snapshot, states=states)


def _proven(state: State, patience: Patience, now: datetime) -> State:
    closed = _closed(state, patience, now) if state.health is Health.HEALTHY else None
    if closed is None:
        return state
    return replace(state, health=_MEANING.get(closed.reason, Health.UNKNOWN), health_message=closed.detail)


def _closed(state: State, patience: Patience, now: datetime) -> gates.Closed | None:
    judgement = _judgement(state, patience, now)
    return None if isinstance(judgement, gates.Open) else judgement


def _judgement(state: State, patience: Patience, now: datetime) -> gates.Judgement:
    """Evaluate the gate on one observation, without the stability period: one observation cannot show a duration."""
    wanted = gates.Wanted((), (), replace(patience, stability=timedelta(0)))
    if isinstance(state, ApplicationState):
        wanted = replace(wanted, revisions=wanted_revisions(state), sources=state.sources)
    return gates.judge(wanted, gates.first_seen(state, now), now)
