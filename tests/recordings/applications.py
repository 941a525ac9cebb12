"""Scripts of Argo CD: what is asked of Applications."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.recordings.workloads import DEPLOYMENTS, NO_IMAGE, container, workload
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.recordings.clusters import Stage
    from windlass.kube.client.objects import RawObject

APPLICATIONS = Resource("argoproj.io", "v1alpha1", "applications", "Application")
ARGOCD = "argocd"
CASCADE = "resources-finalizer.argocd.argoproj.io"
REFRESH = "argocd.argoproj.io/refresh"
HERE = APPLICATIONS.in_namespace(ARGOCD)


def application(stage: Stage, name: str, path: str = "", **spec: Any) -> RawObject:
    """An Application of the stage's repository, in the stage's namespace."""
    url = stage.cluster.git.url(repository(stage))
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": ARGOCD, "finalizers": [CASCADE]},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "targetRevision": "main", "path": path or name},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.namespace},
            **spec,
        },
    }  # fmt: skip


def repository(stage: Stage) -> str:
    return stage.namespace


def publish(stage: Stage, *items: RawObject, directory: str = "web", **more: list[RawObject]) -> str:
    """Makes the repository hold these objects; answers with the commit."""
    files = {f"{directory}/{item['kind'].lower()}-{item['metadata']['name']}.yaml": json.dumps(item) for item in items}
    for name, found in more.items():
        files |= {f"{name}/{item['metadata']['name']}.yaml": json.dumps(item) for item in found}
    return stage.cluster.git.publish(repository(stage), files)


def config(value: str = "1", name: str = "web") -> RawObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}


def web(script: str = "sleep 100000", **spec: Any) -> RawObject:
    return workload(DEPLOYMENTS, "web", container(script), **{"replicas": 1, **spec})


def operation(*options: str, **sync: Any) -> RawObject:
    wish: RawObject = {"revision": "main", **sync}
    if options:
        wish["syncOptions"] = list(options)
    return {"operation": {"initiatedBy": {"username": "windlass"}, "sync": wish}}


def shows(sync: str = "", health: str = "") -> Callable[[RawObject], bool]:
    def holds(item: RawObject) -> bool:
        status = item.get("status", {})
        found = (status.get("sync", {}).get("status"), status.get("health", {}).get("status"))
        return all(wanted in {"", given} for wanted, given in zip((sync, health), found, strict=True))

    return holds


def ended(phase: str) -> Callable[[RawObject], bool]:
    def holds(item: RawObject) -> bool:
        return "operation" not in item and item.get("status", {}).get("operationState", {}).get("phase") == phase

    return holds


def reconciled(item: RawObject) -> bool:
    """Looked at anew after the end of its operation."""
    status = item.get("status", {})
    return bool(status.get("reconciledAt", "") >= status.get("operationState", {}).get("finishedAt", "~"))


def done(item: RawObject) -> bool:
    """Synced and Healthy, and known to be so after the sync."""
    return ended("Succeeded")(item) and reconciled(item) and shows("Synced", "Healthy")(item)


async def synced(stage: Stage, name: str = "web", **spec: Any) -> None:
    """The way to a Synced and Healthy Application, as a beginning."""
    await stage.create(HERE, application(stage, name, **spec))
    await stage.until("Application", name, shows("OutOfSync"))
    await stage.settled(0.5)
    await stage.patch(APPLICATIONS.named(name, ARGOCD), operation(), f"request a sync of {name}")
    await stage.until("Application", name, done)
    await stage.settled()


async def remove(stage: Stage, name: str = "web") -> None:
    await stage.delete(APPLICATIONS.named(name, ARGOCD))
    await stage.until_gone("Application", name)


async def first_sync(stage: Stage) -> None:
    publish(stage, config(), web())
    await synced(stage)
    await remove(stage)


async def update(stage: Stage) -> None:
    ref = APPLICATIONS.named("web", ARGOCD)
    publish(stage, config(), web())
    await synced(stage)
    publish(stage, config("2"), web("sleep 200000"))
    await stage.patch(ref, operation(), "a new commit; request a sync")
    await stage.until("Application", "web", shows(health="Progressing"))
    await stage.until("Application", "web", done)
    await stage.settled()
    await stage.patch(ref, operation(), "request a sync with nothing to do")
    await stage.until("Application", "web", lambda a: "operation" in a)
    await stage.until("Application", "web", lambda a: ended("Succeeded")(a) and reconciled(a))
    await stage.settled()
    await remove(stage)


async def failed_sync(stage: Stage) -> None:
    ref = APPLICATIONS.named("web", ARGOCD)
    elsewhere = {**config(), "metadata": {"name": "web", "namespace": "no-such-namespace"}}
    publish(stage, elsewhere)
    await stage.create(HERE, application(stage, "web"), "create Application web, whose namespace is not there")
    await stage.until("Application", "web", shows("OutOfSync", "Missing"))
    await stage.settled()
    await stage.patch(ref, operation(), "request a sync")
    await stage.until("Application", "web", ended("Failed"))
    await stage.settled()
    broken = {**web(), "spec": {"replicas": "many"}}
    publish(stage, broken)
    await stage.patch(ref, operation(), "a commit that no server takes; request a sync")
    await stage.until("Application", "web", lambda a: "operation" in a)
    await stage.until("Application", "web", lambda a: "operation" not in a)
    await stage.settled()
    await remove(stage)


async def broken_source(stage: Stage) -> None:
    publish(stage, config())
    await stage.create(
        HERE, application(stage, "web", path="nowhere"), "create Application web of a path that is not there"
    )
    await stage.until("Application", "web", lambda a: a.get("status", {}).get("conditions"))
    await stage.settled()
    await stage.patch(APPLICATIONS.named("web", ARGOCD), operation(), "request a sync")
    await stage.until("Application", "web", lambda a: a.get("status", {}).get("operationState", {}).get("finishedAt"))
    await stage.settled()
    await remove(stage)


async def degraded(stage: Stage) -> None:
    ref = APPLICATIONS.named("web", ARGOCD)
    publish(stage, web(progressDeadlineSeconds=5))
    await synced(stage)
    publish(stage, workload(DEPLOYMENTS, "web", container(image=NO_IMAGE), replicas=1, progressDeadlineSeconds=5))
    await stage.patch(ref, operation(), "a commit with an image that cannot be pulled; request a sync")
    await stage.until("Application", "web", shows("Synced", "Degraded"))
    await stage.settled()
    publish(stage, web(progressDeadlineSeconds=5))
    await stage.patch(ref, operation(), "a commit that puts it right; request a sync")
    await stage.until("Application", "web", lambda a: "operation" in a)
    await stage.until("Application", "web", done)
    await stage.settled()
    await remove(stage)


async def refresh(stage: Stage) -> None:
    ref = APPLICATIONS.named("web", ARGOCD)
    publish(stage, config())
    await synced(stage)
    for kind in ("normal", "hard"):
        change = {"metadata": {"annotations": {REFRESH: kind}}}
        await stage.patch(ref, change, f"ask for a {kind} refresh; nothing has changed")
        await stage.until("Application", "web", lambda a: REFRESH in a["metadata"].get("annotations", {}))
        await stage.until("Application", "web", lambda a: REFRESH not in a["metadata"].get("annotations", {}))
        await stage.settled()
    publish(stage, config("2"))
    await stage.patch(ref, {"metadata": {"annotations": {REFRESH: "normal"}}}, "a new commit; ask for a normal refresh")
    await stage.until("Application", "web", shows("OutOfSync"))
    await stage.settled()
    await remove(stage)


async def automated(stage: Stage) -> None:
    publish(stage, config())
    policy = {"automated": {"prune": True, "selfHeal": False}}
    await stage.create(HERE, application(stage, "web", syncPolicy=policy), "create Application web with automated sync")
    await stage.until("Application", "web", lambda a: ended("Succeeded")(a) and shows("Synced", "Healthy")(a))
    await stage.settled()
    publish(stage, config("2"), config(name="more"))
    change = {"metadata": {"annotations": {REFRESH: "normal"}}}
    await stage.patch(APPLICATIONS.named("web", ARGOCD), change, "a new commit; ask for a refresh")
    await stage.until("Application", "web", lambda a: len(a["status"].get("history", [])) == 2)
    await stage.until("Application", "web", lambda a: ended("Succeeded")(a) and shows("Synced")(a))
    await stage.settled()
    await remove(stage)


async def self_heal(stage: Stage) -> None:
    publish(stage, config())
    policy = {"automated": {"prune": True, "selfHeal": True}}
    await stage.create(HERE, application(stage, "web", syncPolicy=policy), "create Application web with self-heal")
    await stage.until("Application", "web", lambda a: ended("Succeeded")(a) and shows("Synced", "Healthy")(a))
    await stage.settled()
    maps = Resource("", "v1", "configmaps", "ConfigMap")
    await stage.patch(maps.named("web", stage.namespace), {"data": {"value": "changed"}}, "change the ConfigMap")
    await stage.until("Application", "web", shows("OutOfSync"))
    await stage.until("Application", "web", lambda a: ended("Succeeded")(a) and shows("Synced")(a))
    await stage.settled()
    await remove(stage)


async def cascade(stage: Stage) -> None:
    publish(stage, config(), web())
    await synced(stage)
    await remove(stage)


async def app_of_apps(stage: Stage) -> None:
    children = [application(stage, name) for name in ("one", "two")]
    publish(stage, config(name="one"), directory="one", root=children, two=[config(name="two")])
    root = application(stage, "root")
    root["spec"]["destination"]["namespace"] = ARGOCD
    await stage.create(HERE, root, "create Application root, whose objects are the Applications one and two")
    await stage.until("Application", "root", shows("OutOfSync"))
    await stage.settled()
    chosen = {"group": "argoproj.io", "kind": "Application", "name": "one", "namespace": ARGOCD}
    await stage.patch(
        APPLICATIONS.named("root", ARGOCD), operation(resources=[chosen]), "request a sync of root, of one only"
    )
    await stage.until("Application", "root", lambda a: ended("Succeeded")(a) and reconciled(a))
    await stage.until("Application", "one", shows("OutOfSync"))
    await stage.settled()
    await stage.patch(APPLICATIONS.named("one", ARGOCD), operation(), "request a sync of one")
    await stage.until("Application", "one", done)
    await stage.settled()
    await remove(stage, "one")
    await stage.settled()
    await remove(stage, "root")


async def terminated(stage: Stage) -> None:
    annotations = {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation"}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container()]}
    hook = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "before", "annotations": annotations},
        "spec": {"template": {"spec": spec}},
    }
    ref = APPLICATIONS.named("web", ARGOCD)
    publish(stage, config(), hook)
    await stage.create(HERE, application(stage, "web"), "create Application web with a hook that does not end")
    await stage.until("Application", "web", shows("OutOfSync"))
    await stage.settled()
    await stage.patch(ref, operation(), "request a sync")
    await stage.until("Application", "web", lambda a: a["status"].get("operationState", {}).get("phase") == "Running")
    await stage.settled(3)
    change = {"status": {"operationState": {"phase": "Terminating"}}}
    await stage.patch(ref, change, "terminate the operation")
    await stage.until("Application", "web", lambda a: "operation" not in a)
    await stage.settled()
    await remove(stage)


async def second_operation(stage: Stage) -> None:
    """An operation asked for while another runs is lost."""
    ref = APPLICATIONS.named("web", ARGOCD)
    publish(stage, config(), web())
    await stage.create(HERE, application(stage, "web"))
    await stage.until("Application", "web", shows("OutOfSync"))
    await stage.settled()
    await stage.patch(ref, operation(), "request a sync")
    await stage.until("Application", "web", lambda a: a["status"].get("operationState", {}).get("phase") == "Running")
    await stage.patch(ref, operation("Prune=true"), "request another sync while the first runs")
    await stage.until("Application", "web", done)
    await stage.settled()
    await remove(stage)


OF_APPLICATIONS = (DEPLOYMENTS,)
