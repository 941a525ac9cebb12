"""Criterion 1: from an empty cluster to all applications, without any manual step."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.playing import Play, acted
from tests.simulation.scenarios import Act, Part, told
from windlass.settings.platforms import Assembled, assembled


def test_the_reference_platform_is_raised_in_one_run() -> None:
    reference = assembled(None, None)
    assert isinstance(reference, Assembled)
    platform = reference.platform
    assert len(platform.applications) == 43
    parts = {
        name: Part(name, 1, "Deployment" if place % 3 == 0 else "") for place, name in enumerate(platform.graph.names)
    }
    scenario = replace(told("a:"), platform=platform, commits=(parts,))

    async def main(play: Play) -> None:
        ended = await play.run(Act())
        assert ended.report is not None, ended.error
        assert ended.report.summary.exit_code == 0
        assert ended.report.summary.counts == {"succeeded": 43}
        assert not play.witness.problems
        assert not [name for name in parts if play.witness.why_not_ready(name, [0])]

    acted(scenario, main)
