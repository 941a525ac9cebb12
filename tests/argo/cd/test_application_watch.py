"""The states of one Application for one waiter: in order, and none that is older than our own write."""

from __future__ import annotations

from tests.builders import typed_object
from windlass.argo.cd.application_watch import ApplicationWatch
from windlass.argo.cd.applications import Application
from windlass.simulation import virtual_time


def at_version(version: int, uid: str = "1") -> Application:
    meta = {"name": "web", "namespace": "argocd", "uid": uid, "resourceVersion": str(version)}
    return typed_object({"metadata": meta}, Application)


async def remind(application: Application) -> None:
    del application


def test_a_state_that_is_older_than_our_own_write_is_not_shown() -> None:
    async def main() -> None:
        watch = ApplicationWatch(at_version(3), remind)
        watch.record_write(at_version(6))
        for version in (4, 5, 6):
            watch.enqueue(at_version(version))
        assert not await watch.wait_for_change()
        assert watch.current == at_version(6)
        watch.enqueue(at_version(5))
        watch.catch_up()
        assert watch.current == at_version(6)
        watch.enqueue(at_version(7))
        assert await watch.wait_for_change()
        assert watch.current == at_version(7)

    virtual_time.run(main())


def test_an_application_that_was_deleted_or_created_again_is_shown_at_once() -> None:
    async def main() -> None:
        watch = ApplicationWatch(at_version(6), remind)
        watch.enqueue(None)
        assert await watch.wait_for_change()
        assert watch.current is None
        watch.record_write(at_version(6))
        watch.enqueue(at_version(9, uid="2"))
        assert await watch.wait_for_change()
        assert watch.current == at_version(9, uid="2")

    virtual_time.run(main())
