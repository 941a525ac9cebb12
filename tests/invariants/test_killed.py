"""The real process is killed in the middle, without a chance to clean up; another run gets to the end."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.invariants.clusters import Stage, staged
from tests.simulation.scenarios import told

if TYPE_CHECKING:
    from pathlib import Path


def killed_after(stage: Stage, writes: int) -> None:
    command = [sys.executable, "-m", "windlass", "deploy", *stage.files]
    with subprocess.Popen(
        command, env=stage.environ, cwd=stage.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        for _ in range(3000):
            if len([entry for entry in stage.cluster.asked() if entry.is_write]) >= writes:
                break
            assert process.poll() is None, "it ended before it could be killed"
            stage.cluster.rest(0.01)
        process.kill()
        assert process.wait(20) == -9


@pytest.mark.slow
@pytest.mark.parametrize("writes", [2, 6])
def test_after_a_kill_the_next_run_takes_over_and_gets_to_the_end(tmp_path: Path, writes: int) -> None:
    with staged(tmp_path, told("d: c; c: b; b: a", parts={"b": {"kind": "Deployment", "ready_after": 1.0}})) as stage:
        killed_after(stage, writes)
        held = stage.witness.holder
        assert held, "the dead one has the lock"
        found = stage.deploy()
        assert found.code == 0, found.ended.output
        assert not stage.unhealthy()
        assert not stage.witness.holder
        again = stage.deploy()
        assert (again.code, set(again.results.values())) == (0, {"unchanged"})
