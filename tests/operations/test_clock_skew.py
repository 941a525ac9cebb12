"""Argo CD's clock may be ten minutes ahead of the API server's, or behind: no verdict changes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import at, operation, platform, state, typed_object
from tests.operations.clusters import APPS, SLOW, SYNC, after, begin, cluster, patch, truth
from tests.operations.test_one_assessment import deployed, pinned, reads, validated
from tests.run_contexts import run_context
from tests.sandbox.controllers.clusters import run, set_clock_ahead, world
from tests.sandbox.controllers.objects import config, workload
from windlass.argo.cd.applications import Application
from windlass.core.platform import freshness, gates
from windlass.core.platform.gate_values import GateTarget, Open, Wait
from windlass.core.platform.model.applications import ApplicationRef, NodeTiming
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import Scope
from windlass.core.platform.model.snapshots import SyncStatus
from windlass.core.platform.reporting.reports import Action
from windlass.operations.observation import list_applications
from windlass.operations.planner import RunRequest, plan_run
from windlass.operations.teardown.teardown import teardown
from windlass.operations.wait import WaitRequest, wait
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World

SKEWS = pytest.mark.parametrize("skew", [-600, 0, 600])
WEB = platform("web")


def files(image: str = "web:1") -> dict[str, Any]:
    return {"web/all.yaml": [config(value=image), workload(image=image, annotations=SLOW)]}


async def is_planned(w: World) -> bool:
    looked = cluster(w)
    request = RunRequest(Action.DEPLOY, "staging", WEB, Scope())
    return not (await plan_run(looked, request, await list_applications(looked, WEB, ["web"]))).plan.is_empty


@SKEWS
@pytest.mark.parametrize("how", list(Staleness))
def test_health_from_before_a_sync_is_never_taken_for_the_health_after_it(skew: int, how: Staleness) -> None:
    async def main() -> None:
        async with world() as w:
            set_clock_ahead(w.argocd, skew)
            repository = await begin(w, files())
            await patch(w, SYNC)
            await after(30)
            w.argocd.stale_statuses["web"] = StaleStatus(how)
            repository.push(files("web:2"))
            await patch(w, SYNC)
            await after(1.2)
            assert await is_planned(w), "it has ended, and shows the health from before"
            assert not await truth(w)
            assert (await validated(w, WEB)).components[0].health is Health.HEALTHY
            assert await truth(w)
            repository.push(files("web:3"))
            await patch(w, SYNC)
            ended = await wait(cluster(w), WaitRequest(ApplicationRef("web")), lambda _: None)
            assert isinstance(ended, Open)
            assert await truth(w)

    run(main())


@SKEWS
def test_deploy_and_teardown_take_as_long_as_without_skew(skew: int) -> None:
    async def main() -> None:
        async with world() as w:
            set_clock_ahead(w.argocd, skew)
            await begin(w, files(), pinned("web", files()))
            started = w.sandbox.clock.now()
            assert (await deployed(w, WEB)).summary.exit_code == 0
            assert await truth(w)
            assert w.sandbox.clock.now() - started < timedelta(seconds=10)
            assert (await validated(w, WEB)).summary.exit_code == 0
            await after(12)
            assert not await is_planned(w)
            writes = w.kube.counts.writes
            assert [str(each.result) for each in (await deployed(w, WEB)).components] == ["unchanged"]
            assert w.kube.counts.writes == writes
            report = await teardown(run_context(w.kube), RunRequest(Action.TEARDOWN, "staging", WEB, Scope()))
            assert report.summary.exit_code == 0
            assert await w.sandbox.client().find(APPS, "web", "argocd") is None

    run(main())


@SKEWS
def test_only_a_verdict_that_argo_cd_does_not_renew_is_stale(skew: int) -> None:
    async def main() -> None:
        async with world() as w:
            set_clock_ahead(w.argocd, skew)
            await begin(w, files(), pinned("web", files()))
            assert (await deployed(w, WEB)).summary.exit_code == 0
            await after(400)
            assert (await validated(w, WEB)).summary.exit_code == 0
            assert reads(w) == 0
            w.argocd.pause()
            await after(400)
            assert (await validated(w, WEB)).summary.exit_code == 0
            assert reads(w) == 1

    run(main())


TARGET = GateTarget(state().revisions, state().sources, NodeTiming())


@pytest.mark.parametrize("skew", [-600, -3, -2, 0, 2, 3, 600])
@pytest.mark.parametrize("sync", [SyncStatus.SYNCED, SyncStatus.OUT_OF_SYNC])
@pytest.mark.parametrize(("age", "decision"), [(0, Wait), (7, Wait), (13, Open)])
def test_how_old_an_operation_is(skew: int, sync: SyncStatus, age: int, decision: type) -> None:
    """It ended at 0 by the server's clock, in the second of the comparison."""
    ended, now = at(skew), at(age)
    shown = state(
        sync=sync, operation=operation(finished_at=ended), reconciled_at=ended, stamped_at=ended, written_at=at(0)
    )
    assert isinstance(gates.evaluate_gate(TARGET, gates.start_history(shown, now), now), decision)


@pytest.mark.parametrize("written", [None, 0])
def test_an_operation_that_was_seen_to_be_over_for_long_enough_is_settled(written: int | None) -> None:
    """Even if Argo CD keeps writing, or the server does not say when it wrote."""
    ended = at(600)
    shown = state(
        operation=operation(finished_at=ended),
        reconciled_at=ended,
        stamped_at=ended,
        written_at=None if written is None else at(written),
    )
    history = gates.start_history(shown, at(0))
    assert isinstance(gates.evaluate_gate(TARGET, history, at(10)), Wait)
    assert isinstance(gates.evaluate_gate(TARGET, history, at(10.1)), Open)
    again = gates.extend_history(history, state(operation=operation(finished_at=at(601))), at(8))
    assert again.operation_since == at(8)


def test_a_comparison_after_a_refresh_is_new_although_argo_cds_clock_was_set_back() -> None:
    ours = GateTarget(state().revisions, state().sources, NodeTiming(), run_id="run-1")
    before = state(operation=operation(run_id="old"))
    after_sync = state(operation=operation(run_id="run-1", finished_at=at(0)), reconciled_at=at(-590))
    history = gates.extend_history(gates.start_history(before, at(-5)), after_sync, at(0))
    refreshing = state(operation=after_sync.operation, reconciled_at=at(-590), refresh_requested=True)
    history = gates.extend_history(history, refreshing, at(11))
    untouched = gates.extend_history(history, after_sync, at(12))
    assert isinstance(gates.evaluate_gate(ours, untouched, at(12)), Wait), "another client removed the request"
    compared = gates.extend_history(history, state(operation=after_sync.operation, reconciled_at=at(-588)), at(12))
    assert isinstance(gates.evaluate_gate(ours, compared, at(12)), Open)


def test_what_was_never_compared_has_no_age() -> None:
    assert freshness.comparison_age(state(reconciled_at=None), at(0)) is None
    assert freshness.comparison_age(state(reconciled_at=at(-60)), at(0)) == timedelta(seconds=60)
    assert freshness.comparison_age(
        state(reconciled_at=at(-60), written_at=at(-7), stamped_at=None), at(0)
    ) == timedelta(seconds=60)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], None),
        ([{"time": "2026-11-15T21:00:00Z"}], None),
        ([{"time": "2026-11-15T21:00:00Z", "fieldsV1": {"f:metadata": {}}}], None),
        ([{"time": "2026-11-15T21:00:00Z", "fieldsV1": {"f:status": {"f:operationState": {}}}}], None),
        ([{"time": "soon", "fieldsV1": {"f:status": {"f:reconciledAt": {}}}}], None),
        (
            [{"fieldsV1": None}, {"time": "2026-11-15T21:00:00Z", "fieldsV1": {"f:status": {"f:reconciledAt": {}}}}],
            at(0),
        ),
    ],
)
def test_argo_cds_last_write_is_that_of_the_owner_of_the_comparison(fields: list[Any], expected: Any) -> None:
    body = {"metadata": {"name": "web", "managedFields": fields}}
    assert typed_object(body, Application).state.written_at == expected
