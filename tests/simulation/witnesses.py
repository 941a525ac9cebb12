"""What is true in the cluster, whatever anybody says: the store's own objects, read at the moment of each write."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.simulation.declared_dependencies import DeclaredDependencies
from tests.simulation.foreign_parents import FOREIGN_PARENTS
from tests.simulation.request_dimensions import REFUSED_DEFINITIONS
from tests.simulation.scenarios import ANOTHER_CLIENT, APPLICATIONS, ARGOCD, NAMESPACE, Part
from windlass.argo.cd.applications import RUN_ID_KEY
from windlass.argo.cd.root_application import NAME as ROOT_NAME
from windlass.core.platform.model.applications import ResourceRef
from windlass.kube.leases import RENEW_INTERVAL
from windlass.operations.cluster_identity import lease_identity
from windlass.sandbox.argocd import application_specs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tests.simulation.scenarios import Scenario
    from windlass.core.platform.identity import ClusterIdentity
    from windlass.sandbox.apiserver.store import StoreChange
    from windlass.sandbox.sandbox import Sandbox

Body = dict[str, Any]
LEASES = "leases.coordination.k8s.io"
PARENT_NAMES = frozenset({ROOT_NAME, *FOREIGN_PARENTS})
MADE = ("configmaps", "deployments.apps", "statefulsets.apps")
"""What an application makes, under its own name."""


@dataclass(frozen=True, slots=True)
class Approval:
    """What a plan may change: these nodes, to commits that were there when it was made."""

    nodes: frozenset[str]
    newest_commit: int


@dataclass
class Witness:
    """Listens to every write to an Application and notes what should not have been."""

    sandbox: Sandbox
    scenario: Scenario
    commits: list[str] = field(default_factory=list)
    """The hashes of what was pushed, in order."""
    since: int = 0
    """The commit that was the newest when the current run began."""
    outside: frozenset[str] = frozenset()
    """The nodes outside its scope: those have to be healthy, at whatever commit they are."""
    declared: DeclaredDependencies = field(init=False)
    problems: list[str] = field(default_factory=list)
    operations: list[tuple[str, str]] = field(default_factory=list)
    """(run id, Application), in the order of writing."""
    pins: dict[str, set[str]] = field(default_factory=dict)
    """The revisions that each was pinned to by a sync of the root, which was judged; what began then may end later."""

    started: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """By Application: set once the current run has requested an operation."""
    approvals: dict[str, Approval] = field(default_factory=dict)
    """By run: what it was approved to do; no entry if it needs no approval."""
    late_run: str = ""
    """The run whose request arrives now, long after it was sent."""
    terminated: set[str] = field(default_factory=set)
    """Applications whose operation another client has terminated."""
    touched: dict[str, tuple[datetime, float]] = field(default_factory=dict)
    """When something that a run cannot foresee happened to a node, and the seconds until a run must have seen it."""
    root_broken_since: datetime | None = None
    moved: dict[str, datetime] = field(default_factory=dict)
    """By Application: when an operation was last requested or ended."""
    lease_deleted: datetime | None = None
    """When another client deleted the Lease."""
    automated: set[str] = field(default_factory=set)
    """Applications for which another client switched automated sync on."""

    def __post_init__(self) -> None:
        self.declared = DeclaredDependencies(self.sandbox)
        self.sandbox.server.store.listen(APPLICATIONS, "", self._hear)

    def _hear(self, change: StoreChange) -> None:
        old, new = change.old.load() if change.old else {}, change.new.load()
        targets = {source["targetRevision"] for source in application_specs.get_sources(new["spec"])}
        self.pins.setdefault(_name(new), set()).update(targets)
        asked = new.get("operation")
        if asked and asked != old.get("operation") and change.type != "DELETED":
            if old.get("operation"):
                self._blame(new, "an operation was written over another one")
            self._judge(new, asked)
        self._note_breakage(new)
        if asked != old.get("operation"):
            self.moved[_name(new)] = self.sandbox.clock.now()
        self._judge_end(old, new)
        self._judge_termination(old, new)

    def _note_breakage(self, application: Body) -> None:
        """Remember since when Argo CD shows that it cannot render the root."""
        if _name(application) == ROOT_NAME:
            rows = (application.get("status") or {}).get("conditions") or ()
            is_broken = any(row["type"] == "ComparisonError" for row in rows)
            self.root_broken_since = (self.root_broken_since or self.sandbox.clock.now()) if is_broken else None

    def is_root_broken(self) -> bool:
        """Whether Argo CD has shown for so long that it cannot render the root that a run must have seen it."""
        since = self.root_broken_since
        seconds = (self.sandbox.clock.now() - since).total_seconds() if since else 0.0
        return since is not None and seconds > self.scenario.watch_allowance

    def note_late_run(self, run_id: str) -> None:
        self.late_run = run_id

    def _judge(self, application: Body, asked: Body) -> None:
        run_id = run_of(asked)
        if not run_id:
            return  # Argo CD's own; whether it may move anything is judged at its end
        name = _name(application)
        self.operations.append((run_id, name))
        self.started[name].set()
        holder = self.holder
        if self.late_run == run_id:
            return  # when it was sent, it was right; no client can prevent that it arrives late
        if holder != run_id and not self._is_lease_just_deleted():
            self._blame(application, f"{run_id} wrote an operation while {holder or 'nobody'} held the lock")
        sync = asked["sync"]
        rows, revision = sync.get("resources") or (), self._revision(application, sync)
        children = [row["name"] for row in rows if row["kind"] == "Application"]
        if name in PARENT_NAMES and not rows:
            children = list(self.scenario.commits[0])  # without a selection Argo CD syncs everything
        moved = children if name in PARENT_NAMES else [name]
        if approval := self.approvals.get(run_id):
            self._judge_approval(application, approval, moved, revision)
        for node in moved:
            if node not in self.scenario.platform.graph.dependencies:
                continue  # a parent that another parent defines
            for need in self.declared.needs(node, self.scenario.platform.graph):
                if (why := self._why_not_ready(need, revision)) and not self.is_recent(need):
                    self._blame(application, f"{run_id} began {node} although {need} is not healthy: {why}")

    def _revision(self, application: Body, sync: Body) -> str:
        """The revision of an operation: all sources are in one repository, and a run sees one commit of it."""
        revisions = application_specs.get_revisions(sync)
        if len({*revisions}) > 1 and not self.scenario.follows_branch:
            self._blame(application, f"its sources are synced to different commits: {revisions}")
        return revisions[0]

    def _is_lease_just_deleted(self) -> bool:
        """Whether the Lease was deleted so recently that its holder, which renews it, may not have noticed."""
        deleted = self.lease_deleted
        seconds = RENEW_INTERVAL + self.scenario.watch_allowance
        return deleted is not None and (self.sandbox.clock.now() - deleted).total_seconds() <= seconds

    def _judge_approval(self, application: Body, approval: Approval, moved: list[str], revision: str) -> None:
        if revision not in self.commits[: approval.newest_commit + 1]:
            self._blame(application, f"{revision[:8]} was pushed after the plan that was approved")
        if excess := sorted(set(moved) - approval.nodes):
            self._blame(application, f"{', '.join(excess)} is not in the plan that was approved")

    def _judge_termination(self, old: Body, new: Body) -> None:
        """No run ends an operation that another client has requested."""
        operation, name = old.get("operation") or {}, _name(new)
        if not is_by_another_client(operation) or new["metadata"].get("deletionTimestamp"):
            return
        phases = [(each.get("status", {}).get("operationState") or {}).get("phase") for each in (old, new)]
        is_terminated = phases[1] == "Terminating" != phases[0] and name not in self.terminated
        is_withdrawn = "operation" not in new and old.get("status") == new.get("status")
        if is_terminated or is_withdrawn:
            self._blame(new, "an operation of another client was ended")

    def _judge_end(self, old: Body, new: Body) -> None:
        """INV-2: whatever reaches a new revision was moved there by a run."""
        before, after = (each.get("status", {}).get("operationState") or {} for each in (old, new))
        if after.get("phase") != "Succeeded" or before.get("phase") == "Succeeded":
            return
        history = new["status"].get("history") or [{}]
        previous = application_specs.get_revisions(history[-2]) if len(history) > 1 else None
        revisions = application_specs.get_revisions(after["syncResult"])
        operation = after.get("operation") or {}  # none if its Application was recreated in the middle
        if not operation or run_of(operation) or is_by_another_client(operation) or _name(new) in self.automated:
            return
        is_foreign_parent = _name(new) in PARENT_NAMES and _name(new) != ROOT_NAME
        if revisions != previous and not {*revisions} <= self.pins[_name(new)] and not is_foreign_parent:
            self._blame(new, f"another client moved it to {revisions[0][:8]}")

    def _why_not_ready(self, node: str, revision: str) -> str:
        """Empty if it is, at this commit; where each follows the branch itself, at one not older than the run."""
        if revision not in self.commits:
            return f"the operation names {revision}, which is not a commit"
        number = self.commits.index(revision)
        numbers = range(self.since, len(self.commits)) if self.scenario.follows_branch else [number]
        if node in self.outside:
            numbers = range(len(self.commits))
        return self.why_not_ready(node, numbers)

    def why_not_ready(self, node: str, numbers: Iterable[int]) -> str:
        """Empty if its objects are those of one of these commits, and its pods are ready."""
        name = self._application_name(node)
        found = [self._why_not_at(name, number) for number in numbers]
        return "" if "" in found else found[-1]

    def is_recent(self, node: str) -> bool:
        """Whether something happened to a node so recently that a run may not have seen it."""
        touched, seconds = self.touched.get(self._application_name(node), (None, 0.0))
        return touched is not None and (self.sandbox.clock.now() - touched).total_seconds() <= seconds

    def is_moving(self, node: str) -> bool:
        """Whether an operation on it was requested or ended so recently that Argo CD may show what was before."""
        moved = self.moved.get(self._application_name(node))
        return moved is not None and (self.sandbox.clock.now() - moved).total_seconds() <= self.scenario.allowance

    def why_not_shown(self, node: str, *, has_moved: bool) -> str:
        """Empty if Argo CD shows its Application as synced and healthy, and no operation is in progress.

        `has_moved`: a commit was pushed since the run began, so that it may be out of sync again.
        """
        application = self._find(APPLICATIONS, self._application_name(node), ARGOCD)
        if application is None:
            return "its Application does not exist"
        status = application.get("status") or {}
        is_running = (status.get("operationState") or {}).get("phase") in {"Running", "Terminating"}
        if application.get("operation") or is_running:
            return "an operation is in progress"
        sync, health = ((status.get(name) or {}).get("status") for name in ("sync", "health"))
        is_good = health == "Healthy" and (sync == "Synced" or has_moved)
        return "" if is_good else f"Argo CD shows {sync} and {health}"

    def _application_name(self, node: str) -> str:
        target = self.scenario.platform.applications[node].target
        return target.name if isinstance(target, ResourceRef) else node

    def _why_not_at(self, name: str, number: int) -> str:
        if name in FOREIGN_PARENTS:
            return "" if self._find(APPLICATIONS, name, ARGOCD) else "its Application does not exist"
        if number in self.scenario.broken_roots:
            return f"the root cannot be rendered at commit {number}"
        if name in self.scenario.undefined.get(number, ()):
            return f"the root does not define it at commit {number}"
        return self._why_not(self.scenario.commits[number][name])

    def _why_not(self, part: Part) -> str:
        if part.trouble in {"refused", "broken", *REFUSED_DEFINITIONS}:
            return f"{part.trouble} at version {part.version}"
        shown = self._find("configmaps", part.name)
        if not shown or shown["data"]["value"] != str(part.version):
            return f"its ConfigMap is not of version {part.version}"
        second = self._find("configmaps", f"{part.name}-more") if part.name in self.scenario.two_sources else shown
        if not second or second["data"] != shown["data"]:
            return f"what its second source defines is not of version {part.version}"
        if not part.kind:
            return ""
        found = self._find(f"{part.kind.lower()}s.apps", part.name)
        if not found or _image(found["spec"]["template"]) != part.image:
            return f"its {part.kind} is not of version {part.version}"
        ready = sum(self._is_ready(pod.load(), part) for pod in self.pods(part.name))
        return "" if ready >= part.replicas else f"{ready} of {part.replicas} pods of version {part.version} are ready"

    def pods(self, name: str) -> list[Any]:
        listed = self.sandbox.server.store.list("pods", NAMESPACE)
        return [pod for pod in listed if pod.labels.get("app") == name]

    def _is_ready(self, pod: Body, part: Part) -> bool:
        rows = pod.get("status", {}).get("conditions") or ()
        ready = any(row["type"] == "Ready" and row["status"] == "True" for row in rows)
        return ready and _image(pod) == part.image and not pod["metadata"].get("deletionTimestamp")

    def _find(self, kind: str, name: str, namespace: str = NAMESPACE) -> Body | None:
        found = self.sandbox.server.store.get(kind, namespace, name)
        return found.load() if found else None

    @property
    def holder(self) -> str:
        """The run that holds the lock."""
        lease = self._find(LEASES, "windlass", ARGOCD)
        return str(lease["spec"].get("holderIdentity") or "") if lease else ""

    @property
    def identity(self) -> ClusterIdentity | None:
        """What the cluster is recorded as."""
        return lease_identity(self._find(LEASES, "windlass", ARGOCD))

    def pending(self, run_id: str = "") -> list[str]:
        """Applications with an operation that waits or runs, of this run or of any."""
        listed = self.sandbox.server.store.list(APPLICATIONS, ARGOCD)
        bodies = [(item.name, item.load().get("operation")) for item in listed]
        return [name for name, asked in bodies if asked and run_of(asked) and run_id in {"", run_of(asked)}]

    def is_terminating(self, name: str) -> bool:
        """Whether the operation of an Application is to be ended."""
        status = (self._find(APPLICATIONS, name, ARGOCD) or {}).get("status") or {}
        return bool((status.get("operationState") or {}).get("phase") == "Terminating")

    def requests(self, run_id: str) -> Counter[str]:
        """How often a run has requested an operation, by application."""
        return Counter(name for run, name in self.operations if run == run_id and name not in PARENT_NAMES)

    def _blame(self, application: Body, what: str) -> None:
        self.problems.append(f"{self.sandbox.clock.timestamp()} {_name(application)}: {what}")


class Removals:
    """Notes, at the moment something of the platform begins to go, what that depends on it is still there."""

    def __init__(self, sandbox: Sandbox, scenario: Scenario) -> None:
        self._sandbox = sandbox
        self._dependents = scenario.platform.graph.reversed()
        self.declared = DeclaredDependencies(sandbox)
        self._going: set[str] = set()
        self.order: list[str] = []
        """The Applications, as they began to go."""
        self.problems: list[str] = []
        self.excused: set[str] = set()
        """Applications that another client deletes."""
        self._created_late: set[str] = set()
        """Applications that a sync of their parent created after the parent was deleted: no client can prevent that."""
        self._has_automated_parent = scenario.parent == "automated"
        for kind in (APPLICATIONS, *MADE):
            sandbox.server.store.listen(kind, "", self._hear)

    def _hear(self, change: StoreChange) -> None:
        new = change.new
        if change.type == "ADDED" and new.kind_id == APPLICATIONS and self._has_automated_parent:
            is_late = not self._sandbox.server.store.get(APPLICATIONS, ARGOCD, FOREIGN_PARENTS[0])
            (self._created_late.add if is_late else self._created_late.discard)(new.name)
        if change.type != "DELETED" and b'"deletionTimestamp"' not in new.tail:
            return
        if new.uid in self._going or new.name not in self._dependents.dependencies or new.name in self.excused:
            return
        self._going.add(new.uid)
        if new.kind_id == APPLICATIONS:
            self.order.append(new.name)
        dependents = self.declared.dependents(new.name, self._dependents)
        for dependent in sorted(dependents - self._created_late):
            for left in self.left_of(dependent):
                when = self._sandbox.clock.timestamp()
                self.problems.append(f"{when} {new.kind_id} {new.name} goes while {left} is there")

    def left_of(self, name: str) -> list[str]:
        """The Application, what it made, and the pods of that."""
        store = self._sandbox.server.store
        found = [f"{kind} {name}" for kind in MADE if store.get(kind, NAMESPACE, name)]
        found += [f"pod {pod.name}" for pod in store.list("pods", NAMESPACE) if pod.labels.get("app") == name]
        return found + [f"Application {name}" for _ in [0] if store.get(APPLICATIONS, ARGOCD, name)]


def everything(sandbox: Sandbox) -> frozenset[tuple[str, str, str]]:
    """All that is in the cluster, but for events: kind, namespace, name."""
    kinds = [kind.id for kind in sandbox.server.catalogue if not kind.id.startswith("events")]
    return frozenset((kind, item.namespace, item.name) for kind in kinds for item in sandbox.server.store.list(kind))


def run_of(operation: Body) -> str:
    return next((row["value"] for row in operation.get("info") or () if row["name"] == RUN_ID_KEY), "")


def is_by_another_client(operation: Body) -> bool:
    return (operation.get("initiatedBy") or {}).get("username") == ANOTHER_CLIENT


def _name(application: Body) -> str:
    return str(application["metadata"]["name"])


def _image(holder: Body) -> str:
    return str(holder["spec"]["containers"][0]["image"])
