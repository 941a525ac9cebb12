"""INV-5: nothing is removed while something that depends on it is there; the cluster tells what was there when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.stages import Stage, staged
from tests.simulation.scenarios import NAMESPACE, told
from tests.simulation.witnesses import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windlass.sandbox.stores import Change

DIAMOND = "top: left right; left: base; right: base; beside:"
KINDS = ("configmaps", "deployments.apps")
CONFIRMED = {"TEARDOWN_CONFIRM": "development"}


class Removals:
    """Notes, at the moment an Application begins to go, what that depends on it is still there."""

    def __init__(self, stage: Stage) -> None:
        self._store = stage.cluster.sandbox.server.store
        self._dependents = stage.scenario.platform.graph.dependents
        self.order: list[str] = []
        self.problems: list[str] = []
        self._store.listen(APPLICATIONS, "", self._hear)

    def _hear(self, change: Change) -> None:
        name = change.new.name
        is_going = change.type == "DELETED" or "deletionTimestamp" in change.new.load()["metadata"]
        if is_going and name in self._dependents and name not in self.order:
            self.order.append(name)
            for dependent in self._dependents[name]:
                self.problems += [f"{name} goes while {each} is there" for each in self.left_of(dependent)]

    def left_of(self, name: str) -> list[str]:
        """The Application, what it made, and the pods of that."""
        store = self._store
        found = [f"{kind} {name}" for kind in KINDS if store.get(kind, NAMESPACE, name)]
        found += [f"pod {pod.name}" for pod in store.list("pods", NAMESPACE) if pod.labels.get("app") == name]
        return found + [f"Application {name}" for _ in [0] if store.get(APPLICATIONS, "argocd", name)]


@pytest.fixture(params=[True, False], ids=["root", "brownfield"])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    parts: dict[str, Any] = {name: {"kind": "Deployment"} for name in ("left", "top")}
    with staged(tmp_path, told(DIAMOND, parts=parts, has_root=request.param)) as found:
        yield found


def test_what_depends_goes_first(stage: Stage) -> None:
    assert stage.deploy().code == 0
    removals = Removals(stage)
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
