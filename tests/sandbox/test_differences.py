"""docs/sandbox.md tells the truth: it names every contract that is not kept, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.sandbox import differences

TEXT = (Path(__file__).parents[2] / "docs/sandbox.md").read_text()


def test_each_contract_that_the_sandbox_does_not_keep_is_documented() -> None:
    for reason in (*differences.DIFFERENCES.values(), differences.NO_PROCESSES):
        assert f"\n- {reason}" in TEXT


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(example, "docs/sandbox.md", "exec"), scope)
    lines = scope["run"](scope["main"]()).splitlines()
    assert any(b'"configmaps"' in line for line in lines)
