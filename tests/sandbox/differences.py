"""Where the sandbox is not what the real server is, on purpose or not yet: these contracts are skipped, visibly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

DIFFERENCES: dict[str, str] = {}
NO_PROCESSES = "pods are simulated; they run no commands"


def skip_differences(items: Iterable[pytest.Item]) -> None:
    for item in items:
        reason = DIFFERENCES.get(item.name, NO_PROCESSES if item.get_closest_marker("kubelet") else "")
        if reason:
            item.add_marker(pytest.mark.skip(reason=f"the sandbox differs: {reason}"))
