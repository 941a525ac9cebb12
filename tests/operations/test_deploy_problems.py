"""deploy where rights are missing, objects cannot be read, or something ends it: refused in order, or told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests import builders
from tests.operations.clusters import after, begin, cluster
from tests.operations.teardown.test_cleanup import DEFINITIONS, definition
from tests.run_contexts import run_context
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import URL, application, claim, config, workload
from windlass.argo.cd.root_application import RootApplication
from windlass.core.platform.model.applications import ApplicationRef, NodeTiming, ResourceRef, Retries
from windlass.core.platform.model.scopes import Scope, parse_scope
from windlass.core.platform.planning.approvals import ApprovedPlan
from windlass.core.platform.reporting.reports import Action
from windlass.errors import WindlassError
from windlass.kube.access_reviews import Unpermitted
from windlass.operations import deploy, validate
from windlass.operations import plan as plan_operation
from windlass.operations.cluster_identity import read_cluster_binding
from windlass.operations.observation import NoNamespace
from windlass.operations.planner import Moved, RunRequest
from windlass.operations.run.context import RunContext, RunControl
from windlass.operations.run.run_lock import Locked
from windlass.operations.teardown import teardown
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import UserInfo
from windlass.simulation.in_process_transport import USER_AGENT

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.reporting.reports import Report

CLAIMS = "persistentvolumeclaims"
BOB = UserInfo("bob")
LOOKING = [
    {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["get", "list", "watch"]},
    {"nonResourceURLs": ["*"], "verbs": ["get"]},
]
LEASES = "leases.coordination.k8s.io"
LEASING = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
UNLEASED = ", ".join(f"{verb} {LEASES} in argocd" for verb in LEASING["verbs"])
SOME = parse_scope("app:none")
PATCHING = {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["patch"]}


def access(w: World, control: RunControl, argocd: str = "argocd") -> RunContext:
    return run_context(w.kube, "run-1", control, cluster=replace(cluster(w), argocd_namespace=argocd))


async def deployed(w: World, platform: Platform, **wish: Any) -> Report:
    return await deploy.deploy(
        access(w, RunControl(lambda _: None)), RunRequest(Action.DEPLOY, "staging", platform, Scope(), **wish)
    )


async def grant(w: World, *rules: dict[str, Any]) -> None:
    meta, group = {"name": "bob"}, "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "bob"}
    subjects = [{"apiGroup": group, "kind": "User", "name": "bob"}]
    await w.sandbox.client().create(f"clusterroles.{group}", {"metadata": meta, "rules": list(rules)})
    binding = {"metadata": meta, "roleRef": role, "subjects": subjects}
    await w.sandbox.client().create(f"clusterrolebindings.{group}", binding)


def writes(w: World) -> list[str]:
    return [entry.kind for entry in w.sandbox.server.journal.writes("bob")]


@pytest.mark.parametrize(
    ("rules", "root", "missing"),
    [
        ([], None, f"user bob lacks rights: patch applications.argoproj.io in argocd, {UNLEASED}"),
        ([PATCHING], None, f"user bob lacks rights: {UNLEASED}"),
        (
            [PATCHING, LEASING],
            RootApplication(URL, "main", ".", {}),
            "user bob lacks rights: create applications.argoproj.io in argocd",
        ),
    ],
)
def test_rights_that_are_missing_are_told_before_anything_is_changed(
    rules: list[dict[str, Any]], root: RootApplication | None, missing: str
) -> None:
    """Not even a refresh is asked for; only whether a root is needed nobody knows before it."""
    names = "web: ; none:" if root else "web:"

    async def main() -> None:
        async with clusters.world(user=BOB) as w:
            await grant(w, *LOOKING, *rules)
            await begin(w, {"web/all.yaml": [config()]})
            with pytest.raises(Unpermitted) as refused:
                await deployed(w, builders.platform(names), root=root)
            assert refused.value.what == missing
            assert writes(w) == ["applications.argoproj.io"] * bool(root)

    clusters.run(main())


async def held_by_a_live_one(w: World) -> None:
    """It renews its Lease for as long as it runs."""
    lease = {"metadata": {"name": "windlass"}, "spec": {"holderIdentity": "run-0"}}
    await w.sandbox.client().create(LEASES, lease, "argocd")

    async def renewed() -> None:
        while True:
            await after(4)
            now = {"spec": {"renewTime": w.kube.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}
            await w.sandbox.client().patch(LEASES, "windlass", now, "argocd")

    w.sandbox.start(renewed(), name="another run")


def test_a_run_that_another_one_keeps_out_asks_for_no_refresh() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config()]})
            await held_by_a_live_one(w)
            with pytest.raises(Locked, match="another run holds the lock: run run-0"):
                await deployed(w, builders.platform("web:"))
            assert (w.kube.counts.writes, await refreshed(w)) == (0, False)

    clusters.run(main())


async def refreshed(w: World) -> bool:
    found = await w.sandbox.client().get("applications.argoproj.io", "web", "argocd")
    return "argocd.argoproj.io/refresh" in (found["metadata"].get("annotations") or {})


def test_a_plan_that_does_not_hold_any_more_asks_for_no_refresh() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config()]})
            approved = ApprovedPlan({}, frozenset({"web"}), cluster=await read_cluster_binding(cluster(w)))
            with pytest.raises(Moved, match="web would now be synced"):
                await deployed(w, builders.platform("web:"), approved_plan=approved)
            assert w.kube.counts.writes == 0

    clusters.run(main())


@pytest.mark.parametrize("action", [Action.DEPLOY, Action.TEARDOWN])
def test_a_plan_writes_nothing(action: Action) -> None:
    """Although what it looks at follows a branch."""

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config()]})
            wish = RunRequest(action, "staging", builders.platform("web:"), Scope())
            found = await plan_operation.plan(cluster(w), wish)
            assert [step.name for step in found.plan.steps] == ["web"]
            assert w.kube.counts.writes == 0

    clusters.run(main())


@pytest.mark.parametrize("action", ["deploy", "plan", "teardown", "validate"])
def test_a_namespace_that_is_not_there_is_told_before_anything_is_changed(action: str) -> None:
    """Although there are Applications elsewhere that could be refreshed, or removed."""
    platform = builders.platform("web: ; none:")
    elsewhere = replace(platform.applications["web"], target=ApplicationRef("web", "argocd"))
    platform = replace(platform, applications={**platform.applications, "web": elsewhere})

    async def done(w: World) -> None:
        wrong = access(w, RunControl(lambda _: None), "argo-cd")
        match action:
            case "plan":
                wish = RunRequest(Action.DEPLOY, "staging", platform, Scope())
                await plan_operation.plan(replace(cluster(w), argocd_namespace="argo-cd"), wish)
            case "validate":
                await validate.validate(
                    replace(cluster(w), argocd_namespace="argo-cd"), validate.ValidateRequest("staging", platform, SOME)
                )
            case "deploy":
                await deploy.deploy(wrong, RunRequest(Action.DEPLOY, "staging", platform, Scope()))
            case "teardown":
                await teardown.teardown(wrong, RunRequest(Action.TEARDOWN, "staging", platform, Scope()))

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config()]})
            with pytest.raises(NoNamespace) as told:
                await done(w)
            assert told.value.what == "there is no namespace argo-cd, in which Argo CD should be"
            assert told.value.where == w.kube.server
            assert "argocdNamespace in environment.yaml" in told.value.hint
            assert w.kube.counts.writes == 0

    clusters.run(main())


def test_who_may_not_look_at_the_namespace_may_still_be_right() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            w.sandbox.server.faults.add(Fault(verb="get", kind="namespaces", code=403, reason="Forbidden", times=None))
            wish = RunRequest(Action.DEPLOY, "staging", builders.platform("web:"), Scope())
            assert (await plan_operation.plan(cluster(w), wish)).plan.steps

    clusters.run(main())


@pytest.mark.parametrize("is_new", [True, False])
def test_a_root_that_cannot_be_compared_fails_with_argo_cds_own_words(is_new: bool) -> None:
    """Its folder is not in the repository; or it was, when it was first compared."""
    root = RootApplication(URL, "main", "root", {})

    async def main() -> None:
        async with clusters.world() as w:
            chart = {"root/Chart.yaml": {"name": "root", "version": "1.0.0"}, "web/all.yaml": [config()]}
            definition = {"root/templates/web.yaml": application("web")}
            repository = await begin(w, {**chart, **definition})
            await w.sandbox.client().delete("applications.argoproj.io", "web", "argocd")
            await after(5)
            if not is_new:
                assert (await deployed(w, builders.platform("web:"), root=root)).summary.exit_code == 0
                await w.sandbox.client().delete("applications.argoproj.io", "web", "argocd")
                await after(5)
            repository.push({"web/all.yaml": [config()]})
            report = await deployed(w, once(builders.platform("next: web; web:")), root=root)
            assert {each.name: str(each.result) for each in report.components} == {"web": "failed", "next": "failed"}
            [failure] = report.failures
            assert (failure.name, failure.reason) == ("argocd/platform-root", "ParentBroken")
            assert failure.blocks == ("next", "web")
            assert "ComparisonError: Failed to load target state" in failure.detail
            assert "root: app path does not exist" in failure.detail
            assert report.summary.duration < timedelta(minutes=3)

    clusters.run(main())


def once(platform: Platform) -> Platform:
    nodes = {name: replace(node, retries=Retries(1)) for name, node in platform.applications.items()}
    return replace(platform, applications=nodes)


def test_what_the_server_serves_is_asked_once() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await prepared(w)
            await deployed(w, with_claim(w))
            entries = w.sandbox.server.journal.entries
            assert [each.kind for each in entries if each.agent == USER_AGENT and each.kind.startswith("/api")] == [
                "/api",
                "/apis",
            ]

    clusters.run(main())


def test_a_kind_that_comes_during_the_run_is_found() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await prepared(w)
            platform = with_claim(w)
            target = ResourceRef("example.com/v1", "Widget", "one", "default")
            nodes = {**platform.applications, "ready": replace(platform.applications["ready"], target=target)}
            w.sandbox.start(served(w), name="its operator")
            report = await deployed(w, replace(platform, applications=nodes))
            assert report.summary.exit_code == 0, report.failures

    async def served(w: World) -> None:
        await after(10)
        await w.sandbox.client().create(DEFINITIONS, definition("web"))
        await after(5)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "status": ready}
        await w.sandbox.client().create("widgets.example.com", body, "default")

    clusters.run(main())


def with_claim(w: World, name: str = "data") -> Platform:
    """A claim is a gate between two applications."""
    made = builders.platform("next: ready; ready+: web; web:")
    nodes = {
        each: replace(node, timing=NodeTiming(health=timedelta(minutes=1))) for each, node in made.applications.items()
    }
    nodes["ready"] = replace(nodes["ready"], target=ResourceRef("v1", "PersistentVolumeClaim", name, "default"))
    return replace(made, applications=nodes)


async def prepared(w: World) -> None:
    await begin(w, {"web/all.yaml": [config()], "next/all.yaml": [config("next")]}, application(), application("next"))
    await w.sandbox.client().create(CLAIMS, claim(), "default")
    await after(5)


@pytest.mark.parametrize(("code", "reason"), [(403, "Forbidden"), (500, "InternalError")])
def test_an_object_that_cannot_be_read_fails_its_node_and_nothing_else(code: int, reason: str) -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await prepared(w)
            w.sandbox.server.faults.add(Fault(verb="get", kind=CLAIMS, code=code, reason=reason, times=None))
            report = await deployed(w, with_claim(w))
            results = {each.name: str(each.result) for each in report.components}
            assert results == {"web": "succeeded", "ready": "failed", "next": "skipped"}
            assert report.failures[0].detail.startswith("it cannot be read: injected fault")

    clusters.run(main())


def test_trouble_that_passes_is_waited_out() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await prepared(w)
            fault = Fault(verb="get", kind=CLAIMS, code=403, reason="Forbidden", times=6)
            w.sandbox.server.faults.add(fault)
            report = await deployed(w, with_claim(w))
            assert report.summary.exit_code == 0, report.failures
            assert fault.hits == 6

    clusters.run(main())


def test_what_ended_a_run_stands_in_its_report() -> None:
    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config()]})
            control = RunControl(
                lambda event: control.fail(WindlassError("the sky fell")) if "NodeStarted" in repr(event) else None
            )
            report = await deploy.deploy(
                access(w, control), RunRequest(Action.DEPLOY, "staging", builders.platform("web:"), Scope())
            )
            assert report.notices == ("the sky fell",)
            assert [(each.name, each.reason) for each in report.failures] == [("web", "Interrupted")]


def test_what_was_under_way_tells_what_it_was_waiting_for() -> None:
    slow = workload(annotations={"sandbox.windlass.dev/ready-after": "never"})

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config(), slow]})
            control = RunControl(lambda _: None)
            asyncio.get_running_loop().call_later(30, control.interrupt)
            report = await deploy.deploy(
                access(w, control), RunRequest(Action.DEPLOY, "staging", builders.platform("web:"), Scope())
            )
            assert report.failures[0].reason == "Interrupted"
            assert report.failures[0].detail.startswith("when the run ended it was waiting: it is Progressing")

    clusters.run(main())
