"""`windlass rehearse`: loads the settings and runs a rehearsal."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.cli.options import option_values
from windlass.operations.rehearse import Rehearsal, RehearsalRequest, rehearse
from windlass.settings.loader import Inputs, load

if TYPE_CHECKING:
    from collections.abc import Mapping


def run_rehearsal(options: Mapping[str, Any], environ: Mapping[str, str]) -> Rehearsal:
    rehearsal_options = ("fail", "seed", "spread", "faults")
    settings = load(
        Inputs(option_values({name: options[name] for name in options if name not in rehearsal_options}), environ)
    )
    timeout = settings.values["timeout"].value
    assert isinstance(timeout, timedelta)
    premise = RehearsalRequest(
        platform=settings.definition.platform,
        scope=settings.scope,
        failing_nodes=tuple(sorted(set(options["fail"]))),
        seed=options["seed"],
        spread=options["spread"] / 100,
        has_faults=options["faults"],
        timeout=timeout,
    )
    return rehearse(premise)
