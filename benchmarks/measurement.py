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
    print(json.dumps({"seconds": time.perf_counter() - began, "rss_mb": peak_memory()}))


def peak_memory(process: int | str = "self") -> float:
    """In MB: VmHWM, not ru_maxrss, which is inherited over exec."""
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert peak
    return int(peak[1]) / 1024
