"""An approved plan is exact: each step at its approved revision, in its cluster; what comes later is not deployed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import platform
from tests.operations.clusters import APPS, after, begin, patch
from tests.run_contexts import run_context
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import URL, application, config
from windlass.argo.cd.root_application import RootApplication
from windlass.core.platform.events import NodeFinished, PhaseStarted, RunPhase
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.planning.approvals import approval_problems
from windlass.core.platform.reporting.reports import Action
from windlass.errors import ExitCode
from windlass.operations import deploy, refresh
from windlass.operations import plan as plan_operation
from windlass.operations.cluster_identity import WrongCluster
from windlass.operations.planner import Moved, RunRequest
from windlass.operations.run.context import RunContext, RunControl
from windlass.operations.teardown import teardown
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.argocd.repositories import MemoryRepository

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.events import Event
    from windlass.core.platform.planning.approvals import ApprovedPlan
    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.plan import PlanResult
    from windlass.sandbox.apiserver.store import StoreChange

LEASES = "leases.coordination.k8s.io"
NAMES = ("a", "b")
PLATFORM = platform("b: a")
OPERATIONS = {Action.DEPLOY: deploy.deploy, Action.TEARDOWN: teardown.teardown}


def folders(value: str = "1") -> dict[str, Any]:
    return {f"{name}/all.yaml": [config(name, value)] for name in NAMES}


def with_root(value: str = "1", follows: str = "{{ .Values.targetRevision }}") -> dict[str, Any]:
    """A root that pins each application to its own commit, unless told what else they follow."""
    files = {**folders(value), "root/Chart.yaml": {"name": "root", "version": "1.0.0"}}
    for name in NAMES:
        made = application(name)
        made["spec"]["source"]["targetRevision"] = follows
        files[f"root/templates/{name}.yaml"] = made
    return files


@dataclass(slots=True)
class Stage:
    world: World
    repository: MemoryRepository
    reactions: dict[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)
    """What another client does: when a phase starts, or when a node has finished."""

    def request(self, action: Action = Action.DEPLOY, **changes: Any) -> RunRequest:
        return replace(RunRequest(action, "staging", PLATFORM, Scope()), **changes)

    def context(self, run_id: str = "run-1") -> RunContext:
        return run_context(self.world.kube, run_id, RunControl(self._react))

    def _react(self, event: Event) -> None:
        name = str(event.phase) if isinstance(event, PhaseStarted) else ""
        name = event.outcome.name if isinstance(event, NodeFinished) else name
        if reaction := self.reactions.pop(name, None):
            self.world.sandbox.start(reaction(), name="another client")

    async def plan(self, action: Action = Action.DEPLOY, **changes: Any) -> PlanResult:
        return await plan_operation.plan(self.context().cluster, self.request(action, **changes))

    async def run(self, approved: ApprovedPlan, action: Action = Action.DEPLOY, **changes: Any) -> Report:
        return await OPERATIONS[action](self.context(), self.request(action, approved_plan=approved, **changes))

    async def deployed(self, **changes: Any) -> None:
        report = await deploy.deploy(self.context("run-0"), self.request(**changes))
        assert report.summary.exit_code == 0, report.failures
        await after(20)  # until its health is settled

    async def refresh(self, *names: str) -> None:
        for name in names:
            await patch(self.world, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}, name)
        await after(3)

    async def value(self, name: str) -> str | None:
        """What is deployed of an application."""
        found = await self.world.sandbox.client().find("configmaps", name, "default")
        return str(found["data"]["value"]) if found else None


def on_a_stage(work: Callable[[Stage], Awaitable[None]], files: dict[str, Any], *applications: str) -> None:
    async def main() -> None:
        async with clusters.world() as w:
            if applications:
                repository = await begin(w, files, *(application(name) for name in applications))
            else:
                repository = w.argocd.repositories[URL] = MemoryRepository(files)
            await work(Stage(w, repository))

    clusters.run(main())


def results(report: Report) -> dict[str, str]:
    return {each.name: str(each.result) for each in report.components}


def test_what_was_approved_is_deployed_and_not_a_commit_that_comes_in_between() -> None:
    """The root follows a branch. Its applications are defined anew, one after the other, from the approved commit."""

    async def work(stage: Stage) -> None:
        root = RootApplication(URL, "main", "root", {})
        await stage.deployed(root=root)
        approved_commit = stage.repository.push(with_root("2"))
        await stage.refresh("platform-root")
        planned = await stage.plan(root=root)
        assert {step.name: step.revisions for step in planned.plan.steps} == dict.fromkeys(NAMES, (approved_commit,))

        async def push() -> None:
            stage.repository.push(with_root("3"))
            await stage.refresh("platform-root")

        stage.reactions["a"] = push
        report = await stage.run(planned.summary, root=root)
        assert (report.summary.exit_code, results(report)) == (0, dict.fromkeys(NAMES, "succeeded"))
        assert [await stage.value(name) for name in NAMES] == ["2", "2"]

    on_a_stage(work, with_root())


def test_an_application_whose_branch_moves_before_its_turn_fails() -> None:
    async def work(stage: Stage) -> None:
        planned = await stage.plan()

        async def push() -> None:
            stage.repository.push(folders("2"))
            await stage.refresh("b")

        stage.world.argocd.delays = replace(stage.world.argocd.delays, sync=10)
        stage.reactions["run"] = push
        report = await stage.run(planned.summary)
        failure = next(each for each in report.failures if each.name == "b")
        assert (failure.reason, "approved is" in failure.detail) == ("NotApproved", True)
        assert (await stage.value("a"), await stage.value("b")) == ("1", None)

    on_a_stage(work, folders(), *NAMES)


def test_a_commit_that_came_before_the_run_is_refused() -> None:
    async def work(stage: Stage) -> None:
        planned = await stage.plan()
        stage.repository.push(folders("2"))
        with pytest.raises(Moved, match="a would be synced otherwise: at"):
            await stage.run(planned.summary)
        assert [await stage.value(name) for name in NAMES] == [None, None]

    on_a_stage(work, folders(), *NAMES)


def test_an_application_that_is_edited_before_its_turn_fails() -> None:
    """At the same revision, from another folder."""

    async def work(stage: Stage) -> None:
        planned = await stage.plan()

        async def edit() -> None:
            await patch(stage.world, {"spec": {"source": {"path": "a"}}}, "b")

        stage.world.argocd.delays = replace(stage.world.argocd.delays, sync=10)
        stage.reactions["run"] = edit
        report = await stage.run(planned.summary)
        failure = next(each for each in report.failures if each.name == "b")
        assert (failure.reason, failure.detail) == ("NotApproved", "its definition is not the approved one")

    on_a_stage(work, folders(), *NAMES)


def test_approval_is_checked_again_under_the_lock() -> None:
    """The lock is waited for: a dead run still has it. Another client then pins an application to a new commit."""

    async def work(stage: Stage) -> None:
        for name in NAMES:
            commit = stage.repository.resolve("main")
            await patch(stage.world, {"spec": {"source": {"targetRevision": commit}}}, name)
        await after(5)
        planned = await stage.plan()
        await stage.world.sandbox.client().create(
            LEASES, {"metadata": {"name": "windlass"}, "spec": {"holderIdentity": "dead"}}, "argocd"
        )

        async def pin() -> None:
            commit = stage.repository.push(folders("2"))
            await patch(stage.world, {"spec": {"source": {"targetRevision": commit}}}, "a")

        stage.reactions[str(RunPhase.LOCK)] = pin
        with pytest.raises(Moved, match="a would be synced otherwise: at"):
            await stage.run(planned.summary)
        assert [await stage.value(name) for name in NAMES] == [None, None]

    on_a_stage(work, folders(), *NAMES)


def test_what_is_edited_while_the_approved_root_is_compared_is_not_synced() -> None:
    """The Application has no parent; its new path is in the same commit."""

    async def work(stage: Stage) -> None:
        commit, calls = stage.repository.resolve("main"), stage.world.sandbox.client()
        extra = application("extra")
        extra["spec"]["source"]["targetRevision"] = commit
        await calls.create(APPS, extra)
        await after(3)
        changes: dict[str, Any] = {
            "root": RootApplication(URL, commit, "root", {}),
            "platform": platform("b: a; extra:"),
        }
        planned = await stage.plan(**changes)

        def edit(change: StoreChange) -> None:
            if change.new.name == "platform-root":
                forget()
                other = patch(stage.world, {"spec": {"source": {"path": "a"}}}, "extra")
                stage.world.sandbox.start(other, name="another client")

        forget = stage.world.sandbox.server.store.listen(APPS, "", edit)
        with pytest.raises(Moved, match="extra would be synced otherwise: its definition has changed"):
            await stage.run(planned.summary, **changes)
        assert [await stage.value(name) for name in (*NAMES, "extra")] == [None, None, None]

    on_a_stage(work, {**with_root(), "extra/all.yaml": [config("extra")]})


def test_a_root_that_is_written_at_a_branch_cannot_be_approved() -> None:
    async def work(stage: Stage) -> None:
        planned = await stage.plan(root=RootApplication(URL, "main", "root", {}))
        assert approval_problems(planned.summary)
        assert any(
            "this plan cannot be approved: the root Application changes" in each for each in planned.report.notices
        )
        assert planned.report.summary.exit_code == 0

    on_a_stage(work, with_root())


@pytest.mark.parametrize("is_new", [True, False])
def test_a_root_that_is_written_at_a_commit_is_deployed_at_that_commit(is_new: bool) -> None:
    async def work(stage: Stage) -> None:
        if not is_new:
            await stage.deployed(root=RootApplication(URL, "main", "root", {}))
        commit = stage.repository.push(with_root("2"))
        if not is_new:
            await stage.refresh("platform-root")
        root = RootApplication(URL, commit, "root", {})
        planned = await stage.plan(root=root)
        assert approval_problems(planned.summary) == ()
        if is_new:
            assert {step.name: step.revisions for step in planned.plan.steps} == dict.fromkeys(NAMES, (commit,))
        stage.repository.push(with_root("3"))
        report = await stage.run(planned.summary, root=root)
        assert (report.summary.exit_code, results(report)) == (0, dict.fromkeys(NAMES, "succeeded"))
        assert [await stage.value(name) for name in NAMES] == ["2", "2"]

    on_a_stage(work, with_root())


def test_a_new_definition_that_follows_a_branch_is_not_synced() -> None:
    """The plan names the commit of the root; what the branch leads to when the run comes to it nobody approved."""

    async def work(stage: Stage) -> None:
        root = RootApplication(URL, stage.repository.resolve("main"), "root", {})
        planned = await stage.plan(root=root)
        stage.repository.push(folders("2"))
        report = await stage.run(planned.summary, root=root)
        assert results(report) == {"a": "failed", "b": "skipped"}
        assert report.failures[0].reason == "NotApproved"
        assert "its new definition follows main" in report.failures[0].detail
        assert [await stage.value(name) for name in NAMES] == [None, None]

    on_a_stage(work, with_root(follows="main"))


@pytest.mark.parametrize("action", list(OPERATIONS))
def test_a_plan_of_another_cluster_is_refused_before_anything_is_written(action: Action) -> None:
    async def work(stage: Stage) -> None:
        planned = await stage.plan(action)
        assert planned.summary.cluster.startswith("uid ")
        elsewhere = replace(planned.summary, cluster="uid 0")
        with pytest.raises(WrongCluster, match="made for the cluster 'uid 0'; this is 'uid ") as told:
            await stage.run(elsewhere, action)
        with pytest.raises(WrongCluster):
            await stage.plan(action, approved_plan=elsewhere)
        assert told.value.exit_code is ExitCode.INVALID
        assert stage.world.kube.counts.writes == 0

    on_a_stage(work, folders(), *NAMES)


def test_a_plan_is_bound_to_the_server_where_the_cluster_cannot_be_told() -> None:
    async def work(stage: Stage) -> None:
        faults = stage.world.sandbox.server.faults
        faults.add(Fault(verb="get", kind="namespaces", code=403, reason="Forbidden", times=None))
        planned = await stage.plan()
        assert planned.summary.cluster == f"server {stage.world.kube.server}"
        assert any("kube-system may not be read" in notice for notice in planned.report.notices)
        assert (await stage.run(planned.summary)).summary.exit_code == 0

    on_a_stage(work, folders(), *NAMES)


def test_a_plan_says_as_of_when_it_speaks_and_can_ask_for_a_comparison_first() -> None:
    async def work(stage: Stage) -> None:
        root = RootApplication(URL, "main", "root", {})
        await stage.deployed(root=root)
        old = stage.repository.resolve("main")
        new = stage.repository.push(with_root("2"))
        before = stage.world.kube.counts.writes
        stale = await stage.plan(root=root)
        assert stale.plan.is_empty
        assert any(
            f"platform-root is planned as of {old[:12]}, compared at 20" in each for each in stale.report.notices
        )
        context, request = stage.context(), stage.request(root=root)
        fresh = await plan_operation.plan(
            context.cluster, request, await refresh.refresh_applications(context, request)
        )
        assert {step.name: step.revisions for step in fresh.plan.steps} == dict.fromkeys(NAMES, (new,))
        assert any(f"platform-root is planned as of {new[:12]}" in notice for notice in fresh.report.notices)
        assert fresh.report.metrics.calls.refreshes == stage.world.kube.counts.writes - before == 1

    on_a_stage(work, with_root())


def test_nothing_is_refreshed_where_nothing_can_move() -> None:
    async def work(stage: Stage) -> None:
        await stage.deployed(root=RootApplication(URL, stage.repository.resolve("main"), "root", {}))
        assert await refresh.refresh_applications(stage.context(), stage.request()) == 0

    on_a_stage(work, with_root())


def test_a_teardown_that_was_approved_is_done() -> None:
    async def work(stage: Stage) -> None:
        await stage.deployed(root=RootApplication(URL, "main", "root", {}))
        planned = await stage.plan(Action.TEARDOWN)
        assert planned.summary.parents == ("Application argocd/platform-root (argoproj.io)",)
        report = await stage.run(planned.summary, Action.TEARDOWN)
        assert (report.summary.exit_code, results(report)) == (0, dict.fromkeys(NAMES, "succeeded"))

    on_a_stage(work, with_root())


def test_a_teardown_removes_nothing_if_more_or_less_is_there() -> None:
    async def work(stage: Stage) -> None:
        await stage.deployed(root=RootApplication(URL, "main", "root", {}))
        planned = await stage.plan(Action.TEARDOWN)
        steps = {name: step for name, step in planned.summary.steps.items() if name != "b"}
        before = stage.world.kube.counts.writes
        for approved in (replace(planned.summary, steps=steps), replace(planned.summary, parents=())):
            with pytest.raises(Moved):
                await stage.run(approved, Action.TEARDOWN)
        assert stage.world.kube.counts.writes == before

    on_a_stage(work, with_root())


def test_a_teardown_is_checked_again_under_the_lock() -> None:
    async def work(stage: Stage) -> None:
        planned = await stage.plan(Action.TEARDOWN)
        calls = stage.world.sandbox.client()
        await calls.create(LEASES, {"metadata": {"name": "windlass"}, "spec": {"holderIdentity": "dead"}}, "argocd")

        async def create() -> None:
            await calls.create(APPS, application("b"))

        stage.reactions[str(RunPhase.LOCK)] = create
        with pytest.raises(Moved, match="b would now be removed"):
            await stage.run(planned.summary, Action.TEARDOWN)
        assert await calls.find(APPS, "a", "argocd")

    on_a_stage(work, folders(), "a")
