"""Criterion 3: after a failure the next run goes on from there; what stands is not deployed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import staged
from tests.simulation.play import Play, acted
from tests.simulation.scenarios import Act, newer, told
from windlass.argo.cd.root_application import NAME as ROOT

if TYPE_CHECKING:
    from pathlib import Path

CHAIN = "d: c; c: b; b: a"


def test_the_process_goes_on_where_it_failed(tmp_path: Path) -> None:
    """The cause is mended in the repository; what was right before is right at the new commit, too."""
    broken = told(CHAIN, parts={"c": {"trouble": "refused"}}, has_root=False).commits[0]
    scenario = told(CHAIN, has_root=False, commits=(broken, newer(broken, "c", trouble="")))
    with staged(tmp_path, scenario) as stage:
        first = stage.deploy()
        assert (first.code, first.results) == (2, {"a": "succeeded", "b": "succeeded", "c": "failed", "d": "skipped"})
        stage.push()
        second = stage.deploy()
        assert second.code == 0, second.ended.output
        assert second.results == {"a": "unchanged", "b": "unchanged", "c": "succeeded", "d": "succeeded"}
        assert stage.operations_of(second) == ["c", "d"]
        assert not stage.unhealthy()


@pytest.mark.parametrize("stop_at", [2.0, 4.0, 6.0])
def test_what_stood_when_it_was_stopped_is_not_begun_again(stop_at: float) -> None:
    async def main(play: Play) -> None:
        first = await play.run(Act(stop_at=stop_at))
        assert first.report is not None
        stood = {each.name for each in first.report.components if each.result == "succeeded"}
        assert stood
        assert stood != set("abcd")
        second = await play.run(Act())
        assert second.report is not None
        assert second.report.summary.exit_code == 0
        begun = {name for run_id, name in play.witness.operations if run_id == second.run_id} - {ROOT}
        assert begun
        assert not begun & stood
        assert not play.witness.problems

    acted(told(CHAIN), main)
