"""What a teardown runs into: refusals, objects that stay, controllers that are dead, others who meddle."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.clusters import APPS, after
from tests.operations.teardown.teardowns import Stand, Witness, stand
from tests.operations.teardown.test_cleanup import DEFINITIONS, MARK, definition, role
from tests.operations.teardown.test_parent_removal import SETS, parented, set_of
from tests.sandbox.controllers.clusters import QUICK, run, world
from tests.sandbox.controllers.objects import CASCADE, application, config
from windlass.core.platform.outcomes import Result
from windlass.errors import WindlassError
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import CallSender
from windlass.operations.run.context import RunControl
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.simulation.in_process_transport import InProcessTransport
from windlass.simulation.virtual_time import virtual_clock

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from windlass.sandbox.apiserver.store import StoreChange

LEASES, ROLES = "leases.coordination.k8s.io", "clusterroles.rbac.authorization.k8s.io"
FREE = {"metadata": {"finalizers": None}}


def refused(verb: str, kind: str, name: str = "*") -> Fault:
    return Fault(verb=verb, kind=kind, name=name, code=403, reason="Forbidden", times=None)


def once(s: Stand, kind: str, name: str, work: Coroutine[Any, Any, None]) -> None:
    """Does something as soon as an object of this name is written."""
    todo = [work]

    def notice(change: StoreChange) -> None:
        if change.new.name == name and todo:
            s.world.sandbox.start(todo.pop(), name="meddler")

    s.world.sandbox.server.store.listen(kind, "", notice)


def test_a_deletion_that_is_refused_is_a_failure_of_that_node() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; other")
            await s.deployed()
            w.sandbox.server.faults.add(refused("delete", APPS, "web"))
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert report.failures[0].detail.startswith("its deletion was refused: injected fault")
            assert {each.name: each.result for each in report.components} == {
                "web": Result.FAILED,
                "api": Result.SKIPPED,
                "other": Result.SUCCEEDED,
            }

    run(main())


@pytest.mark.parametrize("is_marked", [True, False])
def test_what_an_application_leaves_that_goes_without_cascade_is_removed_if_it_carries_its_mark(
    is_marked: bool,
) -> None:
    """Another client takes the finalizer off `web` while it is being deleted."""

    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api")
            await s.deployed()
            w.argocd.delays.start = 30
            once(s, APPS, "web", _freed(s))
            report = await s.torn_down()
            if is_marked:
                assert report.summary.exit_code == 0, (report.failures, report.removal)
                assert [entry.name for entry in s.writes() if entry.verb == "delete"][-3:] == ["web", "api", "windlass"]
                assert await s.find("configmaps", "web", "default") is None
                return
            assert report.summary.exit_code == 1
            assert report.failures[0].detail.startswith("ConfigMap default/web: it still exists, after 300 s")
            assert report.failures[0].diagnostics == ("ConfigMap default/web: no client has requested its deletion",)
            assert "api" in await s.names(APPS)
            assert report.removal.orphans == ()

    async def _freed(s: Stand) -> None:
        await after(5)
        if not is_marked:
            await s.world.sandbox.client().patch(
                "configmaps", "web", {"metadata": {"annotations": {MARK: None}}}, "default"
            )
        await s.world.sandbox.client().patch(APPS, "web", FREE, "argocd")

    run(main())


def test_what_is_on_its_way_out_already_is_waited_for() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            w.argocd.delays.start = 20
            await w.sandbox.client().delete(APPS, "web", "argocd")
            await after(1)
            assert (await s.torn_down()).summary.exit_code == 0
            assert s.deleted() == ["platform-root"]

    run(main())


@pytest.mark.parametrize(
    ("renewed", "words"),
    [
        (None, "its status is not known"),
        ("", "its status is not known"),
        ("2029-12-31T00:00:00.000000Z", "it does not run; it last renewed its Lease"),
        ("2030-01-01T02:00:00.000000Z", "it runs"),
    ],
)
def test_the_control_plane_lives_by_its_lease(renewed: str | None, words: str) -> None:
    async def main() -> None:
        async with world() as w:
            many = [config(f"web-{number:02d}") for number in range(14)]
            for each in many:
                each["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
            s = stand(w, "web", web=many)
            await s.deployed()
            if renewed is not None:
                spec = {"renewTime": renewed} if renewed else {}
                lease = {"metadata": {"name": "kube-controller-manager"}, "spec": spec}
                await w.sandbox.client().create(LEASES, lease, "kube-system")
            report = await s.torn_down()
            lines = report.failures[0].diagnostics
            assert sum("kube-controller-manager should remove it" in line and words in line for line in lines) == 10
            assert lines[-1] == "and 5 more objects"

    run(main())


def test_what_holds_it_may_be_unreadable() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            held = {"metadata": {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]}}
            await w.sandbox.client().patch("configmaps", "web", held, "default")
            w.sandbox.server.faults.add(refused("list", "deployments.apps"))
            w.sandbox.server.faults.add(refused("get", APPS))
            report = await s.torn_down()
            (line,) = report.failures[0].diagnostics
            assert "cloud-controller-manager should remove it: its status could not be read" in line

    run(main())


@pytest.mark.parametrize("take_over", [True, False])
def test_what_another_application_took_over_or_what_says_that_it_stays_is_not_waited_for(take_over: bool) -> None:
    async def main() -> None:
        async with world() as w:
            kept = config("kept")
            kept["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": "Delete=false"}
            s = stand(w, "web: api", web=[config("web"), config("moved") if take_over else kept])
            await s.deployed()
            if take_over:
                mark = {"metadata": {"annotations": {MARK: "other:/ConfigMap:default/moved"}}}
                await w.sandbox.client().patch("configmaps", "moved", mark, "default")
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.find("configmaps", "moved" if take_over else "kept", "default")
            assert len(report.removal.retained) == (not take_over)

    run(main())


@pytest.mark.parametrize("finalizers", [[CASCADE], ["example.org/held"]])
def test_a_set_is_freed_of_argo_cds_finalizer_and_held_by_others(finalizers: list[str]) -> None:
    async def main() -> None:
        async with world() as w:
            s = await set_of(w, "web")
            await w.sandbox.client().patch(SETS, "many", {"metadata": {"finalizers": finalizers}}, "argocd")
            if finalizers == [CASCADE]:
                assert (await s.torn_down()).summary.exit_code == 0
            else:
                report = await s.torn_down()
                assert report.summary.exit_code == 1
                assert re.search(r"ApplicationSet argocd/many .* still exists after 60 s", report.notices[-1])
                assert await s.names(APPS) == ["web"]

    run(main())


@pytest.mark.parametrize(("kind", "name"), [(SETS, "many"), (APPS, "apps")])
def test_a_parent_whose_deletion_is_refused_ends_the_run(kind: str, name: str) -> None:
    async def main() -> None:
        async with world() as w:
            s = await (set_of(w, "web") if kind == SETS else parented(w, "web", {"apps": ["web"]}))
            w.sandbox.server.faults.add(refused("delete", kind, name))
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert "could not be removed: injected fault: Forbidden" in report.notices[-1]
            assert "web" in await s.names(APPS)

    run(main())


def test_out_of_time_before_the_first_node_is_4_with_a_report() -> None:
    async def main() -> None:
        async with world() as w:
            s = await parented(w, "web", {"apps": ["web"]})
            change = {"metadata": {"finalizers": ["example.org/held"]}}
            await w.sandbox.client().patch(APPS, "apps", change, "argocd")
            report = await s.torn_down(timeout=timedelta(seconds=20))
            assert report.summary.exit_code == 4
            assert [each.result for each in report.components] == [Result.NOT_STARTED]

    run(main())


@pytest.mark.parametrize("is_there", [True, False])
def test_out_of_time_before_anything_is_seen_is_4_with_a_report(is_there: bool) -> None:
    """Of a platform that is gone already, too: nobody has seen that."""

    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            if is_there:
                await s.deployed()
            w.sandbox.server.faults.add(Fault(verb="watch", kind=APPS, latency=2.0))
            report = await s.torn_down(timeout=timedelta(seconds=1))
            assert (report.summary.exit_code, str(report.summary.verdict)) == (4, "timeout")
            assert [(each.result, str(each.health)) for each in report.components] == [(Result.NOT_STARTED, "Unknown")]
            assert report.notices == ("the time limit of the run was over (--timeout)",)
            assert await s.names(APPS) == ["platform-root", "web"] * is_there

    run(main())


def test_out_of_time_while_looking_at_everything_is_4() -> None:
    async def main() -> None:
        async with world() as w:
            w.sandbox.server.faults.add(Fault(verb="list", kind="configmaps", latency=5.0, times=None))
            report = await stand(w, "web").torn_down(timeout=timedelta(seconds=2))
            assert report.summary.exit_code == 4
            assert [each.result for each in report.components] == [Result.NOT_STARTED]

    run(main())


def test_a_stop_stands_in_the_report() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            w.argocd.delays.start = 10_000
            control = RunControl(s.events.append)
            asyncio.get_running_loop().call_later(5, control.interrupt)
            report = await s.torn_down(control=control)
            assert report.summary.exit_code == 1
            assert report.notices[-1] == "interrupted by a signal"
            assert report.failures[0].detail == "when the run ended it was waiting: it is being deleted"

    run(main())


def test_out_of_time_while_looking_for_what_is_left_is_4() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            left = role("web", "left")
            left["metadata"]["finalizers"] = ["example.org/held"]
            await w.sandbox.client().create(ROLES, left)
            await w.sandbox.client().delete(ROLES, "left")
            report = await s.torn_down(timeout=timedelta(seconds=20))
            assert report.summary.exit_code == 4
            assert [each.result for each in report.components] == [Result.SUCCEEDED]
            assert report.removal.orphans == ("not known: the run was stopped before it looked for them; rerun it",)
            assert await s.find(LEASES, "windlass", "argocd")

    run(main())


def test_a_dependent_that_comes_before_the_lock_is_held_stands_in_the_way() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api")
            await s.deployed()
            await w.sandbox.client().delete(APPS, "web", "argocd")
            await after(5)
            await w.sandbox.client().patch(LEASES, "windlass", {"spec": {"holderIdentity": "dead"}}, "argocd")
            w.sandbox.start(_made(s), name="somebody")
            report = await s.torn_down("app:api")
            assert report.summary.exit_code == 1
            assert [each.name for each in report.unmet] == ["web"]
            assert "api" in await s.names(APPS)

    async def _made(s: Stand) -> None:
        await after(5)
        await s.world.sandbox.client().create(APPS, application("web"))

    run(main())


def test_what_goes_a_little_later_is_no_orphan() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            left = role("web", "late")
            left["metadata"]["finalizers"] = ["example.org/held"]
            await w.sandbox.client().create(ROLES, left)
            await w.sandbox.client().delete(ROLES, "late")
            w.sandbox.start(_freed(s), name="its controller")
            report = await s.torn_down()
            assert (report.summary.exit_code, report.removal.orphans) == (0, ())

    async def _freed(s: Stand) -> None:
        await after(20)
        await s.world.sandbox.client().patch(ROLES, "late", FREE)

    run(main())


def test_a_definition_whose_deletion_is_refused_is_an_orphan() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            await w.sandbox.client().create(DEFINITIONS, definition("web"))
            w.sandbox.server.faults.add(refused("delete", DEFINITIONS))
            report = await s.torn_down()
            assert report.summary.exit_code == 2
            assert "its deletion was refused: injected fault: Forbidden" in report.removal.orphans[0]

    run(main())


@pytest.mark.parametrize("part", range(3))
def test_a_run_that_dies_at_any_write_is_finished_by_the_next(part: int) -> None:
    async def died(number: int) -> bool:
        async with world() as w:
            s = await parented(w, "web: api", {"apps": ["web", "api"]})
            await w.sandbox.client().create(DEFINITIONS, definition("web"))
            witness, transport = Witness(s), InProcessTransport(w.sandbox, ADMIN)
            mortal = KubeClient(CallSender(transport, clock=virtual_clock(), limits=QUICK))
            forget = w.sandbox.server.store.listen(
                "", "", lambda _: transport.crash() if len(s.writes()) >= number else None
            )
            try:
                code = (await s.torn_down(client=mortal)).summary.exit_code
            except WindlassError:
                code = 1
            forget()
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (number, report.failures, report.removal)
            assert await s.names(APPS) == []
            assert await s.find(LEASES, "windlass", "argocd") is None
            assert "widgets.example.com" not in await s.names(DEFINITIONS)
            assert witness.deleted_too_early() == []
            return code != 0

    number = part + 1
    while run(died(number)):
        number += 3
    assert number > 6, "the lock, the parent, two nodes, a definition"
