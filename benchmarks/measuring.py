"""Times one run in a fresh process and prints what it took."""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATIONS = ("argoproj.io", "v1alpha1", "applications")


@contextmanager
def measured() -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    # VmHWM, not ru_maxrss: that one is inherited over exec.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak
    print(json.dumps({"seconds": seconds, "rss_mb": int(peak[1]) / 1024}))
