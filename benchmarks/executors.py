"""The executor: how close a run comes to its critical path, what one costs that changes nothing, how big a plan is."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.measurement import measured
from benchmarks.results import figure
from tests.run_contexts import run_context
from windlass.argo.cd.root_application import RootApplication
from windlass.core.platform.model.applications import ApplicationNode, ApplicationRef, Barrier, Platform, Stack
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.snapshots import Snapshot
from windlass.core.platform.planning import plans
from windlass.core.platform.reporting.reports import Action
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.operations.deploy import deploy
from windlass.operations.planner import RunRequest
from windlass.sandbox.apiserver.access import kubeconfig
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.sandbox.argocd.custom_resources import build_crds
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.http_server import serve_http
from windlass.sandbox.sandbox import Sandbox
from windlass.settings.platforms import assemble_platform
from windlass.simulation import virtual_time
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.results import Figure
    from windlass.core.platform.reporting.reports import Report

URL = "https://git.test/platform.git"
COMMIT = "1" * 40
ROUNDS = 3


def reference() -> Platform:
    found = assemble_platform(None, None)
    assert not isinstance(found, list)
    return found.platform


def application(name: str, revision: str) -> dict[str, Any]:
    source = {"repoURL": URL, "path": name, "targetRevision": revision}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "default"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"project": "default", "source": source, "destination": destination},
    }


def workload(name: str, seconds: float) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "main:1"}]}
    meta = {"labels": labels, "annotations": {f"{ANNOTATION_PREFIX}ready-after": f"{seconds}s"}}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": meta, "spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def deployed(platform: Platform, durations: dict[str, float]) -> Report:
    """In virtual time, from an empty cluster."""
    files: dict[str, Any] = {"root/Chart.yaml": "name: root\nversion: 1.0.0\n"}
    for name, seconds in durations.items():
        files[f"root/templates/{name}.yaml"] = json.dumps(application(name, "{{ .Values.targetRevision }}"))
        files[f"{name}/all.yaml"] = [workload(name, seconds)]

    async def main() -> Report:
        async with Sandbox(virtual_time.virtual_sandbox_clock()) as sandbox:
            await install_workloads(sandbox)
            argocd = await install_argocd(sandbox)
            argocd.repositories[URL] = MemoryRepository(files)
            calls = CallSender(
                InProcessTransport(sandbox, ADMIN), clock=virtual_time.virtual_clock(), limits=CallLimits(1e6, 10**6)
            )
            client = KubeClient(calls)
            root = RootApplication(URL, "main", "root", {})
            request = RunRequest(Action.DEPLOY, "development", platform, Scope(), root=root)
            return await deploy(run_context(client, "bench", timeout=timedelta(hours=9)), request)

    return virtual_time.run(main())


def makespan(report: Report) -> float:
    spans = report.timeline.spans
    return (max(span.finished for span in spans) - min(span.started for span in spans)).total_seconds()


def makespans() -> Iterator[Figure]:
    """Random readiness; parallelism is not binding."""
    platform, chance = replace(reference(), max_parallel=100), random.Random(43)
    durations = {name: float(chance.randint(20, 240)) for name in platform.graph.names}
    free = deployed(platform, durations)
    waves = deployed(replace(platform, barrier=Barrier.WAVE), durations)
    assert free.summary.exit_code == waves.summary.exit_code == 0
    ideal = platform.graph.critical_path({name: timedelta(seconds=each) for name, each in durations.items()})
    what = (
        "the critical path if a sync and its proof took no time; 43 applications, readiness 20 to 240 s, virtual time"
    )
    yield figure("executor.makespan.ratio", makespan(free) / ideal.duration.total_seconds(), "x", "<= 1.02", what)
    calls, nodes = free.metrics.calls, len(platform.applications)
    requests = (calls.reads + calls.writes + calls.refreshes) / nodes
    yield figure(
        "executor.requests_per_node", requests, "", "", f"a first deploy of {nodes} applications, virtual time"
    )
    by_waves = makespan(waves) / makespan(free)
    yield figure("executor.makespan.barrier.ratio", by_waves, "x", "", "`barrier: wave` takes this many times as long")


def settled(name: str) -> dict[str, Any]:
    """As Argo CD shows one that was synced long ago."""
    made, long_ago = application(name, COMMIT), "2025-01-01T00:00:00Z"
    source = made["spec"]["source"]
    operation = {"phase": "Succeeded", "startedAt": long_ago, "finishedAt": long_ago, "operation": {"sync": {}}}
    row = {"kind": "Deployment", "group": "apps", "name": name, "namespace": "default", "status": "Synced"}
    made["status"] = {
        "sync": {"status": "Synced", "revision": COMMIT, "comparedTo": {"source": source, "destination": {}}},
        "health": {"status": "Healthy"},
        "reconciledAt": "2025-01-01T00:01:00Z",
        "operationState": {**operation, "syncResult": {"revision": COMMIT, "source": source}},
        "resources": [row],
    }
    return made


async def serve(count: int, folder: Path) -> None:
    """In a process of its own: a cluster where all is as it should be, until it is ended."""
    async with Sandbox() as sandbox, serve_http(sandbox) as address:
        calls = sandbox.client()
        for body in build_crds():
            await calls.create("customresourcedefinitions.apiextensions.k8s.io", body)
        await calls.create("namespaces", {"metadata": {"name": "argocd"}})
        for name in names(count):
            await calls.create("applications.argoproj.io", settled(name))
        (folder / "kubeconfig").write_text(
            kubeconfig.render_kubeconfig(address, sandbox.server.authenticator.admin_token)
        )
        print("ready", flush=True)
        await asyncio.Event().wait()


def names(count: int) -> list[str]:
    return [f"application-{number:04}" for number in range(count)]


def dag(count: int) -> dict[str, Any]:
    """Three dependencies each, on earlier ones."""
    made, chance = names(count), random.Random(1)
    needs = [chance.sample(made[max(0, number - 50) : number], min(3, number)) for number in range(count)]
    rows = [{"name": name, "dependsOn": needed} for name, needed in zip(made, needs, strict=True)]
    spec = {"stacks": [{"name": "all", "applications": rows}]}
    return {"apiVersion": "windlass.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "bench"}, "spec": spec}


@contextmanager
def settled_cluster(count: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "dag.yaml").write_text(json.dumps(dag(count)))
        file = {
            "name": "development",
            "domain": "a.test",
            "gitRepository": URL,
            "gitRevision": COMMIT,
            "gitPath": "root",
        }
        (folder / "environment.yaml").write_text(json.dumps(file))
        command = [sys.executable, "-m", "benchmarks.executors", "serve", str(count), directory]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            process.stdout.readline()
            try:
                yield folder
            finally:
                process.terminate()


def nothing_to_do(count: int, target: str) -> Figure:
    """The whole process, its start included."""
    best, report = float("inf"), {}
    with settled_cluster(count) as folder:
        files = ["--dag", str(folder / "dag.yaml"), "--environment-file", str(folder / "environment.yaml")]
        command = [sys.executable, "-m", "windlass", "deploy", *files, "--format", "json"]
        environ = {"KUBECONFIG_PATH": str(folder / "kubeconfig"), "ENVIRONMENT": "development", "PATH": "/usr/bin:/bin"}
        for _ in range(ROUNDS):
            began = perf_counter()
            done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
            best, report = min(best, perf_counter() - began), json.loads(done.stdout)
    calls = report["metrics"]["calls"]
    assert report["summary"]["counts"] == {"unchanged": count}
    assert (calls["writes"], calls["refreshes"]) == (0, 0)
    return figure(f"executor.noop_{count}_s", best, "s", target, f"{count} applications, no write; the whole process")


def plan() -> None:
    """In a process of its own: of an empty cluster, so everything is to be done."""
    made, chance = [f"application-{number:04}" for number in range(5_000)], random.Random(5)
    needs = {name: chance.sample(made[max(0, at - 200) : at], min(3, at)) for at, name in enumerate(made)}
    rows = {name: ApplicationNode(name, "all", ApplicationRef(name)) for name in made}
    with measured():
        platform = Platform("bench", (Stack("all", tuple(made)),), rows, Graph.build(needs), frozenset(made))
        found = plans.plan_deploy(platform, Snapshot(datetime(2030, 1, 1, tzinfo=UTC)), Scope())
    assert len(found.steps) == 5_000


def big_plan() -> Iterator[Figure]:
    command = [sys.executable, "-m", "benchmarks.executors", "plan"]
    runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(ROUNDS)]
    what = "5,000 applications, 15,000 dependencies"
    yield figure("executor.plan_5000_s", min(run["seconds"] for run in runs), "s", "< 1", what)
    yield figure("executor.plan_5000.rss_mb", max(run["rss_mb"] for run in runs), "MB", "< 250", what)


def figures() -> Iterator[Figure]:
    print("executor: makespans, runs that change nothing, a big plan", flush=True)
    yield from makespans()
    yield nothing_to_do(43, "< 2")
    yield nothing_to_do(1_000, "< 5")
    yield from big_plan()


if __name__ == "__main__":
    if sys.argv[1] == "plan":
        plan()
    else:
        asyncio.run(serve(int(sys.argv[2]), Path(sys.argv[3])))
