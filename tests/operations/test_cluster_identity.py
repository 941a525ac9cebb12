"""A cluster knows which environment and platform it is: deploys and teardowns of another one are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests import builders
from tests.operations.clusters import after, begin, cluster
from tests.operations.teardown.teardowns import stand
from tests.run_contexts import run_context, run_lease
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import URL, application, config
from windlass.argo.cd.root_application import RootApplication
from windlass.core.platform.identity import EMBEDDED_PLATFORM
from windlass.core.platform.model.scopes import Scope, parse_scope
from windlass.core.platform.reporting.reports import Action
from windlass.errors import ExitCode
from windlass.operations import deploy, validate
from windlass.operations import plan as plan_operation
from windlass.operations.cluster_identity import WrongPlatform
from windlass.operations.observation import NoArgoCd
from windlass.operations.planner import RunRequest
from windlass.operations.run import run_lock
from windlass.operations.run.context import RunControl
from windlass.operations.run.lifecycle import Run
from windlass.operations.teardown import teardown
from windlass.operations.validate import ValidateRequest
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.repositories import MemoryRepository

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.reporting.reports import Report

LEASES = "leases.coordination.k8s.io"
PLATFORM = builders.platform("web:")
OTHERS: dict[str, dict[str, Any]] = {
    "environment": {"environment": "production"},
    "platform": {"platform": replace(PLATFORM, name="bank")},
}
OPERATIONS = {Action.DEPLOY: deploy.deploy, Action.TEARDOWN: teardown.teardown}


def request(action: Action, **changes: Any) -> RunRequest:
    return replace(RunRequest(action, "staging", PLATFORM, Scope(), platform_file="dag.yaml"), **changes)


async def run(w: World, action: Action, **changes: Any) -> Report:
    return await OPERATIONS[action](run_context(w.kube), request(action, **changes))


async def record(w: World) -> dict[str, str]:
    lease = await w.sandbox.client().get(LEASES, "windlass", "argocd")
    return {key: value for key, value in (lease["metadata"].get("annotations") or {}).items() if "windlass" in key}


def recorded(environment: str = "staging", platform: str = "test") -> dict[str, str]:
    return {"windlass.dev/environment": environment, "windlass.dev/platform": platform}


def on_a_platform(work: Callable[[World], Awaitable[None]]) -> None:
    """`web` is defined and not deployed yet."""

    async def main() -> None:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": [config()]}, application("web"))
            await work(w)

    clusters.run(main())


def test_the_first_deploy_records_what_the_cluster_is_with_the_lock_itself() -> None:
    async def work(w: World) -> None:
        report = await run(w, Action.DEPLOY)
        assert report.summary.exit_code == 0, report.failures
        assert await record(w) == recorded()
        entries = [each for each in w.sandbox.server.journal.writes() if each.kind == LEASES]
        assert [each.verb for each in entries][:1] == ["create"]
        assert report.summary.platform == "test"
        assert report.summary.platform_file == "dag.yaml"
        assert report.summary.server == w.kube.server

    on_a_platform(work)


def test_the_record_outlives_later_holders_and_their_renewals() -> None:
    async def work(w: World) -> None:
        await run(w, Action.DEPLOY)
        async with run_lock.hold_lock(run_lease(w.kube, "another"), RunControl(lambda _: None)):
            await after(20)
            assert await record(w) == recorded()
        assert await record(w) == recorded()

    on_a_platform(work)


@pytest.mark.parametrize("action", list(OPERATIONS))
@pytest.mark.parametrize("what", OTHERS)
def test_another_environment_or_platform_is_refused_before_anything_is_written(action: Action, what: str) -> None:
    async def work(w: World) -> None:
        await run(w, Action.DEPLOY)
        before = w.kube.counts.writes
        with pytest.raises(WrongPlatform) as told:
            await run(w, action, **OTHERS[what])
        assert told.value.exit_code is ExitCode.INVALID
        assert "recorded as environment staging, platform test; the request is for" in told.value.what
        assert ("production" if what == "environment" else "bank") in told.value.what
        assert "--take-over" in told.value.hint
        assert w.kube.counts.writes == before

    on_a_platform(work)


def test_a_cluster_that_is_taken_over_is_recorded_anew() -> None:
    async def work(w: World) -> None:
        """Although there is nothing else to do."""
        await run(w, Action.DEPLOY)
        assert (await run(w, Action.DEPLOY, environment="production", takes_over=True)).summary.exit_code == 0
        assert await record(w) == recorded("production")

    on_a_platform(work)


def test_the_record_is_read_again_when_the_lock_is_acquired() -> None:
    async def work(w: World) -> None:
        body = {"metadata": {"name": "windlass", "annotations": recorded("production")}}
        await w.sandbox.client().create(LEASES, body, "argocd")
        with pytest.raises(WrongPlatform, match="environment production"):
            async with Run(run_context(w.kube), request(Action.DEPLOY)).hold_lock():
                pass
        assert await record(w) == recorded("production")

    on_a_platform(work)


def test_who_may_not_read_the_record_is_told_about_the_missing_right() -> None:
    async def work(w: World) -> None:
        w.sandbox.server.faults.add(Fault(verb="get", kind=LEASES, code=403, reason="Forbidden", times=1))
        assert (await run(w, Action.DEPLOY)).summary.exit_code == 0  # the next read was allowed

    on_a_platform(work)


def test_a_teardown_without_a_platform_file_needs_the_record_of_that_platform() -> None:
    reference = {"platform": replace(PLATFORM, name="reference"), "platform_file": EMBEDDED_PLATFORM}

    async def work(w: World) -> None:
        before = w.kube.counts.writes
        with pytest.raises(WrongPlatform, match="no deploy is recorded on this cluster"):
            await run(w, Action.TEARDOWN, **reference)
        assert w.kube.counts.writes == before
        assert (await run(w, Action.DEPLOY, **reference)).summary.exit_code == 0
        assert (await run(w, Action.TEARDOWN, **reference)).summary.exit_code == 0
        before = w.kube.counts.writes
        assert (await run(w, Action.TEARDOWN, **reference)).summary.exit_code == 0, "nothing is left to refuse"
        assert w.kube.counts.writes == before

    on_a_platform(work)


def test_a_teardown_without_a_platform_file_can_take_over() -> None:
    async def work(w: World) -> None:
        report = await run(w, Action.TEARDOWN, platform_file=EMBEDDED_PLATFORM, takes_over=True)
        assert report.summary.exit_code == 0, report.failures

    on_a_platform(work)


def test_a_teardown_with_a_platform_file_says_that_nothing_is_recorded() -> None:
    async def work(w: World) -> None:
        report = await run(w, Action.TEARDOWN)
        assert report.summary.exit_code == 0, report.failures
        assert any("no deploy is recorded on this cluster" in notice for notice in report.notices)

    on_a_platform(work)


def test_what_only_reads_warns() -> None:
    async def work(w: World) -> None:
        await run(w, Action.DEPLOY)
        planned = await plan_operation.plan(cluster(w), request(Action.DEPLOY, environment="production"))
        validated = await validate.validate(cluster(w), ValidateRequest("production", PLATFORM))
        for report in (planned.report, validated):
            assert report.summary.exit_code == 0
            assert any("recorded as environment staging" in notice for notice in report.notices)
        same = await validate.validate(cluster(w), ValidateRequest("staging", PLATFORM))
        assert not same.notices

    on_a_platform(work)


async def _act(w: World, action: str) -> object:
    wrong = replace(cluster(w), argocd_namespace="default")
    match action:
        case "validate":
            return await validate.validate(wrong, ValidateRequest("staging", PLATFORM))
        case "deploy" | "teardown":
            return await OPERATIONS[Action(action)](run_context(w.kube, cluster=wrong), request(Action(action)))
    return await plan_operation.plan(wrong, request(Action(action.removeprefix("plan of "))))


@pytest.mark.parametrize("action", ["deploy", "teardown", "validate", "plan of deploy", "plan of teardown"])
def test_a_namespace_without_argo_cd_is_refused_by_every_action(action: str) -> None:
    """A teardown would find nothing there and say that all is gone."""

    async def work(w: World) -> None:
        with pytest.raises(NoArgoCd, match="namespace default is not that of Argo CD"):
            await _act(w, action)
        assert w.kube.counts.writes == 0

    on_a_platform(work)


@pytest.mark.parametrize("kind", ["appprojects.argoproj.io", "configmaps"])
def test_what_may_not_be_read_may_be_argo_cds(kind: str) -> None:
    async def work(w: World) -> None:
        w.sandbox.server.faults.add(Fault(verb="get", kind=kind, code=403, reason="Forbidden", times=None))
        report = await _act(w, "teardown")
        assert report.summary.exit_code == 0  # type: ignore[attr-defined]

    on_a_platform(work)


@pytest.mark.parametrize("action", list(OPERATIONS))
def test_a_stack_without_applications_selects_nothing(action: Action) -> None:
    async def work(w: World) -> None:
        before = w.kube.counts.writes
        report = await run(w, action, scope=parse_scope("stack:empty"))
        assert (report.summary.exit_code, report.components) == (0, ())
        assert "nothing is selected: stack:empty has no application" in report.notices
        assert w.kube.counts.writes == before
        planned = await plan_operation.plan(cluster(w), request(action, scope=parse_scope("stack:empty")))
        assert "nothing is selected: stack:empty has no application" in planned.report.notices

    on_a_platform(work)


@pytest.mark.parametrize("action", list(OPERATIONS))
def test_without_the_lease_the_root_shows_the_environment(action: Action) -> None:
    async def main() -> None:
        async with clusters.world() as w:
            s = stand(w, "web:")
            w.argocd.repositories[URL] = MemoryRepository(s.files())
            root = RootApplication(URL, "main", "root", {"environment": "staging"})
            assert (await run(w, Action.DEPLOY, root=root)).summary.exit_code == 0
            await w.sandbox.client().delete(LEASES, "windlass", "argocd")
            before = w.kube.counts.writes
            changes = {} if action is Action.TEARDOWN else {"root": replace(root, parameters={"environment": "live"})}
            with pytest.raises(WrongPlatform, match="recorded as environment staging, platform"):
                await run(w, action, environment="live", **changes)
            assert w.kube.counts.writes == before
            with pytest.raises(WrongPlatform, match="no deploy is recorded"):
                await run(w, Action.TEARDOWN, platform_file=EMBEDDED_PLATFORM)
            same = {"root": root} if action is Action.DEPLOY else {}
            assert (await run(w, action, **same)).summary.exit_code == 0

    clusters.run(main())
