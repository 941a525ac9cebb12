"""A dependent starts only while every dependency is healthy: judged at each start, not only once in its turn."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.test_deploy import patient, results, root_operations
from tests.simulation.play import Ended, Play, acted
from tests.simulation.scenarios import APPLICATIONS, Act, Event, Scenario, newer, told
from tests.simulation.witnesses import LEASES
from windlass.argo.cd.root_application import NAME as ROOT
from windlass.core.platform.events import NodeWaiting
from windlass.core.platform.model.scopes import parse_scope
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from windlass.core.platform.reporting.reports import Report

SLOW = {"kind": "Deployment", "ready_after": 30.0}
FORK = "d: c; c: a b"
"""`a` is ready at once, `b` after half a minute; `c` waits for both."""


def fork(**changes: Any) -> Scenario:
    return patient(told(FORK, parts={"b": SLOW}, **changes), health=timedelta(seconds=60))


async def show(play: Play, name: str, health: str) -> None:
    """From now on Argo CD shows this health; empty: the assessed one."""
    play.argocd.health_overrides.pop(name, None)
    if health:
        play.argocd.health_overrides[name] = health
    refresh = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
    await play.sandbox.client().patch(APPLICATIONS, name, refresh, "argocd")


async def run_beside(play: Play, act: Act, *beside: tuple[float, Coroutine[Any, Any, Any]]) -> Ended:
    async def later(seconds: float, work: Coroutine[Any, Any, Any]) -> None:
        await play.sandbox.clock.sleep(seconds)
        await work

    async with asyncio.TaskGroup() as tasks:
        for seconds, work in beside:
            tasks.create_task(later(seconds, work))
        return await play.run(act)


def synced(play: Play, run: Ended) -> list[str]:
    return [name for writer, name in play.witness.operations if writer == run.run_id and name != ROOT]


def failures(report: Report | None) -> dict[str, tuple[str, tuple[str, ...]]]:
    assert report is not None
    return {each.name: (each.reason, each.blocks) for each in report.failures}


@pytest.mark.parametrize("has_root", [True, False], ids=["root", "brownfield"])
@pytest.mark.parametrize(("health", "reason"), [("Degraded", "Degraded"), ("Progressing", "OutOfTime")])
def test_a_dependency_that_broke_after_its_gate_blocks_what_has_not_started(
    health: str, reason: str, has_root: bool
) -> None:
    async def work(play: Play) -> None:
        ended = await run_beside(play, Act(), (15, show(play, "a", health)))
        assert results(ended.report) == {"a": "failed", "b": "succeeded", "c": "skipped", "d": "skipped"}
        assert ended.report is not None
        assert ended.report.summary.exit_code == 2
        assert {each.name: each.causes for each in ended.report.components if each.causes} == {"c": ("a",), "d": ("a",)}
        found, blocks = failures(ended.report)["a"]
        assert (found in {reason, "NoActivity"}, blocks) == (True, ("c", "d"))
        assert set(synced(play, ended)) == {"a", "b"}
        assert "c" not in {name for batch in root_operations(play) for name in batch} or not has_root
        waits = [each.detail for each in ended.events if isinstance(each, NodeWaiting) and each.name == "c"]
        assert waits[0].startswith(f"it depends on a: it is {health}")

    acted(fork(has_root=has_root), work)


def test_a_dependency_that_recovers_within_its_timeouts_blocks_nothing() -> None:
    async def work(play: Play) -> None:
        began = play.sandbox.clock.now()
        ended = await run_beside(play, Act(), (15, show(play, "a", "Degraded")), (45, show(play, "a", "")))
        assert set(results(ended.report).values()) == {"succeeded"}
        assert play.sandbox.clock.now() - began > timedelta(seconds=55), "it stays healthy for a while first"

    acted(fork(), work)


@pytest.mark.parametrize("how", ["deleted", "rolled back"])
def test_a_dependency_that_is_deleted_or_taken_over_blocks_at_once(how: str) -> None:
    async def act(play: Play) -> None:
        client = play.sandbox.client()
        if how == "deleted":
            await client.delete(APPLICATIONS, "a", "argocd")
        else:
            sync = {"initiatedBy": {"username": "jane"}, "sync": {"revision": play.witness.commits[0]}}
            await client.patch(APPLICATIONS, "a", {"operation": sync}, "argocd")

    async def work(play: Play) -> None:
        play.push()
        ended = await run_beside(play, Act(), (15, act(play)))
        assert results(ended.report) == {"a": "failed", "b": "succeeded", "c": "skipped", "d": "skipped"}
        assert failures(ended.report) == {"a": ("Overtaken", ("c", "d"))}
        assert set(synced(play, ended)) == {"a", "b"}
        assert ended.report is not None
        assert ended.report.summary.duration < timedelta(seconds=45)

    first = fork()
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0]))), work)


@pytest.mark.parametrize("health", ["Degraded", ""])
def test_a_node_that_is_not_changed_has_a_gate_again_once_what_it_depends_on_is_synced(health: str) -> None:
    """`b` stays as it is, and breaks with the new `a`; without its gate `c` would start."""
    first = told("c: b; b: a", parts={"a": {"kind": "Deployment", "ready_after": 20.0}}, has_root=False)

    async def work(play: Play) -> None:
        assert set(results((await play.run(Act())).report).values()) == {"succeeded"}
        pins = {"b": play.witness.commits[0]}
        for name, revision in pins.items():
            await play.sandbox.client().patch(
                APPLICATIONS, name, {"spec": {"source": {"targetRevision": revision}}}, "argocd"
            )
        await play.sandbox.clock.sleep(2)
        play.push()
        ended = await run_beside(play, Act(), (10, show(play, "b", health)))
        assert "b" not in synced(play, ended)
        if health:
            assert results(ended.report) == {"a": "succeeded", "b": "failed", "c": "skipped"}
            assert failures(ended.report) == {"b": ("Degraded", ("c",))}
        else:
            assert results(ended.report) == {"a": "succeeded", "b": "unchanged", "c": "succeeded"}

    scenario = replace(first, commits=(first.commits[0], newer(first.commits[0], "a", "c")))
    acted(patient(scenario, health=timedelta(seconds=60)), work)


NOTHING = [{"kind": "ConfigMap", "name": "x"}]
BUSY = {"operation": {"initiatedBy": {"username": "jane"}, "sync": {"resources": NOTHING}}}


def test_what_waits_behind_another_operation_of_its_parent_is_judged_when_it_is_its_turn() -> None:
    """The request for `c` waits for jane's operation on the root; in the meantime `a` breaks."""
    first = told("c: a; d: b", parts={"a": {"kind": "Deployment"}})
    scenario = patient(
        replace(first, commits=(first.commits[0], newer(first.commits[0], "c", "d"))), health=timedelta(seconds=60)
    )

    async def busy(play: Play) -> None:
        play.argocd.delays.sync = 40.0
        await play.sandbox.client().patch(APPLICATIONS, ROOT, BUSY, "argocd")

    async def quick(play: Play) -> None:
        play.argocd.delays.sync = 0.5

    async def work(play: Play) -> None:
        assert set(results((await play.run(Act())).report).values()) == {"succeeded"}
        play.push()
        before = len(root_operations(play))
        breaks = (20, show(play, "a", "Degraded"))
        ended = await run_beside(play, Act(), (2.2, busy(play)), breaks, (21, quick(play)))
        operations = root_operations(play)[before:]
        assert operations == [["a", "b"], ["x"], ["d"]]
        assert results(ended.report) == {"a": "failed", "b": "succeeded", "c": "skipped", "d": "succeeded"}
        assert failures(ended.report) == {"a": ("Degraded", ("c",))}

    acted(scenario, work)


def test_what_waits_for_another_operation_on_itself_is_judged_when_it_is_its_turn() -> None:
    async def work(play: Play) -> None:
        first = play.witness.commits[0]
        theirs = {"operation": {"initiatedBy": {"username": "jane"}, "sync": {"revision": first, "resources": NOTHING}}}

        async def busy() -> None:
            play.argocd.delays.sync = 40.0
            await play.sandbox.client().patch(APPLICATIONS, "c", theirs, "argocd")

        ended = await run_beside(play, Act(), (1, busy()), (20, show(play, "a", "Degraded")))
        assert results(ended.report) == {"a": "failed", "c": "skipped"}
        assert synced(play, ended) == ["a"]

    slow = {"kind": "Deployment", "ready_after": 5.0}
    acted(patient(told("c: a", parts={"a": slow}, has_root=False), health=timedelta(seconds=60)), work)


def test_a_need_outside_the_scope_is_checked_again_under_the_lock() -> None:
    async def work(play: Play) -> None:
        assert set(results((await play.run(Act())).report).values()) == {"succeeded"}
        await play.sandbox.clock.sleep(15)  # until its verdict is settled
        play.push()
        slow_lock = Fault(verb="update", kind=LEASES, latency=8.0, times=1)
        act = Act(scope=parse_scope("app:c"), faults=(slow_lock,))
        ended = await run_beside(play, act, (5, show(play, "a", "Degraded")))
        assert ended.report is not None
        assert ended.report.summary.exit_code == 1
        assert [each.name for each in ended.report.unmet] == ["a"]
        assert any(entry.kind == LEASES for entry in ended.writes), "it was refused under the lock"
        assert not synced(play, ended)
        assert {entry.kind for entry in ended.writes} <= {LEASES, APPLICATIONS}
        assert len([entry for entry in ended.writes if entry.kind == APPLICATIONS]) == ended.refreshes

    first = told("c: a")
    acted(replace(first, commits=(first.commits[0], newer(first.commits[0], "c"))), work)


CRITICAL_FORK = "d: a b; c: a b; e: a; a*"
"""`a` is critical and ready at once, `b` after half a minute; `e` starts first, `c` and `d` start together."""
DEPLOYMENTS = "deployments.apps"


def critical_fork(text: str = CRITICAL_FORK) -> Scenario:
    return patient(told(text, parts={"a": {"kind": "Deployment"}, "b": SLOW}), health=timedelta(seconds=60))


async def break_unseen(play: Play, name: str) -> None:
    """Its pods are not ready any more, and Argo CD goes on showing it as Healthy."""
    play.argocd.health_overrides[name] = "Healthy"
    await play.events.play(Event(0, "outage", name, 1000.0))


def object_reads(play: Play, run: Ended) -> list[datetime]:
    """When the run has read Deployments."""
    rows = [row for row in play.journal.entries if row.kind == DEPLOYMENTS and row.agent == run.run_id]
    return [datetime.fromisoformat(row.time) for row in rows if not row.is_write]


def test_the_objects_of_a_critical_dependency_are_read_again_when_a_dependent_starts() -> None:
    async def work(play: Play) -> None:
        ended = await run_beside(play, Act(), (15, break_unseen(play, "a")))
        assert results(ended.report) == {
            "a": "failed",
            "b": "succeeded",
            "c": "skipped",
            "d": "skipped",
            "e": "succeeded",
        }
        assert set(synced(play, ended)) == {"a", "b", "e"}
        waits = [each.detail for each in ended.events if isinstance(each, NodeWaiting) and each.name == "c"]
        assert waits[0] == "it depends on a: it is Progressing: Deployment default/a: 0 of 1 are there"

    acted(critical_fork(), work)


def test_dependents_that_start_together_share_one_read_of_the_objects() -> None:
    async def work(play: Play) -> None:
        ended = await play.run(Act())
        assert set(results(ended.report).values()) == {"succeeded"}
        requested = [datetime.fromisoformat(row.time) for row in ended.writes if row.name in {"c", "d"}]
        reads = [at for at in object_reads(play, ended) if min(requested) - timedelta(seconds=5) < at <= max(requested)]
        assert 1 <= len(reads) <= 2, "one before their definitions are synced, one before they are"

    acted(critical_fork(), work)


def test_the_verdicts_on_children_that_a_parent_syncs_together_are_of_the_same_age() -> None:
    """`c` and `d` wait behind the request for `e`, which waits for jane's operation on the root; reads are slow."""

    async def busy(play: Play) -> None:
        play.argocd.delays.sync = 40.0
        await play.sandbox.client().patch(APPLICATIONS, ROOT, BUSY, "argocd")
        await play.sandbox.clock.sleep(10)
        play.argocd.delays.sync = 0.5

    async def work(play: Play) -> None:
        slow_reads = [Fault(verb=verb, kind=DEPLOYMENTS, latency=5.0, times=None) for verb in ("get", "list")]
        ended = await run_beside(play, Act(faults=tuple(slow_reads)), (3, busy(play)))
        assert set(results(ended.report).values()) == {"succeeded"}
        assert root_operations(play) == [["a", "b", "f"], ["x"], ["e"], ["c", "d"]]
        rows = [row for row in play.journal.entries if row.agent == ended.run_id]
        *_, written = (at for at, row in enumerate(rows) if row.is_write and row.name == ROOT)
        for name in ("a", "b"):
            *_, read = (row for row in rows[:written] if row.kind == DEPLOYMENTS and row.name in {"", name})
            age = datetime.fromisoformat(rows[written].time) - datetime.fromisoformat(read.time)
            assert age < timedelta(seconds=2), (name, age)

    deployments = {"a": {"kind": "Deployment"}, "b": {"kind": "Deployment"}, "f": {**SLOW, "ready_after": 4.0}}
    acted(patient(told("c: a; d: b; e: f; a*; b*", parts=deployments), health=timedelta(seconds=60)), work)


def test_no_objects_are_read_of_dependencies_that_are_not_critical() -> None:
    async def work(play: Play) -> None:
        ended = await play.run(Act())
        assert set(results(ended.report).values()) == {"succeeded"}
        assert not object_reads(play, ended)

    acted(critical_fork("d: a b; c: a b"), work)
