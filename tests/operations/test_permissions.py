"""Each action is played by a user who has exactly the rights that `windlass rbac` prints for it, and uses them all."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import yaml

from tests import builders
from tests.operations.clusters import after, patch
from tests.operations.custom_resources import DEFINITIONS, THINGS, definition, thing
from tests.operations.teardown.test_cleanup import serve_snapshots
from tests.operations.test_parents import application_set
from tests.run_contexts import run_context
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import CASCADE, URL, application, claim, config, job, pod_template, workload
from windlass.argo.cd.root_application import RootApplication
from windlass.argo.health.assessment import LuaHealthAssessor
from windlass.argo.health.scripts import HealthScript, HealthScripts
from windlass.core.platform.gate_values import Open
from windlass.core.platform.model.applications import ApplicationRef, NodeTiming, ResourceRef, Retries
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.snapshots import ResourceKind
from windlass.core.platform.permissions import RIGHTS, PermissionRequest, Right, RightsFor, permissions_yaml
from windlass.core.platform.planning.object_changes import Effect
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import CallSender
from windlass.lua.worker_process import LuaWorker, ScriptResult
from windlass.operations import deploy, import_, plan, status, validate, wait
from windlass.operations.observation import ObservedCluster
from windlass.operations.plan_changes import ChangeRequest
from windlass.operations.planner import RunRequest
from windlass.operations.teardown import teardown
from windlass.sandbox.apiserver.requests import UserInfo
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX
from windlass.simulation import virtual_time
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.reporting.reports import Report
    from windlass.sandbox.apiserver.journal import JournalEntry

SETS = "applicationsets.argoproj.io"
POLICIES = "wgpolicyk8s.io"
CHECKED = frozenset({("things.test", "*")})
ROOT = RootApplication(URL, "main", "root", {})
DEFAULT_CLASS = {"storageclass.kubernetes.io/is-default-class": "true"}
HOOK = {"argocd.argoproj.io/hook": "PostSync"}
REFRESH = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
CRASH = {f"{ANNOTATION_PREFIX}fails-with": "CrashLoopBackOff"}


class Healthy(LuaWorker):
    """Says so of everything, without a process."""

    async def run(self, script: str, resource: dict[str, Any]) -> ScriptResult:
        del script, resource
        return ScriptResult("Healthy")


def platform() -> Platform:
    made = builders.platform("db*; pods*; web*: db; ready: web; bad; tenant")
    timing = NodeTiming(sync=timedelta(seconds=60), health=timedelta(seconds=60), degraded_grace=timedelta(seconds=5))
    nodes = {name: replace(node, timing=timing, retries=Retries(1)) for name, node in made.applications.items()}
    nodes["ready"] = replace(nodes["ready"], target=ResourceRef("things.test/v1", "Thing", "a", "default"))
    return replace(made, applications=nodes)


def plain_job(name: str) -> dict[str, Any]:
    made = job(annotations={f"{ANNOTATION_PREFIX}ends-after": "1s"})
    return {"apiVersion": "batch/v1", "kind": "Job", **made, "metadata": {"name": name}}


def pod(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **pod_template(name), "metadata": {"name": name}}


def files() -> dict[str, Any]:
    """Each kind once, where it is read by name, or twice in a namespace, where it is listed."""
    own = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim("own")}
    db = workload("StatefulSet", "db", replicas=1, serviceName="db", volumeClaimTemplates=[claim()])
    crd = {**THINGS, "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    hook = plain_job("hook")
    hook["metadata"]["annotations"] = HOOK
    made: dict[str, Any] = {
        "db/all.yaml": [db, own, plain_job("one"), plain_job("two"), workload("ReplicaSet", "set")],
        "web/all.yaml": [crd, thing("a"), pod("single"), *(workload(name=name) for name in ("web", "web-2")), hook],
        "web/daemon.yaml": [workload("DaemonSet", "daemon")],
        "web/job.yaml": [plain_job("single")],
        "web/child.yaml": [application("child", syncPolicy={"automated": {}})],
        "child/all.yaml": [config("child")],
        "pods/all.yaml": [pod("one"), pod("two")],
        "bad/all.yaml": [workload(name="bad", annotations=CRASH)],
        "tenant/all.yaml": [config("tenant")],
        "root/Chart.yaml": {"name": "root", "version": "1.0.0"},
    }
    for name, namespace in {"db": "data", "pods": "argocd", "web": "default", "bad": "default"}.items():
        child = application(name, namespace=namespace, syncPolicy={"syncOptions": ["CreateNamespace=true"]})
        child["metadata"]["finalizers"] = [] if name == "bad" else [CASCADE]
        child["spec"]["source"]["targetRevision"] = "{{ .Values.targetRevision }}"
        made[f"root/templates/{name}.yaml"] = child
    return made


@dataclass(frozen=True, slots=True)
class Stage:
    world: World

    async def grant(self, action: RightsFor, *namespaces: str) -> None:
        request = PermissionRequest(str(action), "argocd", frozenset(namespaces), CHECKED)
        for body in yaml.safe_load_all(permissions_yaml([action], request)):
            kind = f"{body['kind'].lower()}s.rbac.authorization.k8s.io"
            await self.world.sandbox.client().create(kind, body, body["metadata"].get("namespace", ""))

    def client(self, action: RightsFor) -> KubeClient:
        transport = InProcessTransport(self.world.sandbox, UserInfo(str(action)))
        return KubeClient(CallSender(transport, clock=virtual_time.virtual_clock(), limits=clusters.QUICK))

    def cluster(self, action: RightsFor) -> ObservedCluster:
        client = self.client(action)
        mounted = HealthScripts({ResourceKind("things.test", "Thing"): HealthScript("", "a mounted file")})
        assessor = LuaHealthAssessor(client, "argocd", mounted, Healthy())
        return ObservedCluster(client, client.clock.now, assessor=assessor)

    async def run(self, action: RightsFor, run_id: str, **changes: Any) -> Report:
        operation = deploy.deploy if action is RightsFor.DEPLOY else teardown.teardown
        request = RunRequest(Action(str(action)), "staging", platform(), Scope(), **changes)
        return await operation(run_context(self.client(action), run_id, cluster=self.cluster(action)), request)

    def entries(self, action: RightsFor) -> list[JournalEntry]:
        return [each for each in self.world.sandbox.server.journal.entries if each.user == action]


async def prepare(stage: Stage) -> None:
    admin = stage.world.sandbox.client()
    for action in RightsFor:
        await stage.grant(action)
    storage = {"metadata": {"name": "fast", "annotations": DEFAULT_CLASS}, "provisioner": "disk.test"}
    await admin.create("storageclasses.storage.k8s.io", storage)
    await serve_snapshots(stage.world)
    await admin.create(DEFINITIONS, definition(POLICIES, "v1alpha2", "PolicyReport"))
    await admin.create(DEFINITIONS, definition(POLICIES, "v1alpha2", "ClusterPolicyReport", "Cluster"))
    stage.world.argocd.repositories[URL] = MemoryRepository(files())


async def play(stage: Stage, policy: VolumePolicy) -> None:
    """A whole life: deploy with a failure, look at it in every way, remove it."""
    tenants = application_set("tenant")
    tenants["metadata"]["finalizers"] = [CASCADE]
    report = await stage.run(RightsFor.DEPLOY, f"up-{policy}", root=ROOT)
    assert {each.reason for each in report.failures} == {"NotDefined", "OutOfTime"}, report.failures
    await stage.world.sandbox.client().create(SETS, tenants, "argocd")
    await after(20)
    request = RunRequest(Action.DEPLOY, "staging", platform(), Scope(), root=ROOT)
    token = stage.world.sandbox.server.authenticator.admin_token
    planned = await plan.plan(stage.cluster(RightsFor.PLAN), request, changes=ChangeRequest(token))
    assert {change.name for change in planned.report.changes if change.effect is Effect.CHANGES} == {"tenant"}
    assert {step.name for step in planned.plan.steps} == {"bad", "tenant"}
    report = await stage.run(RightsFor.DEPLOY, f"again-{policy}", root=ROOT)
    assert not {each.name for each in report.failures} - {"bad"}, report.failures
    looked = stage.cluster(RightsFor.VALIDATE)
    report = await validate.validate(looked, validate.ValidateRequest("staging", platform()))
    assert not {each.name for each in report.failures} - {"bad"}, report.failures
    await wait_for_applications(stage)
    await look_at_the_status(stage)
    report = await validate.validate(looked, validate.ValidateRequest("staging", platform()))
    assert [each.name for each in report.failures] == ["bad"], report.failures
    assert not (await import_.import_platform(stage.cluster(RightsFor.IMPORT))).notices
    report = await stage.run(RightsFor.TEARDOWN, f"down-{policy}", volume_policy=policy)
    assert report.summary.exit_code == 0, (report.failures, report.removal)
    await after(60)


async def wait_for_applications(stage: Stage) -> None:
    """Also while Argo CD does not run: then all objects are read."""
    for name in ("web", "db", "pods"):
        request = wait.WaitRequest(ApplicationRef(name), timeout=timedelta(seconds=3))
        assert isinstance(await wait.wait(stage.cluster(RightsFor.WAIT), request, lambda _: None), Open)
        stage.world.argocd.pause()
        await after(600)
        await wait.wait(stage.cluster(RightsFor.WAIT), request, lambda _: None)
        stage.world.argocd.resume()
        await after(30)


async def look_at_the_status(stage: Stage) -> None:
    """Also while Argo CD does not run, and while every Application is unhealthy: then all objects are read."""
    shown = await status.read_status(stage.cluster(RightsFor.STATUS))
    assert [each.name for each in shown.failed + shown.active] == ["bad"], shown
    assert "CrashLoopBackOff" in str((shown.failed + shown.active)[0])
    for name in ("web", "db", "pods"):
        stage.world.argocd.health_overrides.clear()
        stage.world.argocd.health_overrides[name] = "Degraded"
        await patch(stage.world, REFRESH, name)
        await after(5)
        shown = await status.read_status(stage.cluster(RightsFor.STATUS))
        assert name in [each.name for each in shown.failed]
    stage.world.argocd.health_overrides.clear()
    for name in ("web", "db", "pods"):
        await patch(stage.world, REFRESH, name)
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await status.watch_status(stage.cluster(RightsFor.STATUS), lambda _: None)
    stage.world.argocd.pause()
    await after(600)
    assert "is its controller running?" in (await status.read_status(stage.cluster(RightsFor.STATUS))).notices[0]
    stage.world.argocd.resume()
    await after(200)


async def look_at_an_empty_cluster(stage: Stage) -> None:
    request = RunRequest(Action.DEPLOY, "staging", platform(), Scope(), root=ROOT)
    assert (await plan.plan(stage.cluster(RightsFor.PLAN), request)).plan.steps
    await validate.validate(stage.cluster(RightsFor.VALIDATE), validate.ValidateRequest("staging", platform()))
    never = wait.WaitRequest(ApplicationRef("web"), timeout=timedelta(seconds=3))
    assert isinstance(await wait.wait(stage.cluster(RightsFor.WAIT), never, lambda _: None), wait.WaitTimeout)
    assert (await stage.run(RightsFor.TEARDOWN, "nothing")).summary.exit_code == 0


NOT_PLAYED = {
    ("deploy", "applications", "list"): "the server streams the list; one that does not is listed",
    ("wait", "applications", "list"): "as above",
    ("status", "leases", "list"): "as above",
    ("teardown", "leases", "create"): "a deploy is recorded here; without it the teardown creates the Lease",
}
"""Rights that this cluster gives no occasion to use."""


def test_each_action_uses_the_rights_that_are_printed_for_it_and_no_other() -> None:
    stages: list[Stage] = []

    async def main() -> None:
        async with clusters.world(user=UserInfo("nobody")) as w:
            stages.append(Stage(w))
            await prepare(stages[0])
            await look_at_an_empty_cluster(stages[0])
            for policy in VolumePolicy:
                await play(stages[0], policy)

    clusters.run(main())
    unused = set()
    for action in RightsFor:
        entries = stages[0].entries(action)
        assert not [each for each in entries if each.code == 403]
        unused |= {
            (str(action), *each) for right in RIGHTS if action in right.actions for each in unused_parts(right, entries)
        }
    assert unused == set(NOT_PLAYED)


def unused_parts(right: Right, entries: list[JournalEntry]) -> set[tuple[str, str]]:
    """Verbs that no request used on any of the resources, and resources that none addressed."""
    used = {
        (resource, verb)
        for each in entries
        for resource in [resource_of(right, each)]
        if resource
        for verb in verbs(each)
    }
    unused_verbs = set(right.verbs) - {verb for _, verb in used}
    unused_resources = set(right.resources) - {resource for resource, _ in used}
    return {(right.resources[0], verb) for verb in unused_verbs} | {(name, "") for name in unused_resources}


def resource_of(right: Right, entry: JournalEntry) -> str:
    """The resource of the right that the request addresses; empty if none."""
    plural, _, group = entry.kind.partition(".")
    if right.group not in {"*", group}:
        return ""
    return next((name for name in right.resources if name in {"*", plural}), "")


def verbs(entry: JournalEntry) -> tuple[str, ...]:
    """An apply is authorized as a patch, and as a create if the object does not exist."""
    return ("patch", "create") if entry.verb == "apply" else (entry.verb,)


def test_applications_of_other_namespaces_need_rights_there() -> None:
    made = builders.platform("web")
    node = replace(made.applications["web"], target=ApplicationRef("web", "team"))
    request = RunRequest(Action.DEPLOY, "staging", replace(made, applications={"web": node}), Scope())
    outcomes = []

    async def main() -> None:
        async with clusters.world(user=UserInfo("nobody")) as w:
            stage, admin = Stage(w), w.sandbox.client()
            w.argocd.repositories[URL] = MemoryRepository({"web/all.yaml": [config()]})
            await admin.create("namespaces", {"metadata": {"name": "team"}})
            w.argocd.application_namespaces = ("team",)
            projects = "appprojects.argoproj.io"
            await admin.patch(projects, "default", {"spec": {"sourceNamespaces": ["team"]}}, "argocd")
            app = application()
            app["metadata"]["namespace"] = "team"
            await admin.create("applications.argoproj.io", app, "team")
            await after(5)
            await stage.grant(RightsFor.DEPLOY, "team")
            report = await deploy.deploy(run_context(stage.client(RightsFor.DEPLOY)), request)
            outcomes.append((report.summary.exit_code, [each.code for each in stage.entries(RightsFor.DEPLOY)]))

    clusters.run(main())
    [(code, codes)] = outcomes
    assert code == 0
    assert 403 not in codes
