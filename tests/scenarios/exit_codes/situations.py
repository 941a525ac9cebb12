"""What a process may find when it is started: a cluster that stands, one that is out of reach, held, locked, mute."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.builders import needs
from tests.processes import inherited
from tests.sandbox.controllers.objects import URL, application, config, workload
from tests.sandbox.served_sandbox import running_sandbox
from tests.scenarios.clusters import APPS, Running, running
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pytest

    from windlass.sandbox.apiserver.journal import JournalEntry

    Situation = Callable[["World"], AbstractContextManager[None]]

CONFIGS = ("web", "sick", "fresh", "clean", "stuck", "late", "left", "doomed", "stopped-int", "stopped-term")
DEPLOYED = ("web", "sick", "slow", "clean", "stuck", "late", "left", "stopped-int", "stopped-term")
LEASES = "leases.coordination.k8s.io"
SETS = "applicationsets.argoproj.io"
ROLES = "clusterroles.rbac.authorization.k8s.io"
HELD = ["example.org/held"]
LIMITS = {"sync": "20s", "health": "6s", "degradedGrace": "1s", "expected": "1s"}
KINDS = {"apiVersion": "windlass.dev/v1alpha1"}


@dataclass
class World:
    """Where one process runs. `cluster` is started by the first who asks for it."""

    request: pytest.FixtureRequest
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    listening: socket.socket | None = None
    """The server that never answers, if that is the situation."""
    port: int = 0
    """One that somebody has, if that is the situation."""
    _before: int | None = None

    def asked(self) -> list[JournalEntry]:
        """What the process asked of the cluster, if that is where it was sent."""
        return [] if self._before is None else self.cluster.asked()[self._before :]

    @property
    def cluster(self) -> Running:
        found = self.request.getfixturevalue("cluster")
        assert isinstance(found, Running)
        return found

    def begin(self) -> None:
        """From here on what is asked counts."""
        self._before = len(self.cluster.asked())

    def leads_to(self, kubeconfig: str) -> None:
        path = self.folder / "kubeconfig"
        path.write_text(kubeconfig)
        self.environ["KUBECONFIG_PATH"] = str(path)

    def write(self, platform: str) -> None:
        """The files of a platform; a name with a star is critical."""
        marked = needs(platform)
        rows = [
            {
                "name": name.strip("*"),
                "critical": "*" in name,
                "dependsOn": [each.strip("*") for each in others],
                "retries": {"maxAttempts": 1},
            }
            for name, others in marked.items()
        ]
        spec = {"profiles": {"simple": LIMITS}, "stacks": [{"name": "all", "applications": rows}]}
        document = {**KINDS, "kind": "Platform", "metadata": {"name": "mine"}, "spec": spec}
        (self.folder / "dag.yaml").write_text(json.dumps(document))
        environment = {"name": "staging", "domain": "x.test", "gitRepository": URL, "gitRevision": "main"}
        (self.folder / "environment.yaml").write_text(json.dumps(environment))


@contextmanager
def running_platform(folder: Path) -> Iterator[Running]:
    """`web` is healthy, `sick` Degraded, `slow` never ready, `fresh` not yet synced, `doomed` being deleted."""
    with running(folder) as found:
        files: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in CONFIGS}
        never = {f"{ANNOTATION_PREFIX}ready-after": "never"}
        found.repository.push({**files, "slow/all.yaml": [workload(name="slow", annotations=never)]})
        found.argocd.health_overrides["sick"] = "Degraded"
        calls = found.sandbox.client()
        found.do(calls.create(APPS, application("fresh")))
        doomed = application("doomed")
        doomed["metadata"]["finalizers"] = HELD
        found.do(calls.create(APPS, doomed))
        found.do(calls.delete(APPS, "doomed", "argocd"))
        found.deploy(*DEPLOYED)
        yield found


def address(url: str) -> str:
    return json.dumps(
        {
            "clusters": [{"name": "it", "cluster": {"server": url}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
            "users": [{"name": "me", "user": {}}],
            "current-context": "it",
        }
    )


@contextmanager
def unreachable(world: World) -> Iterator[None]:
    """Nobody listens. What ends in 3 there was told before anything was asked."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        world.leads_to(address(f"http://127.0.0.1:{port.getsockname()[1]}"))
        yield


@contextmanager
def silent(world: World) -> Iterator[None]:
    """A server that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        world.listening = server
        world.leads_to(address(f"http://127.0.0.1:{server.getsockname()[1]}"))
        yield


@contextmanager
def standing(world: World) -> Iterator[None]:
    world.leads_to(world.cluster.kubeconfig.read_text())
    world.begin()
    yield


@contextmanager
def rejecting(world: World) -> Iterator[None]:
    """The cluster does not know our token."""
    world.leads_to(world.cluster.kubeconfig.read_text().replace("token: ", "token: x"))
    yield


@contextmanager
def without_argo_cd(world: World) -> Iterator[None]:
    with running_sandbox() as kubeconfig:
        world.leads_to(kubeconfig)
        yield


@contextmanager
def locked(world: World) -> Iterator[None]:
    """Another run is at work, and shows it."""
    cluster, calls = world.cluster, world.cluster.sandbox.client()

    async def hold() -> None:
        for number in range(10_000):
            spec = {"holderIdentity": "another", "leaseTransitions": number}
            meta = {"name": "windlass", "namespace": "argocd"}
            await calls.apply(
                LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
            )
            await cluster.sandbox.clock.sleep(0.3)

    holding = asyncio.run_coroutine_threadsafe(hold(), cluster.loop)
    try:
        with standing(world):
            yield
    finally:
        holding.cancel()
        with suppress(asyncio.CancelledError):
            cluster.do(calls.delete(LEASES, "windlass", "argocd"))


def held(name: str) -> Situation:
    """An object of an Application does not go."""

    @contextmanager
    def arranged(world: World) -> Iterator[None]:
        calls = world.cluster.sandbox.client()

        def hold(finalizers: list[str] | None) -> None:
            world.cluster.do(calls.patch("configmaps", name, {"metadata": {"finalizers": finalizers}}, "default"))

        hold(HELD)
        with standing(world):
            yield
        hold(None)

    return arranged


@contextmanager
def orphaned(world: World) -> Iterator[None]:
    """`left` made something that it does not know any more."""
    calls = world.cluster.sandbox.client()
    mark = {"argocd.argoproj.io/tracking-id": "left:rbac.authorization.k8s.io/ClusterRole:default/left"}
    world.cluster.do(calls.create(ROLES, {"metadata": {"name": "left", "annotations": mark}, "rules": []}))
    with standing(world):
        yield
    world.cluster.do(calls.delete(ROLES, "left"))


@contextmanager
def occupied(world: World) -> Iterator[None]:
    """A port that somebody has, and places where somebody else's files are."""
    (world.folder / "theirs").mkdir()
    (world.folder / "theirs" / "file").write_text("precious")
    with socket.create_server(("127.0.0.1", 0)) as server:
        world.port = server.getsockname()[1]
        yield
    assert (world.folder / "theirs" / "file").read_text() == "precious"


def shadowed(module: str, program: str) -> Situation:
    """In the place of a module that the process imports stands this program."""

    @contextmanager
    def arranged(world: World) -> Iterator[None]:
        (world.folder / f"{module}.py").write_text(f"import atexit, os, signal\n{program}\n")
        world.environ["PYTHONPATH"] = f"{world.folder}:{inherited().get('PYTHONPATH', '')}"
        with unreachable(world):
            yield

    return arranged


@contextmanager
def of_production(world: World) -> Iterator[None]:
    """The cluster is recorded as another environment."""
    calls = world.cluster.sandbox.client()
    meta = {"name": "windlass", "namespace": "argocd", "annotations": {"windlass.dev/environment": "production"}}
    world.cluster.do(
        calls.apply(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {}})
    )
    try:
        with standing(world):
            yield
    finally:
        world.cluster.do(calls.delete(LEASES, "windlass", "argocd"))


@contextmanager
def with_broken_set(world: World) -> Iterator[None]:
    """`owned` belongs to an ApplicationSet that cannot generate it any more."""
    calls, head = world.cluster.sandbox.client(), {"apiVersion": "argoproj.io/v1alpha1"}
    spec = {"generators": [{"scm": {}}], "template": {"metadata": {"name": "x"}, "spec": application()["spec"]}}
    body = {**head, "kind": "ApplicationSet", "metadata": {"name": "broken"}, "spec": spec}
    made = world.cluster.do(calls.create(SETS, body, "argocd"))
    owned = application("owned", path="web")
    owner = {**head, "kind": "ApplicationSet", "name": "broken", "uid": made["metadata"]["uid"], "controller": True}
    owned["metadata"] |= {"ownerReferences": [owner], "finalizers": []}
    world.cluster.do(calls.create(APPS, owned))
    world.cluster.rest(1)
    try:
        with standing(world):
            yield
    finally:
        world.cluster.do(calls.delete(SETS, "broken", "argocd"))
        world.cluster.rest(1)


def planned(*synced: str) -> Situation:
    """A plan of `web` that was approved; then it was changed so that these are synced."""

    @contextmanager
    def arranged(world: World) -> Iterator[None]:
        with standing(world):
            files = ["--dag", "dag.yaml", "--environment-file", "environment.yaml", "--out", "plan.json"]
            subprocess.run(
                [sys.executable, "-m", "windlass", "plan", *files],
                env={**inherited(), "ENVIRONMENT": "staging", **world.environ},
                cwd=world.folder,
                capture_output=True,
                check=True,
            )
            path = world.folder / "plan.json"
            document = json.loads(path.read_text())
            for name in synced:
                document["unchanged"].remove(name)
                digests = {"definition": "", "parent": ""}
                step = {"name": name, "verb": "sync", "why": "x", "after": [], "revisions": ["1"], **digests}
                document["steps"].append(step)
            path.write_text(json.dumps(document))
            world.begin()
            yield

    return arranged
