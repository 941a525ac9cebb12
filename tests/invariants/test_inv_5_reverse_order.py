"""INV-5: nothing is removed while something that depends on it is there; the cluster tells what was there when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.clusters import Stage, staged
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import APPLICATIONS, Act, told
from tests.simulation.witnesses import Removals
from windlass.core.platform.reporting.reports import Action

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windlass.sandbox.apiserver.store import StoreChange

DIAMOND = "top: left right; left: base; right: base; beside:"
CONFIRMED = {"TEARDOWN_CONFIRM": "development"}


@pytest.fixture(params=[True, pytest.param(False, marks=pytest.mark.slow)], ids=["root", "brownfield"])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    parts: dict[str, Any] = {name: {"kind": "Deployment"} for name in ("left", "top")}
    with staged(tmp_path, told(DIAMOND, parts=parts, has_root=request.param)) as found:
        yield found


def test_what_depends_goes_first(stage: Stage) -> None:
    assert stage.deploy().code == 0
    removals = Removals(stage.cluster.sandbox, stage.scenario)
    ended = stage.windlass("teardown", *stage.files, environ=CONFIRMED)
    assert ended.code == 0, ended.output
    assert not removals.problems
    assert sorted(removals.order) == ["base", "beside", "left", "right", "top"]
    assert not any(removals.left_of(name) for name in stage.scenario.platform.graph.names)


def test_a_scope_that_others_depend_on_is_refused_without_a_write(stage: Stage) -> None:
    assert stage.deploy().code == 0
    ended = stage.windlass("teardown", *stage.files, "--scope", "app:base", environ=CONFIRMED)
    assert ended.code == 1, ended.output
    assert "left" in ended.stdout
    assert "right" in ended.stdout
    assert not [entry for entry in stage.entries if entry.is_write]


def test_what_an_application_left_behind_is_waited_for() -> None:
    """Another client takes Argo CD's finalizer off `top` as soon as it is to go; what it made is held for a minute."""

    async def story(play: Play) -> list[str]:
        assert (await play.run(Act())).report is not None
        calls, store = play.sandbox.client(), play.sandbox.server.store
        play.argocd.delays.start = 5.0
        await calls.patch("configmaps", "top", {"metadata": {"finalizers": ["example.org/held"]}}, "default")

        async def freed() -> None:
            await calls.patch(APPLICATIONS, "top", {"metadata": {"finalizers": None}}, "argocd")
            await play.sandbox.clock.sleep(60)
            await calls.patch("configmaps", "top", {"metadata": {"finalizers": None}}, "default")

        def hear(change: StoreChange) -> None:
            if change.new.name == "top" and "deletionTimestamp" in change.new.load()["metadata"]:
                forget()
                play.sandbox.start(freed(), name="somebody")

        forget = store.listen(APPLICATIONS, "", hear)
        assert (await play.converged(Act(Action.TEARDOWN))) is not None
        return [*play.witness.problems, *play.removals.problems]

    assert acted(told("top: base"), story) == []
