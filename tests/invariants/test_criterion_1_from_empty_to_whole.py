"""Criterion 1: from an empty cluster to all applications, without any manual step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.invariants.clusters import staged
from tests.simulation.scenarios import Part, told
from windlass.settings.platforms import PlatformDefinition, assemble_platform

if TYPE_CHECKING:
    from pathlib import Path


def test_the_reference_platform_is_raised_by_one_command(tmp_path: Path) -> None:
    reference = assemble_platform(None, None)
    assert isinstance(reference, PlatformDefinition)
    names = reference.platform.graph.names
    assert len(names) == 43
    parts = {name: Part(name, 1, "Deployment" if place % 3 == 0 else "") for place, name in enumerate(names)}
    with staged(tmp_path, replace(told("a:"), platform=reference.platform, commits=(parts,))) as stage:
        ended = stage.windlass("deploy", "--environment-file", str(tmp_path / "environment.yaml"))
        assert ended.code == 0, ended.output
        assert not stage.unhealthy()
        assert {name for _, name in stage.witness.operations} >= set(names)
