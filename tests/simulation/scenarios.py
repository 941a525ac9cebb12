"""The values of a scenario: a platform, its commits, the runs on it, and what goes wrong. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests import builders
from tests.sandbox.controllers.objects import CASCADE, URL, config, workload
from windlass.argo.cd.root_application import RootApplication
from windlass.core.platform.model.annotations import DEPENDS_ON
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from windlass.core.platform.model.applications import Platform
    from windlass.sandbox.apiserver.faults import Fault
    from windlass.sandbox.argocd.application_specs import StaleStatus

WHOLE = Scope()
ENVIRONMENT = "development"
US = "windlass"
"""The user that the product is, for faults and for the journal."""
ANOTHER_CLIENT = "another-client"
"""The user of all third parties."""
ARGOCD, NAMESPACE = "argocd", "default"
APPLICATIONS = "applications.argoproj.io"
ROOT = RootApplication(URL, "main", "root", {"domain": "example.org"})
TROUBLES = ("image", "unready", "refused", "broken", "crashing")
"""Ways in which an application may never get healthy."""
LONGEST_RUN = timedelta(hours=3)
SILENCE = 100.0  # seconds until a run notices that a watch is dead


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
class Event:
    """Something that happens beside a run, `at` seconds after its start; see `events.Events` for the kinds."""

    at: float
    kind: str
    target: str = ""
    """The name of an application, or empty."""
    seconds: float = 0.0
    """For how long, if it ends by itself."""
    after_operation: bool = False
    """`at` counts from the first operation that the run requests of the target, not from its start."""


@dataclass(frozen=True, slots=True)
class Act:
    """One run, and what happens to it."""

    action: Action = Action.DEPLOY
    crash_at: int = 0
    """The write of ours, counted from 1, after which the process is gone."""
    stop_at: float = 0.0
    """Seconds until it is interrupted."""
    limit: timedelta = LONGEST_RUN
    push_at: float = 0.0
    """Seconds until the next commit is pushed."""
    pushes_first: bool = False
    """Whether the next commit is pushed before the run starts."""
    is_approved: bool = False
    """Whether the run executes a plan that was made right before it, and nothing else."""
    pushes_after_plan: bool = False
    """Whether the next commit is pushed between the plan and the run."""
    before_plan: tuple[Event, ...] = ()
    after_plan: tuple[Event, ...] = ()
    """What happens, one after the other, before the plan, and between the plan and the run."""
    rival_at: float = 0.0
    """Seconds until another run is started beside it; with a `lease_outage`, from then on."""
    rival: Action = Action.DEPLOY
    scope: Scope = WHOLE
    environment: str = ENVIRONMENT
    platform_name: str = ""
    """The name of another platform that the run is for; empty: that of the scenario."""
    faults: tuple[Fault, ...] = ()
    disturbances: tuple[tuple[float, str], ...] = ()
    """When watches are cut, fall silent or expire; or the controller is restarted."""
    events: tuple[Event, ...] = ()
    late_writes: dict[int, float] = field(default_factory=dict)
    """By number of the write, from 1: the seconds after which it arrives, whether or not the run still waits."""
    pause: tuple[float, float] = (0.0, 0.0)
    """The seconds until its process is paused, and for how long."""
    lease_outage: tuple[int, float] | None = None
    """The number of the last write to the Lease that arrives, and the seconds until its answer does."""

    @property
    def is_misdirected(self) -> bool:
        """Whether it is for another environment or platform than that of the cluster."""
        return self.environment != ENVIRONMENT or bool(self.platform_name)

    @property
    def is_disturbed(self) -> bool:
        """Whether requests or watches of the run may fail or be late."""
        return bool(self.faults or self.disturbances or self.late_writes or self.pause[1] or self.lease_outage)


@dataclass(frozen=True, slots=True)
class HeldObject:
    """A finalizer that another client keeps on an object, for so many seconds from the start of the teardown."""

    kind: str
    namespace: str
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TeardownScenario:
    """How the platform is torn down after it was deployed."""

    acts: tuple[Act, ...] = ()
    holds: tuple[HeldObject, ...] = ()
    stops: dict[str, float] = field(default_factory=dict)
    """Seconds that a pod of an application takes to end."""
    removal: float = 0.2
    """Seconds from an object that is gone to the next look at what is left."""
    volumes: tuple[str, ...] = ()
    """The applications that have a claim with a volume."""
    policy: VolumePolicy = VolumePolicy.RETAIN
    foreign: tuple[tuple[str, str], ...] = ()
    """What another client has put into the cluster, and the application to which it is close: see `foreign_objects`."""
    orphaned: tuple[str, ...] = ()
    """The Applications that another client deletes without their objects before the first teardown."""


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
    teardown: TeardownScenario | None = None
    broken_roots: frozenset[int] = frozenset()
    """The commits whose root cannot be rendered."""
    undefined: dict[int, frozenset[str]] = field(default_factory=dict)
    """By commit: the applications that the root does not define."""
    extras: dict[str, frozenset[str]] = field(default_factory=dict)
    """What an application has beside its workload: `crd`, `namespace`, `created-namespace`, `old-namespace`."""
    parent: str = ""
    """What defines the Applications, if there is no root of ours: see `foreign_parents`; empty: each stands alone."""
    operation_seconds: float = 0.8
    """How long Argo CD takes for each sync."""
    skew: float = 0.0
    """Seconds by which Argo CD's clock is ahead of the API server's."""
    two_sources: frozenset[str] = frozenset()
    """The applications with a second source."""
    annotations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By application: the dependencies that its annotation declares, some of which are to be ignored."""
    annotated_since: int = 0
    """The first commit that has the annotations."""
    validates: bool = False
    """Whether each successful deploy is followed by `validate`, which must succeed."""

    @property
    def follows_branch(self) -> bool:
        """Whether applications move to a commit that is pushed without a sync of their parent by a run."""
        return not self.has_root and self.parent not in {"application", "nested", "node"}

    @property
    def watch_allowance(self) -> float:
        """Seconds after which a run must have seen a change of an Application."""
        acts = (*self.acts, *(self.teardown.acts if self.teardown else ()))
        return self.allowance if any(act.is_disturbed for act in acts) else 1.0

    @property
    def object_allowance(self) -> float:
        """Seconds after which a run must have seen a change of an object that it reads itself."""
        acts = (*self.acts, *(self.teardown.acts if self.teardown else ()))
        return self.allowance if any(act.is_disturbed for act in acts) else 5.0 + 6 * self.lag

    @property
    def allowance(self) -> float:
        """Seconds after which a run must have seen a change: lags of controllers and watches, retries of its write."""
        acts = (*self.acts, *(self.teardown.acts if self.teardown else ()))
        is_silent = any(kind == "silent" for act in acts for _, kind in act.disturbances)
        watch_lag = max((fault.lag for act in acts for fault in act.faults), default=0.0)
        stale = max((lie.seconds for lie in self.lies.values()), default=0.0)
        return 30.0 + 6 * self.lag + watch_lag + stale + (SILENCE if is_silent else 0.0)

    def files(self, number: int) -> dict[str, Any]:
        """The repository at a commit."""
        found: dict[str, Any] = {"root/Chart.yaml": "name: root\nversion: 1.0.0\n", "root/values.yaml": ""}
        if number in self.broken_roots:
            found["root/templates/broken.yaml"] = "kind: [never closed"
        for part in self.commits[number].values():
            if part.name not in self.undefined.get(number, ()):
                revision = "{{ .Values.targetRevision }}"
                body = self.application(part, revision, is_annotated=number >= self.annotated_since)
                found[f"root/templates/{part.name}.yaml"] = body
            if part.trouble != "broken":  # a folder that is not there is a source that cannot be compared
                extras = self.extras.get(part.name, frozenset())
                found[f"{part.name}/all.yaml"] = [*manifests(part), *extra_manifests(part.name, extras)]
            if part.name in self.two_sources:
                found[f"{part.name}-more/all.yaml"] = [second_manifest(part)]
        return found

    def application(self, part: Part, revision: str, *, is_annotated: bool = True) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "project": "default",
            **self.source_fields(part.name, revision),
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
        }
        if part.name in self.automated:
            spec["syncPolicy"] = {"automated": {"selfHeal": True}}
        if self.extras.get(part.name, frozenset()) & {"created-namespace", "old-namespace"}:
            spec["destination"]["namespace"] = f"{part.name}-created"
            spec["syncPolicy"] = {**spec.get("syncPolicy", {}), "syncOptions": ["CreateNamespace=true"]}
        if part.trouble == "invalid":
            del spec["project"]
        elif part.trouble == "unpermitted":
            spec["project"] = "missing"
        meta: dict[str, Any] = {"name": part.name, "namespace": ARGOCD, "finalizers": [CASCADE]}
        if is_annotated and part.name in self.annotations:
            meta["annotations"] = {DEPENDS_ON: ", ".join(self.annotations[part.name])}
        return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": meta, "spec": spec}

    def source_fields(self, name: str, revision: str) -> dict[str, Any]:
        """The part of a spec that names its sources."""
        paths = (name, f"{name}-more") if name in self.two_sources else (name,)
        sources = [{"repoURL": URL, "path": path, "targetRevision": revision} for path in paths]
        return {"sources": sources} if len(sources) > 1 else {"source": sources[0]}


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
    for body in found:
        body["metadata"]["namespace"] = NAMESPACE  # wherever its Application has its destination
    return found


def second_manifest(part: Part) -> dict[str, Any]:
    """What the second source of an application has."""
    body: dict[str, Any] = config(f"{part.name}-more", str(part.version))
    body["metadata"]["namespace"] = NAMESPACE
    return body


def extra_manifests(name: str, extras: frozenset[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if "crd" in extras:
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        group = f"{name}.example.org"
        found.append({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
        })  # fmt: skip
    if "namespace" in extras:
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}-carried"}})
    return found


def told(text: str, **changes: Any) -> Scenario:
    """A scenario that is written, not drawn: `told("b: a")`. By default one commit, one run, and nothing goes wrong.

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
