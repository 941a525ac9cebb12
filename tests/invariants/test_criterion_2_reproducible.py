"""Criterion 2: deployments to identical clusters give identical results, whatever chance does to their timing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.play import Play, acted
from tests.simulation.scenarios import Act, told

KINDS = ("configmaps", "deployments.apps", "applications.argoproj.io")


def state(play: Play) -> dict[str, Any]:
    """Every object as it was meant: without what a server adds."""
    store = play.sandbox.server.store
    bodies = [(kind, item.name, item.load()) for kind in KINDS for item in store.list(kind)]
    return {f"{kind} {name}": (body.get("spec"), body.get("data")) for kind, name, body in bodies}


def test_two_clusters_end_up_the_same() -> None:
    slow = {name: {"kind": "Deployment", "ready_after": 2.0} for name in "ac"}
    scenario = told("d: b c; c: a; b: a", parts=slow)

    async def main(play: Play) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        ended = await play.run(Act())
        assert ended.report is not None
        assert ended.report.summary.exit_code == 0
        return state(play), [(each.name, str(each.result)) for each in ended.report.components]

    calm, (first, *others) = acted(scenario, main), [acted(replace(scenario, seed=n, jitter=0.9), main) for n in (1, 2)]
    assert len(calm[0]) >= 12
    assert all(each == calm for each in (first, *others))
