"""One bed at a time: a second start says who has the first, and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.testbed import lock, places

if TYPE_CHECKING:
    from tests.testbed.bed import Cluster


def test_a_second_start_names_the_holder(real_cluster: Cluster) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "tests.testbed", "up"],
        cwd=places.CHECKOUT,
        env=os.environ | {"WINDLASS_TESTBED_WAIT": "0"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    holder = lock.holder()
    assert holder is not None
    assert second.returncode != 0
    for part in (f"process {holder.pid}", f"since {holder.since}", f"in {real_cluster.state}"):
        assert part in second.stderr
    assert "Traceback" not in second.stderr
    assert real_cluster.kubectl("get", "--raw", "/readyz") == "ok"
