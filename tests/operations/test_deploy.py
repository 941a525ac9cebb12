"""deploy as a whole, in virtual time: how runs end early, what is skipped and why, what a root operation has."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulation.play import Ended, Play, acted
from tests.simulation.scenarios import APPLICATIONS, Act, Scenario, told
from tests.simulation.witnesses import LEASES
from windlass.argo.cd.root_application import NAME as ROOT
from windlass.core.log_lines import LogLine
from windlass.core.platform.events import NodeStarted
from windlass.core.platform.model.applications import NodeTiming, Retries
from windlass.core.platform.model.scopes import parse_scope
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from windlass.core.platform.reporting.reports import Report

CHAIN = "c: b; b: a"


def results(report: Report | None) -> dict[str, str]:
    assert report is not None
    return {each.name: str(each.result) for each in report.components}


def patient(scenario: Scenario, retries: Retries | None = None, **changes: Any) -> Scenario:
    nodes = {
        name: replace(node, timing=NodeTiming(**changes), retries=retries or node.retries)
        for name, node in scenario.platform.applications.items()
    }
    return replace(scenario, platform=replace(scenario.platform, applications=nodes))


def root_operations(play: Play) -> list[list[str]]:
    """The children of each operation on the root, as written."""
    found: list[list[str]] = []
    for change in play.sandbox.server.store.changes_since(APPLICATIONS, 1000):
        asked = change.new.load().get("operation")
        before = change.old.load().get("operation") if change.old else None
        if change.new.name == ROOT and asked and asked != before:
            found.append([row["name"] for row in asked["sync"]["resources"]])
    return found


def test_those_that_are_ready_together_share_one_operation_of_the_root() -> None:
    names = [f"n{number}" for number in range(8)]

    async def work(play: Play) -> None:
        ended = await play.run(Act())
        assert set(results(ended.report).values()) == {"succeeded"}
        assert root_operations(play) == [names]

    acted(told("; ".join(f"{name}:" for name in names)), work)


@pytest.mark.parametrize("name", ["a", ROOT])
def test_argo_cd_is_reminded_of_what_it_overlooks(name: str) -> None:
    async def work(play: Play) -> None:
        began = play.sandbox.clock.now()
        assert set(results((await play.run(Act())).report).values()) == {"succeeded"}
        took = play.sandbox.clock.now() - began
        assert took < timedelta(minutes=1), "by itself it would come upon each of them after minutes"

    acted(replace(told(CHAIN), overlooked={name: 3}), work)


def test_a_scope_with_an_unmet_dependency_is_refused_without_a_write() -> None:
    async def work(play: Play) -> None:
        ended = await play.run(Act(scope=parse_scope("app:c")))
        assert ended.report is not None
        assert ended.report.summary.exit_code == 1
        assert [(each.name, each.needed_by, each.why) for each in ended.report.unmet] == [
            ("b", ("c",), "it does not exist")
        ]
        assert not ended.writes

    acted(told(CHAIN), work)


def test_what_is_skipped_names_every_cause() -> None:
    parts = {name: {"trouble": "refused"} for name in ("a", "b")}

    async def work(play: Play) -> None:
        report = (await play.run(Act())).report
        assert results(report) == {"a": "failed", "b": "failed", "c": "succeeded", "d": "skipped", "e": "skipped"}
        assert report is not None
        causes = {each.name: each.causes for each in report.components}
        assert (causes["d"], causes["e"]) == (("a", "b"), ("a", "b"))
        assert {each.name: each.blocks for each in report.failures} == {"a": ("d", "e"), "b": ("d", "e")}
        assert report.summary.exit_code == 2

    acted(told("e: d; d: a b c", parts=parts), work)


def test_a_stop_lets_go_and_tells_what_was_under_way() -> None:
    slow = {"b": {"kind": "Deployment", "ready_after": 100.0}}

    async def work(play: Play) -> None:
        ended = await play.run(Act(stop_at=20.0))
        assert results(ended.report) == {"a": "succeeded", "b": "interrupted", "c": "not started"}
        assert ended.report is not None
        assert (ended.report.summary.exit_code, ended.report.summary.was_interrupted) == (2, True)
        assert not play.witness.holder
        again = await play.run(Act())
        assert results(again.report) == {"a": "unchanged", "b": "succeeded", "c": "succeeded"}

    acted(told(CHAIN, parts=slow), work)


def test_a_stop_before_anything_stands_is_a_failure() -> None:
    async def work(play: Play) -> None:
        ended = await play.run(Act(stop_at=1.5))
        assert ended.report is not None
        assert ended.report.summary.exit_code == 1

    acted(told(CHAIN), work)


def test_out_of_time_is_4_and_ends_our_operations() -> None:
    """Its operation waits for a wave that never gets healthy: it must not go on without us."""
    parts = {"b": {"kind": "Deployment", "trouble": "unready"}}

    async def work(play: Play) -> None:
        ended = await play.run(Act(limit=timedelta(seconds=20)))
        assert ended.report is not None
        assert (str(ended.report.summary.verdict), ended.report.summary.exit_code) == ("timeout", 4)
        assert results(ended.report) == {"a": "succeeded", "b": "interrupted", "c": "not started"}
        await play.sandbox.clock.sleep(5)
        assert not play.witness.pending()
        assert not play.witness.holder

    acted(told(CHAIN, parts=parts), work)


def test_time_that_is_over_before_anything_is_seen_is_4_with_a_report() -> None:
    slow = (Fault(verb="watch", kind=APPLICATIONS, latency=1.0, times=None),)

    async def work(play: Play) -> None:
        ended = await play.run(Act(limit=timedelta(seconds=0.3), faults=slow))
        assert (results(ended.report), ended.writes) == (dict.fromkeys("abc", "not started"), [])
        assert ended.report is not None
        assert (str(ended.report.summary.verdict), ended.report.summary.exit_code) == ("timeout", 4)
        assert {str(each.health) for each in ended.report.components} == {"Unknown"}
        assert ended.report.notices == ("the time limit of the run was over (--timeout)",)

    acted(told(CHAIN), work)


LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "windlass", "namespace": "argocd"},
    "spec": {"holderIdentity": "one that died"},
}


@pytest.mark.parametrize(("early", "code"), [({"stop_at": 5.0}, 1), ({"limit": timedelta(seconds=5)}, 4)])
def test_the_lock_of_a_dead_run_is_not_waited_for_longer_than_the_run_may_take(early: Any, code: int) -> None:
    async def work(play: Play) -> None:
        await play.sandbox.client().create(LEASES, LEASE, "argocd")
        ended = await play.run(Act(**early))
        assert (results(ended.report), ended.writes) == (dict.fromkeys("abc", "not started"), [])
        assert ended.report is not None
        assert ended.report.summary.exit_code == code
        assert ended.report.summary.duration == timedelta(seconds=5)
        assert [step.name for step in ended.report.steps] == ["a", "b", "c"], "what it would have done is told"

    acted(told(CHAIN), work)


def attempts(ended: Ended, name: str) -> int:
    return max(
        (event.attempt for event in ended.events if isinstance(event, NodeStarted) and event.name == name), default=0
    )


@pytest.mark.parametrize(("trouble", "expected"), [("refused", 3), ("broken", 3), ("unready", 1)])
def test_a_step_is_tried_again_where_that_may_help(trouble: str, expected: int) -> None:
    """A sync that failed is tried again; time that ran out after a sync that succeeded is not."""
    parts = {"a": {"kind": "Deployment", "trouble": trouble}}
    scenario = patient(told("a:", parts=parts), Retries(3, timedelta(seconds=7)), health=timedelta(seconds=60))

    async def work(play: Play) -> None:
        ended = await play.run(Act())
        assert results(ended.report) == {"a": "failed"}
        assert attempts(ended, "a") == expected
        pauses = [
            e.message.rpartition(" in ")[2] for e in ended.events if isinstance(e, LogLine) and "attempt" in e.message
        ]
        assert pauses == ["7 s", "14 s"][: expected - 1]

    acted(scenario, work)


def test_a_deadline_takes_our_operation_back() -> None:
    """Argo CD does not take it up in time; afterwards nothing of ours is left to begin later."""
    scenario = patient(told("a:", has_root=False), Retries(1), sync=timedelta(seconds=30))

    async def work(play: Play) -> None:
        pin = {"spec": {"source": {"targetRevision": play.witness.commits[0]}}}  # then no refresh is asked for
        await play.sandbox.client().patch(APPLICATIONS, "a", pin, "argocd")
        await play.sandbox.clock.sleep(1)
        play.argocd.pause()
        ended = await play.run(Act())
        assert results(ended.report) == {"a": "failed"}
        assert ended.report is not None
        assert ended.report.failures[0].reason in {"OutOfTime", "OperationNotSeen", "NoActivity"}
        assert not play.witness.pending()
        play.argocd.resume()
        await play.sandbox.clock.sleep(30)
        assert play.witness.why_not_ready("a", [0]), "it was not synced afterwards"

    acted(scenario, work)


def test_an_operation_of_somebody_else_is_waited_for() -> None:
    async def work(play: Play) -> None:
        operation = {"operation": {"initiatedBy": {"username": "jane"}, "sync": {"revision": play.witness.commits[0]}}}
        await play.sandbox.client().patch(APPLICATIONS, "a", operation, "argocd")
        ended = await play.run(Act())
        assert results(ended.report) == {"a": "succeeded"}
        assert not [line for line in play.witness.problems if "over another" in line]

    acted(told("a:", has_root=False), work)
