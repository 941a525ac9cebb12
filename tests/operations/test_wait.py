"""`wait` ends when it is true, not when it is said; on virtual time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import source, state
from tests.operations.clusters import APPS, BROKEN, SLOW, SYNC, after, begin, cluster, patch, truth
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import application, config, workload
from windlass.core.platform.gate_values import Failed, Open, Reason
from windlass.core.platform.model.applications import ApplicationRef
from windlass.errors import WindlassError
from windlass.kube.api_errors import BadRequest
from windlass.operations import wait as waiting
from windlass.operations.observation import NoArgoCd
from windlass.operations.wait import WaitRequest, WaitTimeout, wait
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.sandbox.argocd.application_specs import Staleness, StaleStatus
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX
from windlass.simulation.in_process_transport import USER_AGENT

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World

WEB = ApplicationRef("web")


def files(image: str = "web:1", annotations: Any = SLOW) -> dict[str, Any]:
    return {"web/all.yaml": [config(value=image), workload(image=image, annotations=annotations)]}


async def waited(w: World, *revisions: str, seconds: float = 600) -> tuple[Open | Failed | WaitTimeout, list[str]]:
    told: list[str] = []
    found = await wait(cluster(w), WaitRequest(WEB, revisions, timedelta(seconds=seconds)), told.append)
    assert w.kube.counts.writes == 0
    assert not [entry for entry in w.sandbox.server.journal.writes() if entry.agent == USER_AGENT]
    return found, told


@pytest.mark.parametrize("how", list(Staleness))
@pytest.mark.parametrize("names_revision", [False, True])
def test_stale_health_after_a_sync_never_ends_it(how: Staleness, names_revision: bool) -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, files())
            await patch(w, SYNC)
            await after(30)
            assert await truth(w)
            new = repository.push(files("web:2"))
            w.argocd.stale_statuses["web"] = StaleStatus(how)
            await patch(w, SYNC)
            found, told = await waited(w, *([new[:10]] if names_revision else []))
            assert isinstance(found, Open), found
            assert found.evidence.shown == (new,)
            assert await truth(w), "the pods of the new revision are ready"
            assert told
            assert len(set(told)) > 1

    run(main())


def test_it_waits_through_a_whole_roll_out_and_says_for_what() -> None:
    async def main() -> list[str]:
        async with world() as w:
            await begin(w, files(annotations={f"{ANNOTATION_PREFIX}ready-after": "30s"}))
            await patch(w, SYNC)
            found, told = await waited(w)
            assert isinstance(found, Open), found
            assert await truth(w)
            return told

    assert [line.partition(",")[0] for line in run(main())] == [
        "an operation is waiting or running",
        "an operation finished a moment ago",
        "it is Progressing",
    ]


def test_a_commit_that_nobody_has_synced_yet_is_waited_for() -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, files())
            await patch(w, SYNC)
            await after(30)
            new = repository.push(files("web:2"))

            async def later() -> None:
                await after(60)
                await patch(w, SYNC)

            w.sandbox.start(later(), name="jane")
            found, told = await waited(w, new)
            assert isinstance(found, Open)
            assert found.evidence.shown == (new,)
            assert await truth(w)
            assert "desired is" in told[0]

    run(main())


def test_out_of_sync_is_not_the_end_even_if_healthy() -> None:
    async def main() -> None:
        async with world() as w:
            repository = await begin(w, files())
            await patch(w, SYNC)
            await after(30)
            repository.push(files("web:2"))
            await patch(w, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
            await after(5)
            found, _ = await waited(w, seconds=60)
            assert isinstance(found, WaitTimeout)
            assert found.detail.startswith("it is OutOfSync at ")

    run(main())


def test_what_is_healthy_ends_it_at_once() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files())
            await patch(w, SYNC)
            await after(60)
            began = w.kube.clock.monotonic()
            found, told = await waited(w)
            assert isinstance(found, Open)
            assert told == []
            assert w.kube.clock.monotonic() - began < 1

    run(main())


def test_degraded_fails_after_its_grace() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files())
            await patch(w, SYNC)
            await after(30)
            w.argocd.health_overrides["web"] = "Degraded"
            await patch(w, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
            began = w.kube.clock.monotonic()
            found, _ = await waited(w)
            assert isinstance(found, Failed)
            assert found.reason is Reason.DEGRADED
            assert 30 <= w.kube.clock.monotonic() - began < 35

    run(main())


def test_what_keeps_crashing_is_out_of_time_with_what_it_waited_for() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files(annotations=BROKEN))
            await patch(w, SYNC)
            found, _ = await waited(w, seconds=120)
            assert found == WaitTimeout("it is Progressing")

    run(main())


def test_an_operation_that_failed_fails_it_unless_somebody_tries_again() -> None:
    async def main(*, again: bool) -> Any:
        async with world() as w:
            await begin(w, files(), application(namespace="nowhere"))
            await patch(w, SYNC)
            if again:

                async def later() -> None:
                    await after(20)
                    await w.sandbox.client().create("namespaces", {"metadata": {"name": "nowhere"}})
                    await patch(w, SYNC)

                w.sandbox.start(later(), name="jane")
            return (await waited(w))[0]

    found = run(main(again=False))
    assert isinstance(found, Failed)
    assert found.reason is Reason.OPERATION_FAILED
    assert found.detail.startswith("its operation ended Failed")
    assert isinstance(run(main(again=True)), Open)


def test_the_failure_of_another_revision_says_nothing() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files(), application(namespace="nowhere"))
            await patch(w, SYNC)
            found, _ = await waited(w, "f" * 40, seconds=120)
            assert isinstance(found, WaitTimeout)

    run(main())


def test_one_that_is_not_there_is_waited_for_and_one_that_goes_is_a_failure() -> None:
    async def main() -> None:
        async with world() as w:
            assert await waited(w, seconds=20) == (WaitTimeout("it does not exist yet"), ["it does not exist yet"])
            await begin(w, files(), application("other"))
            assert (await waited(w, seconds=20))[0] == WaitTimeout("it does not exist yet"), "another is not it"

            async def later() -> None:
                await after(5)
                await w.sandbox.client().create(APPS, application())
                await after(5)
                await w.sandbox.client().delete(APPS, "web", "argocd")

            w.sandbox.start(later(), name="jane")
            found, told = await waited(w)
            assert isinstance(found, Failed)
            assert found.reason in {Reason.DELETING, Reason.ABSENT}
            assert told[0] == "it does not exist yet"

    run(main())


def test_a_lost_watch_is_told_and_taken_up_again() -> None:
    async def main() -> None:
        async with world() as w:
            await begin(w, files())
            w.sandbox.server.faults.add(
                Fault(verb="watch", kind="applications.argoproj.io", user=ADMIN.name, code=503, times=3)
            )
            await patch(w, SYNC)
            found, _ = await waited(w)
            assert isinstance(found, Open)
            assert await truth(w)

    run(main())


def test_a_cluster_without_argo_cd() -> None:
    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().delete(
                "customresourcedefinitions.apiextensions.k8s.io", "applications.argoproj.io"
            )
            with pytest.raises(WindlassError, match="not served here"):
                await waited(w)

    run(main())


ONE, TWO = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ((), (ONE, TWO)),
        ((TWO,), (ONE, TWO)),
        ((TWO[:7],), (ONE, TWO)),
        ((TWO[:6],), (TWO[:6], TWO[:6])),
        (("c" * 40,), ("c" * 40, "c" * 40)),
        ((ONE[:8], TWO), (ONE, TWO)),
        ((TWO, ONE), (TWO, ONE)),
        ((ONE, TWO, ONE), (ONE, TWO, ONE)),
    ],
)
def test_one_revision_is_of_some_source_and_several_are_one_for_each(
    asked: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    shown = state(revisions=(ONE, TWO), sources=(source("main"), source("main")))
    assert waiting._revisions_to_await(asked, shown) == wanted


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (WEB, "namespace argocd is not that of Argo CD"),
        (ApplicationRef("web", "elsewhere"), ""),
    ],
)
def test_a_namespace_without_argo_cd_is_told_instead_of_waited_for(target: ApplicationRef, told: str) -> None:
    """Unless the Application was asked for with its namespace."""

    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().delete("appprojects.argoproj.io", "default", "argocd")
            request = WaitRequest(target, timeout=timedelta(seconds=30))
            if not told:
                assert isinstance(await wait(cluster(w), request, lambda _: None), WaitTimeout)
                return
            with pytest.raises(NoArgoCd, match=told) as refused:
                await wait(cluster(w), request, lambda _: None)
            assert refused.value.hint == "name the namespace of the Application: NAMESPACE/web"

    run(main())


def test_an_application_that_does_not_exist_yet_is_waited_for_where_argo_cd_is() -> None:
    async def main() -> None:
        async with world() as w:
            found, told = await waited(w, seconds=30)
            assert (found, told) == (WaitTimeout("it does not exist yet"), ["it does not exist yet"])
            w.sandbox.server.faults.add(Fault(verb="get", kind="namespaces", code=400, times=None))
            with pytest.raises(BadRequest):
                await waited(w)

    run(main())
