"""A run that ends leaves no operation of its own waiting or running, however it ends, and ends nobody else's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.test_deploy import CHAIN, patient, results
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import APPLICATIONS, Act, told
from windlass.argo.cd.root_application import NAME as ROOT
from windlass.core.platform.events import NodeStarted
from windlass.core.platform.model.applications import Retries
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

EARLY_ENDS = [
    pytest.param({"stop_at": 20.0}, id="interrupted"),
    pytest.param({"limit": timedelta(seconds=20)}, id="out of time"),
    pytest.param({"faults": (Fault(verb="watch", kind=APPLICATIONS, code=403, skip=1, times=None),)}, id="an error"),
]


def stuck(play: Play, name: str) -> None:
    """From the first operation on it, Argo CD takes minutes for each step of an operation."""

    def hear(change: Any) -> None:
        if change.new.name == name and "operation" in change.new.load():
            play.argocd.delays.sync = 600.0

    play.sandbox.server.store.listen(APPLICATIONS, "", hear)


def not_taken_up(play: Play, name: str) -> None:
    """Argo CD stops before it takes up the first operation on it."""

    def hear(change: Any) -> None:
        if change.new.name == name and "operation" in change.new.load():
            play.argocd.pause()

    play.sandbox.server.store.listen(APPLICATIONS, "", hear)


@pytest.mark.parametrize("early", EARLY_ENDS)
@pytest.mark.parametrize("name", ["b", ROOT])
@pytest.mark.parametrize("hold", [stuck, not_taken_up])
def test_an_early_end_ends_our_operations(early: dict[str, Any], name: str, hold: Callable[[Play, str], None]) -> None:
    async def work(play: Play) -> None:
        hold(play, name)
        if "faults" in early:
            asyncio.get_running_loop().call_later(
                20.0, lambda: play.sandbox.server.disrupt_watches("cut", Fault(verb="watch", user="windlass"))
            )
        ended = await play.run(Act(**early))
        assert ended.report is not None or ended.error is not None
        assert not play.witness.pending(), "at the moment of its end"
        assert not play.witness.holder
        assert not [line for line in play.witness.problems if "held the lock" in line]

    acted(told(CHAIN), work)


@pytest.mark.parametrize("tenth", range(10, 80, 3))
def test_whenever_it_is_stopped_nothing_waits_or_runs_afterwards(tenth: int) -> None:
    """Also where the stop comes between a request and its answer."""
    slow = (Fault(verb="patch", kind=APPLICATIONS, latency=0.3, times=None),)

    async def work(play: Play) -> None:
        await play.run(Act(stop_at=tenth / 10, faults=slow))
        assert not play.witness.pending()
        await play.sandbox.clock.sleep(5)
        assert not play.witness.pending()

    acted(told(CHAIN), work)


def test_an_operation_of_another_client_goes_on() -> None:
    """It starts after ours has ended; our step fails by its deadline and leaves it alone."""
    scenario = patient(
        told("a:", has_root=False, parts={"a": {"kind": "Deployment", "trouble": "unready"}}),
        Retries(1),
        sync=timedelta(seconds=30),
        health=timedelta(seconds=30),
    )

    async def work(play: Play) -> None:
        theirs = {"initiatedBy": {"username": "jane"}, "sync": {"revision": play.witness.commits[0]}}

        async def sync() -> None:
            await play.sandbox.clock.sleep(10)
            play.argocd.delays.sync = 600.0
            await play.sandbox.client().patch(APPLICATIONS, "a", {"operation": theirs}, "argocd")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sync())
            ended = await play.run(Act())
        assert results(ended.report) == {"a": "failed"}
        found = await play.sandbox.client().get(APPLICATIONS, "a", "argocd")
        assert found["operation"]["initiatedBy"] == {"username": "jane"}
        assert found["status"]["operationState"]["phase"] == "Running"

    acted(scenario, work)


def test_a_run_that_ends_by_itself_looks_at_no_operation_again() -> None:
    async def work(play: Play) -> None:
        ended = await play.run(Act())
        assert set(results(ended.report).values()) == {"succeeded"}
        assert not [entry for entry in ended.writes if entry.verb == "patch" and entry.name == "a"][1:]
        assert [event.name for event in ended.events if isinstance(event, NodeStarted)] == ["a", "b", "c"]

    acted(replace(told(CHAIN), automated=frozenset()), work)
