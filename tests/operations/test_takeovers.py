"""Another client acts on a node in the middle of a run: only our own operation opens a gate, and the end tells all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.test_dependency_checks import failures, run_beside, show, synced
from tests.operations.test_deploy import attempts, patient, results
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import APPLICATIONS, Act, Event, Part, newer, told
from windlass.core.platform.events import NodeWaiting
from windlass.core.platform.model.applications import Retries

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

SLOW = {"kind": "Deployment", "ready_after": 20.0}
LONG = {"kind": "Deployment", "ready_after": 60.0}
CONFIG = [{"kind": "ConfigMap", "name": "a", "namespace": "default"}]


def operation(**sync: Any) -> dict[str, Any]:
    return {"operation": {"initiatedBy": {"username": "jane"}, "sync": sync}}


async def patch(play: Play, change: dict[str, Any], name: str = "a") -> None:
    await play.sandbox.client().patch(APPLICATIONS, name, change, "argocd")


async def roll_back(play: Play) -> None:
    await patch(play, operation(revision=play.witness.commits[0]))


async def sync_selectively(play: Play) -> None:
    await patch(play, operation(revision=play.witness.commits[0], resources=CONFIG))


async def sync_the_same(play: Play) -> None:
    await patch(play, operation(revision=play.witness.commits[1]))


async def redefine(play: Play) -> None:
    await patch(play, {"spec": {"source": {"targetRevision": play.witness.commits[0]}}})


async def recreate(play: Play) -> None:
    client = play.sandbox.client()
    body = await client.get(APPLICATIONS, "a", "argocd")
    await patch(play, {"metadata": {"finalizers": None}})
    await client.delete(APPLICATIONS, "a", "argocd")
    await client.create(
        APPLICATIONS, {**body, "metadata": {"name": "a", "namespace": "argocd"}, "status": None, "operation": None}
    )


BOTH = (True, False)
DEEDS = [roll_back, sync_selectively, recreate, redefine]


@pytest.mark.parametrize(
    ("deed", "has_root"),
    [
        *((deed, has_root) for deed in (roll_back, sync_selectively, sync_the_same, recreate) for has_root in BOTH),
        (redefine, True),  # without a root, what another client defines is the definition
    ],
)
def test_what_another_client_does_during_the_gate_is_noticed_and_put_right(
    deed: Callable[[Play], Coroutine[Any, Any, None]], has_root: bool
) -> None:
    """Within seconds: the step looks anew and syncs again, so that the run ends with its own operation."""

    async def work(play: Play) -> None:
        await play.run(Act())
        play.push()
        ended = await run_beside(play, Act(), (10, deed(play)))
        assert results(ended.report) == {"a": "succeeded", "b": "succeeded"}, failures(ended.report)
        assert not play.witness.why_not_ready("a", [1])
        assert ended.report is not None
        assert ended.report.summary.duration < timedelta(seconds=100)
        assert attempts(ended, "a") == 1, "a race that was lost once is no failed attempt"

    first = told("b: a", parts={"a": SLOW}, has_root=has_root)
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0]))), work)


def test_a_definition_that_was_right_before_the_run_is_put_right_again() -> None:
    """Nothing but a failed operation made it need a sync; during its gate another client changes its definition."""

    async def work(play: Play) -> None:
        play.push()
        await play.run(Act())
        await patch(play, {"status": {"operationState": {"phase": "Failed"}}})
        await show(play, "a", "Progressing")
        await play.sandbox.clock.sleep(15)
        ended = await run_beside(play, Act(), (10, redefine(play)), (30, show(play, "a", "")))
        assert results(ended.report) == {"a": "succeeded"}
        assert not play.witness.why_not_ready("a", [1])
        found = await play.sandbox.client().get(APPLICATIONS, "a", "argocd")
        assert found["spec"]["source"]["targetRevision"] == play.witness.commits[1]

    first = told("a:")
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0]))), work)


def test_a_termination_by_another_client_is_noticed_and_put_right() -> None:
    async def terminate(play: Play) -> None:
        await patch(play, {"status": {"operationState": {"phase": "Terminating"}}})
        play.argocd.delays.sync = 0.5

    async def work(play: Play) -> None:
        play.argocd.delays.sync = 10.0
        ended = await run_beside(play, Act(), (5, terminate(play)))
        assert results(ended.report) == {"a": "succeeded"}
        assert synced(play, ended) == ["a", "a"]
        assert attempts(ended, "a") == 1

    acted(told("a:", has_root=False), work)


def test_what_is_shown_right_after_a_rollback_may_predate_it() -> None:
    """Argo CD compares with its cache: for a while it shows as Synced what was rolled back."""
    rollback = Event(6.0, "rollback", "a", after_operation=True)
    first = {"a": Part("a", 1, "")}
    lagging = told("a", has_root=False, lag=2.5, jitter=0.3, commits=(first, newer(first)))

    async def work(play: Play) -> None:
        await play.run(Act())
        ended = await play.run(Act(pushes_first=True, events=(rollback,)))
        assert ended.is_successful
        assert not play.witness.problems

    acted(lagging, work)


def test_a_race_is_not_repeated_for_ever() -> None:
    """Jane rolls it back after each of our operations."""

    async def work(play: Play) -> None:
        def hear(change: Any) -> None:
            body = change.new.load()
            state = body.get("status", {}).get("operationState") or {}
            is_ours = (state.get("operation") or {}).get("initiatedBy", {}).get("username") == "windlass"
            if is_ours and state.get("phase") == "Succeeded" and "operation" not in body:
                asyncio.get_running_loop().create_task(roll_back(play))

        play.push()
        play.sandbox.server.store.listen(APPLICATIONS, "", hear)
        ended = await play.run(Act())
        assert failures(ended.report) == {"a": ("Overtaken", ())}
        assert synced(play, ended) == ["a"] * 3, "two attempts, and one more for the first race"

    first = patient(told("a:", has_root=False), Retries(2, timedelta(seconds=1)))
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0]))), work)


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("has_root", [True, False], ids=["root", "brownfield"])
def test_what_another_client_does_after_the_gate_is_no_success_at_the_end(
    deed: Callable[[Play], Coroutine[Any, Any, None]], has_root: bool
) -> None:
    """All of it may be healthy: the revision, the definition or the Application is another one."""

    async def work(play: Play) -> None:
        await play.run(Act())
        play.push()
        ended = await run_beside(play, Act(), (30, deed(play)))
        assert ended.report is not None
        assert ended.report.summary.exit_code == 2
        assert failures(ended.report)["a"] == ("Overtaken", ())

    first = told("a:; b:", parts={"b": LONG}, has_root=has_root)
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0]))), work)


@pytest.mark.parametrize("automated", [False, True])
def test_a_commit_that_is_pushed_after_the_gate_is_no_failure(automated: bool) -> None:
    """The run has deployed what it resolved; the next one, or Argo CD itself, deploys the newer commit."""

    async def work(play: Play) -> None:
        async def push() -> None:
            play.push()
            await patch(play, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})

        if automated:
            await patch(play, {"spec": {"syncPolicy": {"automated": {"selfHeal": True}}}})
        ended = await run_beside(play, Act(), (20, push()))
        assert set(results(ended.report).values()) <= {"succeeded", "unchanged"}

    first = told("a:; b:", parts={"b": LONG}, has_root=False)
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0], "a"))), work)


@pytest.mark.parametrize("deed", [roll_back, sync_selectively])
def test_a_node_that_is_only_awaited_does_not_open_by_what_another_client_synced(
    deed: Callable[[Play], Coroutine[Any, Any, None]],
) -> None:
    """It is at the wanted commit and not ready yet when the run begins; then another client syncs the older one."""

    async def work(play: Play) -> None:
        await play.run(Act())
        play.push()
        await patch(play, operation(revision=play.witness.commits[1]))
        await play.sandbox.clock.sleep(12)
        ended = await run_beside(play, Act(), (40, deed(play)))
        assert results(ended.report) == {"a": "succeeded"}
        assert synced(play, ended) == ["a"], "it had to be synced after all"
        assert not play.witness.why_not_ready("a", [1])
        waits = [event.reason for event in ended.events if isinstance(event, NodeWaiting)]
        assert "Progressing" in waits

    first = told("a:", parts={"a": {**SLOW, "ready_after": 100.0}}, has_root=False)
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0]))), work)
