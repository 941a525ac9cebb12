"""Names that no object can have, in the statuses of Argo CD: they are left out, and the rest goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.run_contexts import run_context
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import US, Act, told
from windlass.core.platform.reporting.reports import Action
from windlass.operations.run.live_applications import DIAGNOSTICS_LIMIT, LiveApplications
from windlass.sandbox.apiserver.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.core.platform.reporting.reports import Report

ILLEGAL = ("..", ".", "a/b", "a%2fb", "two\nlines", "\x1b[31m", "x" * 254)
KINDS = ("Deployment", "Application", "ApplicationSet", "Job")


def illegal_rows() -> list[dict[str, Any]]:
    rows = []
    for kind in KINDS:
        group = {"Deployment": "apps", "Job": "batch"}.get(kind, "argoproj.io")
        row = {
            "group": group,
            "version": "v1",
            "kind": kind,
            "namespace": "default",
            "name": "x",
            "status": "OutOfSync",
        }
        rows += [{**row, field: name} for field in ("group", "kind", "namespace", "name") for name in ILLEGAL]
    return rows


def add_illegal_rows(item: dict[str, Any]) -> None:
    status, rows = item["status"], illegal_rows()
    status["resources"] = [*rows, *(status.get("resources") or ()), *rows]
    result = (status.get("operationState") or {}).get("syncResult")
    if result is not None:
        hooks = [{**row, "hookType": "PreSync", "status": "SyncFailed"} for row in rows]
        result["resources"] = [*hooks, *(result.get("resources") or ())]


@pytest.mark.parametrize("has_root", [True, False], ids=["root", "no root"])
def test_illegal_rows_are_left_out_and_counted(has_root: bool) -> None:
    async def work(play: Play) -> None:
        play.alter = add_illegal_rows
        for action in (Action.DEPLOY, Action.TEARDOWN):
            ended = await play.run(Act(action))
            assert ended.report is not None, ended.error
            assert ended.report.summary.exit_code == 0, ended.report.failures
            notices = [each for each in ended.report.notices if "no object can have such a name" in each]
            assert len(notices) == 1, ended.report.notices
            assert int(notices[0].rpartition(" ")[2]) % (2 * len(illegal_rows())) == 0

    acted(told("b: a", has_root=has_root), work)


def test_an_illegal_row_does_not_hide_what_is_wrong() -> None:
    async def work(play: Play) -> None:
        play.alter = add_illegal_rows
        ended = await play.run(Act())
        assert ended.report is not None, ended.error
        failures = {each.name: each for each in ended.report.failures}
        assert "a" in failures
        assert any("ImagePullBackOff" in line for line in failures["a"].diagnostics), failures["a"].diagnostics

    acted(told("b: a", parts={"a": {"kind": "Deployment", "trouble": "image"}}), work)


def slow_diagnosis() -> tuple[Report, float]:
    """Nine applications fail, and the list of pods, which would explain it, never comes. The report, and its delay."""
    names = [f"n{number}" for number in range(9)]
    parts = {name: {"kind": "Deployment", "trouble": "image"} for name in names}

    async def work(play: Play) -> tuple[Report, float]:
        play.sandbox.server.faults.add(Fault(verb="list", kind="pods", user=US, latency=9_999.0, times=None))
        ended = await play.run(Act())
        assert ended.report is not None, ended.error
        last = max(each.finished for each in ended.report.timeline.spans)
        return ended.report, (ended.report.summary.started + ended.report.summary.duration - last).total_seconds()

    scenario = told("; ".join(f"{name}:" for name in names), parts=parts)
    return acted(scenario, work)


def test_explanations_take_a_limited_time_however_many_there_are() -> None:
    report, delay = slow_diagnosis()
    assert len(report.failures) == 9
    assert delay <= DIAGNOSTICS_LIMIT + 2
    assert any("could not be read within" in line for each in report.failures for line in each.diagnostics)


def test_a_request_to_stop_ends_the_explanations() -> None:
    async def work(play: Play) -> tuple[float, int]:
        play.sandbox.server.faults.add(Fault(verb="list", kind="pods", user=US, latency=9_999.0, times=None))
        context = run_context(play.client("run"))
        control, loop = context.control, asyncio.get_running_loop()
        live = LiveApplications(context, play.scenario.platform)
        async with live.watch():
            await live.wait_for_initial_list()
            began = loop.time()
            loop.call_later(3.0, control.interrupt)
            found = await live.diagnostics(["a", "b"])
            return loop.time() - began, len(found)

    parts = {name: {"kind": "Deployment", "trouble": "image"} for name in ("a", "b")}
    scenario = told("a:; b:", parts=parts, has_root=False, automated=frozenset({"a", "b"}))
    assert acted(scenario, lambda play: synced(play, work)) == (3.0, 0)


async def synced(play: Play, work: Callable[[Play], Awaitable[tuple[float, int]]]) -> tuple[float, int]:
    await play.sandbox.clock.sleep(60.0)
    return await work(play)
