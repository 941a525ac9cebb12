"""A right that is missing is named, at once: waiting does not grant it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests import builders
from tests.operations.clusters import BROKEN, SYNC, after, begin, patch
from tests.operations.custom_resources import THINGS, thing
from tests.operations.test_object_health import ThingsAreIll
from tests.operations.test_permissions import Stage
from tests.run_contexts import run_context
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import application, config, workload
from windlass.core.platform.model.applications import NodeTiming, ResourceRef, Retries
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.permissions import RIGHTS, RightsFor
from windlass.core.platform.reporting.reports import Action
from windlass.operations.deploy import deploy
from windlass.operations.observation import ObservedCluster
from windlass.operations.planner import RunRequest
from windlass.operations.teardown.teardown import teardown
from windlass.operations.validate import ValidateRequest, validate
from windlass.sandbox.apiserver.requests import UserInfo

if TYPE_CHECKING:
    from windlass.core.platform.model.applications import Platform

NOBODY = UserInfo("nobody")
ROLES = "clusterroles.rbac.authorization.k8s.io"


def platform(text: str) -> Platform:
    made = builders.platform(text)
    timing = NodeTiming(health=timedelta(hours=2))
    nodes = {name: replace(node, timing=timing, retries=Retries(5)) for name, node in made.applications.items()}
    return replace(made, applications=nodes)


async def granted_without(stage: Stage, action: RightsFor, resource: str) -> None:
    """All rights of the action but those on this resource."""
    await stage.grant(action)
    name, client = f"windlass-{action}", stage.world.sandbox.client()
    rules = (await client.get(ROLES, name))["rules"]
    assert any(resource in rule["resources"] for rule in rules)
    left = [{**rule, "resources": [each for each in rule["resources"] if each != resource]} for rule in rules]
    await client.patch(ROLES, name, {"rules": [rule for rule in left if rule["resources"]]})


def test_an_application_whose_objects_may_not_be_read_fails_at_once() -> None:
    made = platform("next: db*")

    async def main() -> None:
        async with world(user=NOBODY) as w:
            stage = Stage(w)
            files = {"db/all.yaml": [workload(name="db")], "next/all.yaml": [config("next")]}
            await begin(w, files, application("db"), application("next"))
            await granted_without(stage, RightsFor.DEPLOY, "deployments")
            await granted_without(stage, RightsFor.VALIDATE, "deployments")
            started = w.sandbox.clock.now()
            context = run_context(stage.client(RightsFor.DEPLOY))
            report = await deploy(context, RunRequest(Action.DEPLOY, "staging", made, Scope()))
            assert w.sandbox.clock.now() - started < timedelta(minutes=1)
            right = "may not get deployments.apps in namespace default"
            [failure] = report.failures
            assert (failure.name, failure.reason, failure.blocks) == ("db", "RightMissing", ("next",))
            assert failure.detail == f"it is Unknown: user deploy {right}"
            assert report.components[0].attempts == 1
            assert report.recommendations[1].command == "windlass rbac --for deploy"
            again = run_context(stage.client(RightsFor.DEPLOY), "run-2")
            before = w.sandbox.clock.now()
            second = await deploy(again, RunRequest(Action.DEPLOY, "staging", made, Scope()))
            assert [each.reason for each in second.failures] == ["RightMissing"]
            assert w.sandbox.clock.now() - before < timedelta(minutes=1)
            client = stage.client(RightsFor.VALIDATE)
            looked = await validate(ObservedCluster(client, client.clock.now), ValidateRequest("staging", made))
            assert (looked.failures[0].name, looked.failures[0].reason) == ("db", "RightMissing")
            assert looked.failures[0].detail == f"it is Unknown: user validate {right}"
            assert looked.recommendations[1].command == "windlass rbac --for validate"

    run(main())


def test_a_gate_that_may_not_be_read_fails_at_once() -> None:
    made = platform("ready")
    node = replace(made.applications["ready"], target=ResourceRef("v1", "Service", "web", "default"))
    made = replace(made, applications={"ready": node})

    async def main() -> None:
        async with world(user=NOBODY) as w:
            await begin(w, {"web/all.yaml": [config()]})
            stage = Stage(w)
            await stage.grant(RightsFor.DEPLOY)
            started = w.sandbox.clock.now()
            context = run_context(stage.client(RightsFor.DEPLOY))
            report = await deploy(context, RunRequest(Action.DEPLOY, "staging", made, Scope()))
            assert w.sandbox.clock.now() - started < timedelta(minutes=1)
            told = "it is Unknown: user deploy may not get services in namespace default"
            assert [(each.reason, each.detail) for each in report.failures] == [("RightMissing", told)]

    run(main())


def test_what_may_not_be_deleted_is_named() -> None:
    """Of an Application that was deleted alone, its ConfigMap is left."""

    async def main() -> None:
        async with world(user=NOBODY) as w:
            stage, admin = Stage(w), w.sandbox.client()
            await begin(w, {"web/all.yaml": [config()]})
            await stage.grant(RightsFor.DEPLOY)
            await stage.grant(RightsFor.TEARDOWN)
            made = builders.platform("web")
            request = RunRequest(Action.DEPLOY, "staging", made, Scope())
            assert (await deploy(run_context(stage.client(RightsFor.DEPLOY)), request)).summary.exit_code == 0
            await admin.patch("applications.argoproj.io", "web", {"metadata": {"finalizers": None}}, "argocd")
            await admin.delete("applications.argoproj.io", "web", "argocd")
            await after(5)
            request = RunRequest(Action.TEARDOWN, "staging", made, Scope())
            report = await teardown(run_context(stage.client(RightsFor.TEARDOWN), "run-2"), request)
            [failure] = report.failures
            told = (
                "its deletion was refused: user teardown may not delete configmaps in namespace default (403 Forbidden)"
            )
            assert (failure.reason, failure.detail) == ("RightMissing", told)
            assert report.recommendations[1].command == "windlass rbac --for teardown"

    run(main())


def test_a_kind_that_the_application_itself_brings_is_found() -> None:
    """What the server serves was read before the sync that installs the kind."""
    crd = {**THINGS, "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    files: dict[str, Any] = {"web/all.yaml": [crd, thing("a")], "first/all.yaml": [config("first")]}

    class Well(ThingsAreIll):
        async def assess(self, item: dict[str, Any]) -> Any:
            return replace(await super().assess(item), health=Health.HEALTHY)

    async def main() -> None:
        async with world() as w:
            await begin(w, files, application("web"))
            looked = ObservedCluster(w.kube, w.kube.clock.now, assessor=Well())
            await looked.served.discovery()
            context = run_context(w.kube, cluster=looked)
            request = RunRequest(Action.DEPLOY, "staging", platform("web*"), Scope())
            assert (await deploy(context, request)).failures == ()

    run(main())


def test_the_table_names_each_right_once() -> None:
    named = [
        (action, right.group, resource, verb, right.names)
        for right in RIGHTS
        for action in right.actions
        for resource in right.resources
        for verb in right.verbs
    ]
    assert len(named) == len(set(named))


def test_m20_a_validation_says_once_what_it_may_not_read() -> None:
    async def main() -> None:
        async with world(user=NOBODY) as w:
            stage = Stage(w)
            names = ("api", "web")
            broken = {f"{name}/all.yaml": [workload(name=name, annotations=BROKEN)] for name in names}
            await begin(w, broken, *map(application, names))
            for name in names:
                await patch(w, SYNC, name)
            await after(30)
            await granted_without(stage, RightsFor.VALIDATE, "events")
            request = ValidateRequest("staging", builders.platform("api; web"))
            report = await validate(stage.cluster(RightsFor.VALIDATE), request)
            assert all("ImagePullBackOff" in str(each.diagnostics) for each in report.failures)
            assert [each.name for each in report.failures] == ["api", "web"]
            assert report.notices == (
                "what explains failures is incomplete: no right to list events (see windlass rbac --for validate)",
            )

    run(main())
