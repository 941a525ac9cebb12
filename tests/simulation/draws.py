"""Draws the scenario of a seed, always the same one. Pure.

The basis is drawn from the seed itself. Each dimension (`dimensions.py`) then adds to it from a chance of its own, so
that a new dimension does not change what the others draw.
"""

from __future__ import annotations

import random  # noqa: TID251 - seeded, handed on as a value
from dataclasses import replace
from datetime import timedelta

from tests.simulation.dimensions import DIMENSIONS
from tests.simulation.scenarios import (
    APPLICATIONS,
    ARGOCD,
    NAMESPACE,
    TROUBLES,
    US,
    Act,
    HeldObject,
    Part,
    Scenario,
    TeardownScenario,
)
from windlass.argo.cd.root_application import NAME as ROOT_NAME
from windlass.core.platform.model.applications import (
    ApplicationNode,
    ApplicationRef,
    Barrier,
    NodeTiming,
    Platform,
    ResourceRef,
    Retries,
    Stack,
)
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.scopes import Scope, ScopeKind
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus

Chance = random.Random
LARGEST, SMALL = 200, 6
SMALL_SEEDS = 100  # the first seeds have small platforms: every change plays them
TEARDOWN_SHARE = 0.5  # the share of seeds whose platform is torn down at the end, and deployed again
VERBS = ("*", "patch", "update", "get", "watch", "create")


def draw_scenario(seed: int, dimensions: frozenset[str] | None = None) -> Scenario:
    """The scenario of a seed: each default dimension with its share, or all of `dimensions`."""
    scenario = _basis(seed)
    for name, dimension in DIMENSIONS.items():
        chance = Chance(f"{name}-{seed}")
        is_drawn = dimension.is_drawn and chance.random() < dimension.share
        if is_drawn if dimensions is None else name in dimensions:
            scenario = dimension.add(chance, scenario)
    return scenario


def _basis(seed: int) -> Scenario:
    chance = random.Random(seed)
    is_small = seed < SMALL_SEEDS
    names, needs = _graph(chance, SMALL if is_small else LARGEST)
    has_root = chance.random() < 0.6
    commits = _commits(chance, names)
    is_calm = chance.random() < 0.15
    runs = chance.choice((1, 1, 1, 2) if is_small else (1, 1, 2, 2, 3))
    acts = tuple(_act(chance, names, is_calm=is_calm) for _ in range(runs))
    lies = {} if is_calm else {name: _lie(chance) for name in names if chance.random() < 0.25}
    return Scenario(
        seed=seed,
        platform=_platform(chance, commits[0], needs),
        commits=commits,
        has_root=has_root,
        automated=frozenset(name for name in names if has_root and chance.random() < 0.2),
        acts=acts,
        lies=lies,
        overlooked={} if is_calm else _overlooked(seed, names),
        lag=0.01 if is_calm else chance.choice((0.01, 0.01, 0.2, 1.0, 2.5)),
        jitter=0.0 if is_calm else chance.choice((0.0, 0.3, 0.9)),
        teardown=_teardown(seed, commits[-1], has_root=has_root),
    )


def _graph(chance: Chance, largest: int) -> tuple[list[str], dict[str, list[str]]]:
    """Mostly small ones: they run quickly, and nearly all that can go wrong goes wrong with few nodes."""
    sizes = ((1, 3), (2, 5), (3, 6)) if largest <= SMALL else ((1, 4), (3, 6), (4, 8), (5, 12), (12, 20))
    low, high = chance.choice(sizes) if chance.random() < 0.98 else (SMALL, largest)
    names = [f"n{number:03}" for number in range(chance.randint(low, high))]
    share = chance.choice((0.2, 0.5, 0.9))
    needs = {
        name: sorted(chance.sample(names[:place], min(place, chance.randint(1, 3)))) if chance.random() < share else []
        for place, name in enumerate(names)
    }
    return names, needs


def _platform(chance: Chance, parts: dict[str, Part], needs: dict[str, list[str]]) -> Platform:
    nodes = {name: ApplicationNode(name, "all", ApplicationRef(name), timing=_patience(chance)) for name in parts}
    whole = dict(needs)
    for name, part in parts.items():  # some are followed by a gate on their workload itself
        if part.kind == "Deployment" and chance.random() < 0.1:
            target = ResourceRef("apps/v1", "Deployment", name, NAMESPACE)
            nodes[f"{name}-ready"] = ApplicationNode(f"{name}-ready", "all", target, timing=_patience(chance))
            whole[f"{name}-ready"] = [name]
    retries = Retries(chance.randint(1, 3), timedelta(seconds=chance.choice((1, 5, 10))))
    nodes = {name: replace(node, retries=retries) for name, node in nodes.items()}
    made = Platform("simulated", (Stack("all", tuple(sorted(nodes))),), nodes, Graph.build(whole), frozenset(nodes))
    barrier = Barrier.WAVE if chance.random() < 0.15 else Barrier.NONE
    return replace(made, max_parallel=chance.choice((1, 2, 3, 10, 10, 50)), barrier=barrier)


def _patience(chance: Chance) -> NodeTiming:
    """Longer than anything here takes, faults included; what never gets healthy ends by it."""
    stability = timedelta(seconds=chance.choice((0, 0, 0, 2, 10)))
    grace = timedelta(seconds=chance.choice((5, 30)))
    expected = timedelta(seconds=chance.randint(1, 120))
    return NodeTiming(timedelta(minutes=10), timedelta(minutes=10), stability, grace, expected)


def _commits(chance: Chance, names: list[str]) -> tuple[dict[str, Part], ...]:
    """One after the other; some parts are new in each, some are in trouble, in the last one none."""
    kinds = ("Deployment", "Deployment", "Deployment", "StatefulSet", "")
    made = {name: Part(name, 1, chance.choice(kinds), chance.choice((1, 1, 2)), _duration(chance)) for name in names}
    troubled = chance.random() < 0.4
    found = []
    for number in range(chance.choice((1, 2, 3, 4))):
        for name, part in made.items():
            if number and chance.random() < 0.5:
                made[name] = replace(part, version=part.version + 1, ready_after=_duration(chance), trouble="")
            if troubled and chance.random() < 0.15:
                made[name] = replace(made[name], version=part.version + 1, trouble=_trouble(chance, part))
        found.append(dict(made))
    whole = {
        name: replace(part, version=part.version + 1, trouble="", ready_after=_duration(chance))
        if part.trouble
        else part
        for name, part in made.items()
    }
    return (*found, whole)


def _trouble(chance: Chance, part: Part) -> str:
    """A StatefulSet never replaces a pod that is not ready by itself: what is broken there stays so."""
    return chance.choice(TROUBLES if part.kind == "Deployment" else ("refused", "broken"))


def _duration(chance: Chance) -> float:
    return min(120.0, chance.expovariate(1 / chance.choice((0.5, 5.0, 20.0))))


def _overlooked(seed: int, names: list[str]) -> dict[str, int]:
    """From a chance of its own, as `_teardown`."""
    chance = Chance(f"overlooked-{seed}")
    return {name: chance.randint(1, 3) for name in (*names, ROOT_NAME) if chance.random() < 0.1}


def _lie(chance: Chance) -> StaleStatus:
    return StaleStatus(chance.choice(list(Staleness)), chance.choice((0.5, 2.0, 6.0)))


def _act(chance: Chance, names: list[str], *, is_calm: bool) -> Act:
    count, what = len(names), chance.random()
    writes = 2 + 5 * count
    act = Act(push_at=chance.uniform(0.5, 8.0 * count) if chance.random() < 0.4 else 0.0)
    if what < 0.35:
        act = replace(act, crash_at=chance.randint(1, writes))
    elif what < 0.5:
        act = replace(act, stop_at=chance.uniform(0.1, 6.0 * count))
    elif what < 0.6:
        act = replace(act, limit=timedelta(seconds=chance.uniform(1.0, 10.0 * count)))
    elif what < 0.7:
        act = replace(act, rival_at=chance.uniform(0.5, 20.0))
    elif what < 0.8:
        act = replace(act, scope=Scope(ScopeKind.APP, chance.choice(names)))
    if is_calm:
        return act
    return _disturbed(chance, act, VERBS)


def _disturbed(chance: Chance, act: Act, verbs: tuple[str, ...]) -> Act:
    faults = tuple(_fault(chance, verbs) for _ in range(chance.randint(0, 6)))
    words = ("cut", "cut", "silent", "expired", "restart")
    shocks = [(chance.uniform(0.5, 40.0), chance.choice(words)) for _ in range(chance.choice((0, 0, 1, 3)))]
    return replace(act, faults=faults, disturbances=tuple(sorted(shocks)))


def _fault(chance: Chance, verbs: tuple[str, ...]) -> Fault:
    """A few requests of ours, or of a controller's, that go wrong; never so many that nothing is possible."""
    user = chance.choice((US, US, US, "*"))
    kind = chance.choice(("applications.argoproj.io", "leases.coordination.k8s.io", "*"))
    verb = chance.choice(verbs)
    fault = Fault(verb=verb, kind=kind, user=user, skip=chance.randint(0, 30), times=chance.randint(1, 4))
    match chance.choice(("latency", "code", "code", "severed", "lag")):
        case "latency":
            fault.latency = chance.choice((0.05, 0.5, 3.0))
        case "code":
            fault.code = chance.choice((409, 429, 429, 500, 503, 504))
            fault.retry_after = chance.choice((0, 1, 3)) if fault.code in {429, 503} else 0
        case "severed":
            fault.sever = chance.choice(("before", "after"))
        case "lag":
            fault.verb, fault.lag = "watch", chance.choice((0.1, 1.0, 5.0))
    return fault


def _teardown(seed: int, parts: dict[str, Part], *, has_root: bool) -> TeardownScenario | None:
    """From a chance of its own: the deploys of a seed do not depend on it."""
    chance = random.Random(f"teardown-{seed}")
    if chance.random() >= TEARDOWN_SHARE:
        return None
    names, is_calm = list(parts), chance.random() < 0.15
    holds = [_hold(chance, parts, has_root=has_root) for _ in range(chance.choice((0, 0, 1, 2)))]
    return TeardownScenario(
        acts=tuple(_removal(chance, names, is_calm=is_calm) for _ in range(chance.choice((1, 1, 1, 2)))),
        holds=() if is_calm else tuple(holds),
        stops={name: chance.choice((0.1, 2.0, 10.0, 25.0)) for name in names},
        removal=chance.choice((0.2, 0.2, 3.0)),
        volumes=tuple(name for name in names if chance.random() < 0.1),
        policy=chance.choice((VolumePolicy.RETAIN, VolumePolicy.RETAIN, VolumePolicy.DELETE)),
    )


def _removal(chance: Chance, names: list[str], *, is_calm: bool) -> Act:
    count, what, act = len(names), chance.random(), Act(Action.TEARDOWN)
    if what < 0.4:
        act = replace(act, crash_at=chance.randint(1, 4 + 2 * count))
    elif what < 0.55:
        act = replace(act, stop_at=chance.uniform(0.1, 4.0 * count))
    elif what < 0.65:
        act = replace(act, limit=timedelta(seconds=chance.uniform(1.0, 6.0 * count)))
    elif what < 0.85:
        rival = chance.choice((Action.DEPLOY, Action.TEARDOWN))
        act = replace(act, rival=rival, rival_at=chance.choice((0.001, chance.uniform(0.5, 10.0))))
    elif what < 0.95:
        act = replace(act, scope=Scope(ScopeKind.APP, chance.choice(names)))
    return act if is_calm else _disturbed(chance, act, (*VERBS, "list", "delete"))


def _hold(chance: Chance, parts: dict[str, Part], *, has_root: bool) -> HeldObject:
    """Of an application, what it has made, or the one that defines them all."""
    part, seconds = chance.choice(list(parts.values())), chance.choice((5.0, 60.0, 700.0, 10_000.0))
    kinds = ["configmaps", APPLICATIONS, *([f"{part.kind.lower()}s.apps"] if part.kind else [])]
    kind = chance.choice(kinds)
    if has_root and chance.random() < 0.15:
        return HeldObject(APPLICATIONS, ARGOCD, ROOT_NAME, seconds)
    return HeldObject(kind, ARGOCD if kind == APPLICATIONS else NAMESPACE, part.name, seconds)
