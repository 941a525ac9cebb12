"""A seed is a story: a platform, what its applications do, what goes wrong, and what is run. Pure."""

from __future__ import annotations

import random  # noqa: TID251 - seeded, handed on as a value
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tests import builders
from tests.sandbox.controllers.objects import CASCADE, URL, config, workload
from windlass.argo.cd.root_application import NAME as ROOT_NAME
from windlass.argo.cd.root_application import RootApplication
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
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

Chance = random.Random
WHOLE = Scope()
US = "windlass"
"""The user that the product is, for faults and for the journal."""
ARGOCD, NAMESPACE = "argocd", "default"
APPLICATIONS = "applications.argoproj.io"
ROOT = RootApplication(URL, "main", "root", {"domain": "example.org"})
TROUBLES = ("image", "unready", "refused", "broken", "crashing")
"""Ways in which an application may never get healthy."""
LARGEST, SMALL = 200, 6
SMALL_SEEDS = 100  # the first ones have small platforms: they are played with every change
LONGEST_RUN = timedelta(hours=3)
LOWERED = 0.5  # the share of seeds whose platform is lowered at the end, and raised again
VERBS = ("*", "patch", "update", "get", "watch", "create")


@dataclass(frozen=True, slots=True)
class Part:
    """One application at one commit."""

    name: str
    version: int
    kind: str = "Deployment"
    """Empty: it has a ConfigMap alone."""
    replicas: int = 1
    ready_after: float = 0.5
    trouble: str = ""

    @property
    def image(self) -> str:
        return f"{self.name}:{self.version}"


@dataclass(frozen=True, slots=True)
class Act:
    """One run, and what happens to it."""

    action: Action = Action.DEPLOY
    crash_at: int = 0
    """The write of ours, counted from 1, after which the process is gone."""
    stop_at: float = 0.0
    """Seconds until somebody stops it."""
    limit: timedelta = LONGEST_RUN
    push_at: float = 0.0
    """Seconds until the next commit is pushed."""
    rival_at: float = 0.0
    """Seconds until somebody starts another run beside it."""
    rival: Action = Action.DEPLOY
    scope: Scope = WHOLE
    faults: tuple[Fault, ...] = ()
    disturbances: tuple[tuple[float, str], ...] = ()
    """When watches are cut, fall silent or expire; or the controller is started anew."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A finalizer of somebody's on an object, for so many seconds from the beginning of the lowering."""

    kind: str
    namespace: str
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Lowering:
    """How the platform is lowered after it was raised."""

    acts: tuple[Act, ...] = ()
    holds: tuple[Hold, ...] = ()
    stops: dict[str, float] = field(default_factory=dict)
    """Seconds that a pod of an application takes to end."""
    removal: float = 0.2
    """Seconds from an object that is gone to the next look at what is left."""
    volumes: tuple[str, ...] = ()
    """The applications that have a claim with a volume."""
    policy: VolumePolicy = VolumePolicy.RETAIN


@dataclass(frozen=True)
class Scenario:
    seed: int
    platform: Platform
    commits: tuple[dict[str, Part], ...]
    """What stands in the repository, one after the other; the last one is whole."""
    has_root: bool
    automated: frozenset[str]
    acts: tuple[Act, ...]
    lies: dict[str, StaleStatus]
    overlooked: dict[str, int]
    """How many writes of ours Argo CD overlooks, by Application."""
    lag: float
    jitter: float
    lowering: Lowering | None = None

    def files(self, number: int) -> dict[str, Any]:
        """The repository at a commit."""
        found: dict[str, Any] = {"root/Chart.yaml": "name: root\nversion: 1.0.0\n", "root/values.yaml": ""}
        for part in self.commits[number].values():
            revision = "{{ .Values.targetRevision }}"
            found[f"root/templates/{part.name}.yaml"] = self.application(part, revision)
            if part.trouble != "broken":  # a folder that is not there is a source that cannot be compared
                found[f"{part.name}/all.yaml"] = manifests(part)
        return found

    def application(self, part: Part, revision: str) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "project": "default",
            "source": {"repoURL": URL, "path": part.name, "targetRevision": revision},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
        }
        if part.name in self.automated:
            spec["syncPolicy"] = {"automated": {"selfHeal": True}}
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": part.name, "namespace": ARGOCD, "finalizers": [CASCADE]},
            "spec": spec,
        }


def manifests(part: Part) -> list[dict[str, Any]]:
    found = [config(part.name, str(part.version))]
    if part.trouble == "refused":
        found.append({"apiVersion": "example.org/v1", "kind": "Nothing", "metadata": {"name": part.name}})
    if part.kind:
        marks = {f"{ANNOTATION_PREFIX}ready-after": f"{part.ready_after:.3f}s"}
        marks |= {
            "image": {f"{ANNOTATION_PREFIX}fails-with": "ImagePullBackOff"},
            "unready": {f"{ANNOTATION_PREFIX}ready-after": "never"},
            "crashing": {
                f"{ANNOTATION_PREFIX}fails-with": "CrashLoopBackOff",
                f"{ANNOTATION_PREFIX}ready-after": "never",
            },
        }.get(part.trouble, {})
        spec: dict[str, Any] = {"replicas": part.replicas, "annotations": marks}
        if part.kind == "Deployment":
            spec["progressDeadlineSeconds"] = 300  # longer than any of them takes
        else:
            spec["serviceName"] = part.name
        found.append(workload(part.kind, part.name, part.image, **spec))
    return found


def told(text: str, **changes: Any) -> Scenario:
    """A story that is written, not drawn: `told("b: a")`. By default one commit, one run, and nothing goes wrong.

    `parts`: a change of all applications (a dict of fields), or by name.
    """
    platform = builders.platform(text)
    parts = changes.pop("parts", {})
    first = {name: replace(Part(name, 1, ""), **parts.get(name, {})) for name in platform.applications}
    quiet: dict[str, Any] = {"has_root": True, "automated": frozenset(), "acts": (Act(),), "lies": {}, "overlooked": {}}
    made = Scenario(seed=0, platform=platform, commits=(first,), lag=0.01, jitter=0.0, **quiet)
    return replace(made, **changes)


def newer(parts: dict[str, Part], *names: str, **changes: Any) -> dict[str, Part]:
    """The next commit: these applications, or all, are of a new version."""
    chosen = names or tuple(parts)
    new = {name: replace(parts[name], version=parts[name].version + 1, **changes) for name in chosen}
    return {**parts, **new}


def drawn(seed: int) -> Scenario:
    """The story of a seed, always the same."""
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
        lowering=_lowering(seed, commits[-1], has_root=has_root),
    )


def _graph(chance: Chance, largest: int) -> tuple[list[str], dict[str, list[str]]]:
    """Mostly small ones: they are told more quickly, and nearly all that can go wrong goes wrong with few."""
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
    """By a chance of its own, as `_lowering`."""
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


def _lowering(seed: int, parts: dict[str, Part], *, has_root: bool) -> Lowering | None:
    """By a chance of its own: what a seed tells of raising does not depend on it."""
    chance = random.Random(f"teardown-{seed}")
    if chance.random() >= LOWERED:
        return None
    names, is_calm = list(parts), chance.random() < 0.15
    holds = [_hold(chance, parts, has_root=has_root) for _ in range(chance.choice((0, 0, 1, 2)))]
    return Lowering(
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


def _hold(chance: Chance, parts: dict[str, Part], *, has_root: bool) -> Hold:
    """Of an application, what it has made, or the one that defines them all."""
    part, seconds = chance.choice(list(parts.values())), chance.choice((5.0, 60.0, 700.0, 10_000.0))
    kinds = ["configmaps", APPLICATIONS, *([f"{part.kind.lower()}s.apps"] if part.kind else [])]
    kind = chance.choice(kinds)
    if has_root and chance.random() < 0.15:
        return Hold(APPLICATIONS, ARGOCD, ROOT_NAME, seconds)
    return Hold(kind, ARGOCD if kind == APPLICATIONS else NAMESPACE, part.name, seconds)
