"""`teardown` on virtual time: order, proof of absence, refusals, early ends. The cluster's journal is the witness."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.operations.clusters import APPS, after
from tests.operations.teardown.teardowns import Stand, Witness, pod_of, stand
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import CASCADE, application, config, workload
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.outcomes import Result
from windlass.errors import ExitCode, WindlassError
from windlass.operations.run.context import RunControl
from windlass.sandbox.apiserver.faults import Fault

LEASES = "leases.coordination.k8s.io"
HELD = {"metadata": {"finalizers": ["example.org/held"]}}


def test_everything_goes_in_reverse_order_and_nothing_is_left() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; api: db cache; worker: db", web=pod_of("web"), db=pod_of("db"))
            witness = Witness(s)
            await s.deployed()
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.names(APPS) == []
            assert await s.names("deployments.apps") == []
            assert s.deleted()[0] == "platform-root"
            assert sorted(witness.gone) == ["api", "cache", "db", "platform-root", "web", "worker"]
            assert witness.deleted_too_early() == []
            assert {component.evidence.proof for component in report.components if component.evidence} == {
                "it is not there any more"
            }
            assert await s.find(LEASES, "windlass", "argocd") is None
            before = len(s.writes())
            report = await s.torn_down()
            assert report.summary.exit_code == 0
            assert len(s.writes()) == before

    run(main())


@pytest.mark.parametrize("seed", range(6))
def test_nothing_goes_before_its_dependents_are_gone(seed: int) -> None:
    async def main() -> None:
        async with world(seed) as w:
            chance, lines = w.sandbox.clock.rng, []
            names = [f"n{number:02d}" for number in range(14)]
            for number, name in enumerate(names):
                lines.append(f"{name}: {' '.join(chance.sample(names[:number], min(number, chance.randrange(4))))}")
            s = stand(w, ";".join(lines))
            w.argocd.delays.jitter = 0.9
            witness = Witness(s)
            await s.deployed()
            w.sandbox.server.faults.add(Fault(verb="delete", code=503, skip=2, times=2))
            w.sandbox.server.faults.add(Fault(verb="delete", sever="after", skip=5, times=1))
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert witness.deleted_too_early() == []
            assert set(names) <= witness.gone.keys()

    run(main())


def test_a_scope_with_dependents_outside_is_refused_before_any_write() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; api: db")
            await s.deployed()
            before = len(s.writes())
            report = await s.torn_down("app:db")
            assert report.summary.exit_code == 1
            assert [each.name for each in report.unmet] == ["api"]
            assert len(s.writes()) == before

    run(main())


def test_a_scope_takes_only_what_is_meant() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; api: db", web=pod_of("web"), api=pod_of("api"))
            await s.deployed()
            report = await s.torn_down("app:web")
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            assert await s.names(APPS) == ["api", "db", "platform-root"]
            assert await s.names("deployments.apps") == ["api"]
            lease = await s.find(LEASES, "windlass", "argocd")
            assert lease
            assert lease["spec"]["holderIdentity"] == ""
            await s.deployed()
            assert await s.names("deployments.apps") == ["api", "web"]

    run(main())


def test_what_is_half_gone_is_removed() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; api: db")
            await s.deployed()
            await w.sandbox.client().delete(APPS, "web", "argocd")
            await w.sandbox.client().delete(APPS, "platform-root", "argocd")
            await after(5)
            report = await s.torn_down()
            assert report.summary.exit_code == 0
            assert {each.name: each.result for each in report.components} == {
                "web": Result.UNCHANGED,
                "api": Result.SUCCEEDED,
                "db": Result.SUCCEEDED,
            }

    run(main())


def test_what_lacks_the_finalizer_gets_it_and_nothing_else_is_changed() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web", web=pod_of("web"))
            bare = application("web")
            del bare["metadata"]["finalizers"]
            s.apps["web"] = bare
            await s.deployed()
            seen: list[Any] = []
            w.sandbox.server.store.listen(APPS, "", lambda change: seen.append(change.new.load()))
            spec = (await w.sandbox.client().get(APPS, "web", "argocd"))["spec"]
            report = await s.torn_down()
            assert report.summary.exit_code == 0
            assert await s.names("deployments.apps") == []
            mine = [each for each in seen if each["metadata"]["name"] == "web"]
            assert any(each["metadata"].get("finalizers") == [CASCADE] for each in mine)
            assert all(each["spec"] == spec for each in mine)

    run(main())


def test_an_operation_that_runs_is_ended_first() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            w.argocd.delays.sync = 60
            sync = {"operation": {"sync": {"revision": "main"}}}
            await w.sandbox.client().patch(APPS, "web", sync, "argocd")
            await after(1)
            phases: list[str] = []
            w.sandbox.server.store.listen(
                APPS, "", lambda change: phases.append(change.new.load()["status"]["operationState"]["phase"])
            )
            assert (await s.torn_down()).summary.exit_code == 0
            assert "Terminating" in phases

    run(main())


def test_what_is_held_is_explained_keeps_what_it_stands_on_and_nothing_else() -> None:
    async def main() -> None:
        async with world() as w:
            held = config("api-held")
            held["metadata"]["finalizers"] = ["example.org/held"]
            s = stand(w, "web: api; api: db; other: cache", api=[held])
            s.platform = replace(
                s.platform,
                applications={
                    name: replace(node, timing=NodeTiming(health=timedelta(minutes=3)))
                    for name, node in s.platform.applications.items()
                },
            )
            witness = Witness(s)
            await s.deployed()
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert {each.name: each.result for each in report.components} == {
                "web": Result.SUCCEEDED,
                "api": Result.FAILED,
                "db": Result.SKIPPED,
                "other": Result.SUCCEEDED,
                "cache": Result.SUCCEEDED,
            }
            assert witness.deleted_too_early() == []
            (failure,) = report.failures
            assert (failure.name, failure.reason, failure.blocks) == ("api", "NoActivity", ("db",))
            told = "\n".join(failure.diagnostics)
            assert f"Application argocd/api (argoproj.io): held by the finalizer {CASCADE}" in told
            assert "there is no StatefulSet of that name" in told
            assert "ConfigMap default/api-held: held by the finalizer example.org/held" in told
            assert "is not known" in told
            lease = await s.find(LEASES, "windlass", "argocd")
            assert lease
            assert lease["spec"]["holderIdentity"] == ""
            await w.sandbox.client().patch("configmaps", "api-held", {"metadata": {"finalizers": None}}, "default")
            assert (await s.torn_down()).summary.exit_code == 0
            assert await s.names(APPS) == []

    run(main())


@pytest.mark.parametrize(("ready", "words"), [(1, "runs, 1 of 1 ready"), (0, "does not run, 0 of 1 ready")])
def test_the_controller_behind_a_finalizer_is_looked_at(ready: int, words: str) -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            never = {"sandbox.windlass.dev/ready-after": "never" if not ready else "0s"}
            controller = workload("StatefulSet", "argocd-application-controller", replicas=1, annotations=never)
            await w.sandbox.client().create("statefulsets.apps", controller, "argocd")
            await w.sandbox.client().patch("configmaps", "web", HELD, "default")
            await after(30)
            report = await s.torn_down()
            assert words in "\n".join(report.failures[0].diagnostics)

    run(main())


def test_what_is_in_another_cluster_is_not_said_to_be_seen_gone() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web; api")
            await s.deployed()
            far = {"spec": {"destination": {"server": "https://far.test"}}}
            await w.sandbox.client().patch(APPS, "web", far, "argocd")
            report = await s.torn_down()
            assert report.summary.exit_code == 0, (report.failures, report.removal)
            verified = {each.name: each.evidence and each.evidence.is_directly_verified for each in report.components}
            assert verified == {"api": True, "web": False}

    run(main())


def test_a_dependent_that_comes_back_is_found_before_the_delete() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api")
            await s.deployed()
            calls = w.sandbox.client()
            made = [False]

            def notice(change: Any) -> None:
                if change.type == "DELETED" and change.new.name == "web" and not made[0]:
                    made[0] = True
                    w.sandbox.start(_create(), name="somebody")

            async def _create() -> None:
                await calls.create(APPS, application("web"))

            w.sandbox.server.store.listen(APPS, "", notice)
            w.sandbox.server.faults.add(Fault(kind="configmaps", verb="list", user="*", latency=3.0, skip=0, times=4))
            report = await s.torn_down()
            assert report.summary.exit_code == 1
            assert "web depends on it and is there again" in report.failures[0].detail
            assert "api" in await s.names(APPS)

    run(main())


def test_out_of_time_is_4_with_a_report() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; api: db")
            await s.deployed()
            w.argocd.delays.start = 1000
            report = await s.torn_down(timeout=timedelta(seconds=30))
            assert report.summary.exit_code == 4
            assert {each.name: each.result for each in report.components} == {
                "web": Result.INTERRUPTED,
                "api": Result.NOT_STARTED,
                "db": Result.NOT_STARTED,
            }
            lease = await s.find(LEASES, "windlass", "argocd")
            assert lease
            assert lease["spec"]["holderIdentity"] == ""

    run(main())


def test_a_run_that_is_interrupted_says_where_it_was() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web: api; api: db")
            await s.deployed()
            w.argocd.delays.start = 1000
            control = RunControl(s.events.append)
            w.sandbox.start(_interrupted(control), name="signal")
            report = await s.torn_down(control=control)
            assert (report.summary.exit_code, report.summary.was_interrupted) == (1, True)

    async def _interrupted(control: RunControl) -> None:
        await after(20)
        control.interrupt()

    run(main())


def test_there_is_one_run_at_a_time() -> None:
    async def main() -> None:
        async with world() as w:
            s = stand(w, "web")
            await s.deployed()
            await w.sandbox.client().patch(LEASES, "windlass", {"spec": {"holderIdentity": "other"}}, "argocd")
            w.sandbox.start(_renewed(s), name="other")
            with pytest.raises(WindlassError, match="another run holds the lock") as caught:
                await s.torn_down()
            assert caught.value.exit_code is ExitCode.FAILURE
            assert await s.names(APPS) == ["platform-root", "web"]

    async def _renewed(s: Stand) -> None:
        for number in range(100):
            await after(2)
            change = {"spec": {"renewTime": f"2030-01-01T00:00:{number:02d}.000000Z"}}
            await s.world.sandbox.client().patch(LEASES, "windlass", change, "argocd")

    run(main())
