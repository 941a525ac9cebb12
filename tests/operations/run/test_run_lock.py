"""The lock: one run at a time, a dead one gives way, and who lost it writes nothing more."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.kube.test_leases import on_a_cluster
from tests.run_contexts import run_lease
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import Act, told
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.lock_holders import HOLDER_ANNOTATION, describe_person
from windlass.kube.api_errors import KubeError
from windlass.kube.client.resources import LEASES
from windlass.kube.leases import (
    LEASE_DURATION,
    RENEW_DEADLINE,
    RENEW_INTERVAL,
    LeaseClaim,
    LockLost,
    ProcessLease,
)
from windlass.operations.cluster_identity import LEASE_NAME
from windlass.operations.run import run_lock
from windlass.operations.run.context import RunControl, Stopped
from windlass.operations.run.run_lock import Locked
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.sandbox.controllers.clusters import World

LEASE = LEASES.named(LEASE_NAME, "argocd")


@asynccontextmanager
async def held(w: World, holder: str, control: RunControl | None = None) -> AsyncIterator[ProcessLease]:
    lock = run_lease(w.kube, holder)
    async with run_lock.hold_lock(lock, control or RunControl(lambda _: None)):
        yield lock


async def rest(seconds: float) -> None:
    await asyncio.sleep(seconds)  # noqa: TID251 - of the loop that jumps


async def holder(w: World) -> str:
    return str((await w.kube.get(LEASE))["spec"].get("holderIdentity"))


def test_it_is_held_renewed_and_let_go() -> None:
    async def work(w: World) -> None:
        async with held(w, "one") as lock:
            first = (await w.kube.get(LEASE))["spec"]
            assert first["holderIdentity"] == "one"
            await rest(60)
            lock.check()
            assert (await w.kube.get(LEASE))["spec"]["renewTime"] > first["renewTime"]
        assert not await holder(w)
        async with held(w, "two"):
            assert (await w.kube.get(LEASE))["spec"]["leaseTransitions"] == 2

    on_a_cluster(work)


def test_it_is_let_go_after_an_error_too() -> None:
    async def work(w: World) -> None:
        with pytest.raises(ExceptionGroup):
            async with held(w, "one"):
                raise KubeError("something")
        assert not await holder(w)

    on_a_cluster(work)


def test_while_it_is_renewed_nobody_else_gets_it() -> None:
    async def work(w: World) -> None:
        async with held(w, "one"):
            with pytest.raises(Locked, match="another run holds the lock: run one, since 20"):
                async with held(w, "two"):
                    pass
            assert await holder(w) == "one"

    on_a_cluster(work)


def test_who_waits_while_it_is_let_go_gets_it() -> None:
    """Letting go is a write, too; it is not taken for a sign of life."""

    async def work(w: World) -> None:
        async with asyncio.TaskGroup() as tasks:
            async with held(w, "one"):
                await rest(4.5)  # just renewed
                waiting = tasks.create_task(self_held(w))
                await rest(0.5)
            assert await waiting == "two"

    async def self_held(w: World) -> str:
        async with held(w, "two"):
            return await holder(w)

    on_a_cluster(work)


async def left_by_a_dead_one(w: World) -> None:
    far = "2099-01-01T00:00:00.000000Z"  # what the dead one wrote does not count
    spec = {"holderIdentity": "dead", "renewTime": far, "acquireTime": far, "leaseDurationSeconds": 15}
    meta = {"name": LEASE_NAME, "namespace": "argocd"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
    await w.kube.create(LEASES.in_namespace("argocd"), body)


def test_a_holder_that_is_silent_gives_way_by_our_own_clock() -> None:
    async def work(w: World) -> None:
        await left_by_a_dead_one(w)
        began = asyncio.get_running_loop().time()
        async with held(w, "two"):
            waited = asyncio.get_running_loop().time() - began
            assert LEASE_DURATION < waited < LEASE_DURATION + 3
            assert await holder(w) == "two"

    on_a_cluster(work)


def test_a_run_can_wait_for_another_one_to_end() -> None:
    async def work(w: World) -> None:
        events: list[object] = []
        async with asyncio.TaskGroup() as tasks:
            async with held(w, "one"):
                patience = run_lock.LockPatience(timedelta(minutes=1), events.append)
                waiting = tasks.create_task(run_lock.wait_until_free(run_lease(w.kube, "two"), patience))
                await rest(30)
                assert not waiting.done()
            await rest(3)
            assert waiting.done()
        [doubt, line] = [each.message for each in events if isinstance(each, LogLine)]
        assert doubt.startswith("the lock is held: run one, since 20")
        assert line.startswith("waiting for the lock: run one, since 20")

    on_a_cluster(work)


def test_l10_the_wait_for_the_lock_of_a_dead_run_is_announced_with_its_length() -> None:
    async def work(w: World) -> None:
        await left_by_a_dead_one(w)
        events: list[object] = []
        await run_lock.wait_until_free(run_lease(w.kube, "two"), run_lock.LockPatience(emit=events.append))
        [line] = [each for each in events if isinstance(each, LogLine)]
        assert line.message.startswith("the lock is held: run dead")
        assert line.message.endswith("; waiting up to 15 s to see whether that run is alive")
        assert line.level is Level.WARN, "the short log of a terminal shows it"

    on_a_cluster(work)


def test_patience_with_another_run_ends() -> None:
    async def work(w: World) -> None:
        async with held(w, "one"):
            began = asyncio.get_running_loop().time()
            with pytest.raises(Locked, match="run one"):
                await run_lock.wait_until_free(run_lease(w.kube, "two"), run_lock.LockPatience(timedelta(seconds=30)))
            assert 30 <= asyncio.get_running_loop().time() - began < 40

    on_a_cluster(work)


def test_the_lease_names_who_holds_it() -> None:
    async def work(w: World) -> None:
        person = describe_person("alice", "build-7", "https://ci.example/7")
        claim = LeaseClaim(LEASE_NAME, "argocd", "one", w.kube.clock.now, {HOLDER_ANNOTATION: person})
        async with run_lock.hold_lock(ProcessLease(w.kube, claim), RunControl(lambda _: None)):
            with pytest.raises(Locked, match=r"run one by alice@build-7 \(https://ci.example/7\), since 20"):
                await run_lock.wait_until_free(run_lease(w.kube, "two"))

    on_a_cluster(work)


def test_who_watched_it_be_silent_does_not_wait_again() -> None:
    async def work(w: World) -> None:
        await left_by_a_dead_one(w)
        lock = run_lease(w.kube, "two")
        await run_lock.wait_until_free(lock)
        began = asyncio.get_running_loop().time()
        async with run_lock.hold_lock(lock, RunControl(lambda _: None)):
            assert asyncio.get_running_loop().time() - began < 1

    on_a_cluster(work)


def test_one_that_was_taken_since_it_was_looked_at_is_held() -> None:
    async def work(w: World) -> None:
        async with held(w, "one"):
            pass
        lock = run_lease(w.kube, "two")
        await run_lock.wait_until_free(lock)
        async with held(w, "three"):
            with pytest.raises(Locked, match="run three"):
                await run_lock.wait_until_free(lock)

    on_a_cluster(work)


def test_a_stop_is_heard_while_a_dead_holder_is_waited_for() -> None:
    async def work(w: World) -> None:
        await left_by_a_dead_one(w)
        control = RunControl(lambda _: None)
        asyncio.get_running_loop().call_later(3.5, control.interrupt)
        began = asyncio.get_running_loop().time()
        with pytest.raises(Stopped):
            async with held(w, "two", control):
                pass
        assert asyncio.get_running_loop().time() - began == pytest.approx(3.5, abs=0.1)
        assert await holder(w) == "dead"

    on_a_cluster(work)


def test_one_that_is_lost_is_told_and_checked() -> None:
    async def work(w: World) -> None:
        control = RunControl(lambda _: None)
        async with held(w, "one", control) as lock:
            lock.check()
            await w.kube.patch(LEASE, {"spec": {"holderIdentity": "two"}})
            await rest(5)
            with pytest.raises(LockLost):
                lock.check()
            assert control.error is not None
            assert control.error.what == "another run has taken the lock"
        assert await holder(w) == "two", "what is not ours is not let go"

    on_a_cluster(work)


def test_m12_a_server_that_stops_answering_is_the_cause_not_the_lease() -> None:
    async def work(w: World) -> None:
        control = RunControl(lambda _: None)
        async with held(w, "one", control):
            w.sandbox.server.faults.add(Fault(sever="before", times=None))
            await rest(LEASE_DURATION)
            assert control.stop_reason.startswith(f"the API server {w.kube.server} has not answered for 10 s, so ")
            assert "Lease" not in control.stop_reason

    on_a_cluster(work)


def test_without_answers_it_is_lost_before_others_may_take_it() -> None:
    async def work(w: World) -> None:
        control = RunControl(lambda _: None)
        async with held(w, "one", control) as lock:
            w.sandbox.server.faults.add(Fault(verb="update", kind="leases*", code=503, times=None))
            await rest(9)
            lock.check()
            await rest(LEASE_DURATION - 9 - 0.5)
            with pytest.raises(LockLost):
                lock.check()
            await rest(10)
            assert control.error
            assert control.stop_reason.startswith(
                "the lock could not be renewed for 10 s, so nothing more is written: "
            )

    on_a_cluster(work)


def test_a_renewal_counts_from_its_request_and_not_from_its_answer() -> None:
    """The server may have renewed the Lease at any moment since the request, so others count from there."""

    async def work(w: World) -> None:
        control = RunControl(lambda _: None)
        async with held(w, "one", control) as lock:
            w.sandbox.server.faults.add(Fault(verb="update", kind="leases*", latency=5.0, times=1))
            w.sandbox.server.faults.add(Fault(verb="update", kind="leases*", code=503, skip=1, times=None))
            await rest(RENEW_INTERVAL + 5.5)  # the first renewal is answered, no other one is
            lock.check()
            await rest(RENEW_DEADLINE - 5.0)
            with pytest.raises(LockLost):
                lock.check()

    on_a_cluster(work)


def test_a_lease_that_was_deleted_is_lost() -> None:
    async def work(w: World) -> None:
        control = RunControl(lambda _: None)
        async with held(w, "one", control) as lock:
            await w.kube.delete(LEASE)
            await rest(RENEW_INTERVAL + 1)
            with pytest.raises(LockLost):
                lock.check()
            assert control.error is not None

    on_a_cluster(work)


def test_an_answer_that_got_lost_is_no_rival() -> None:
    """The renewal was carried out: the next one meets our own write."""

    async def work(w: World) -> None:
        control = RunControl(lambda _: None)
        async with held(w, "one", control) as lock:
            w.sandbox.server.faults.add(Fault(verb="update", kind="leases*", sever="after", times=1))
            await rest(30)
            lock.check()
        assert not control.stop.is_set()
        assert not await holder(w)

    on_a_cluster(work)


def test_a_run_that_loses_the_lock_writes_nothing_more() -> None:
    async def work(play: Play) -> None:
        calls = play.sandbox.client()

        async def robbed() -> None:
            await rest(3.0)
            await calls.patch("leases.coordination.k8s.io", LEASE_NAME, {"spec": {"holderIdentity": "thief"}}, "argocd")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(robbed())
            ended = await play.run(Act())
        # Between the theft and the next renewal nobody knows; the witness sees what was written then.
        known = [line for line in play.witness.problems if "while thief held the lock" in line]
        late = [line for line in known if line > "2030-01-01T00:00:08"]
        assert not late, late
        assert ended.report is not None
        assert ended.report.summary.was_interrupted
        assert ended.report.summary.exit_code in {1, 2}
        assert play.witness.holder == "thief"

    acted(told("f: e; e: d; d: c; c: b; b: a"), work)


@pytest.mark.parametrize("other", ["", "two"])
def test_a_lease_is_deleted_in_the_end_although_the_answer_to_its_last_renewal_was_lost(other: str) -> None:
    """Unless it belongs to another run by then."""

    async def work(w: World) -> None:
        async with held(w, "one") as lock:
            lock.delete_on_release()
            changed = await w.kube.get(LEASE)  # as the renewal whose answer did not arrive
            spec = {**changed["spec"], "holderIdentity": other or "one", "renewTime": "2030-01-01T00:00:01.000000Z"}
            await w.kube.replace(LEASE, {**changed, "spec": spec})
        leases = w.sandbox.server.store.list("leases.coordination.k8s.io", "argocd")
        assert len(leases) == bool(other)

    on_a_cluster(work)
