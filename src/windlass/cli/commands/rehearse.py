"""`windlass rehearse`: loads the settings and runs a rehearsal."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.cli.options import given
from windlass.operations.rehearse import Premise, Rehearsal, rehearse
from windlass.settings.loader import Inputs, load

if TYPE_CHECKING:
    from collections.abc import Mapping


def rehearsed(options: Mapping[str, Any], environ: Mapping[str, str]) -> Rehearsal:
    own = ("fail", "seed", "spread", "faults")
    settings = load(Inputs(given({name: options[name] for name in options if name not in own}), environ))
    limit = settings.values["timeout"].value
    assert isinstance(limit, timedelta)
    premise = Premise(
        platform=settings.assembled.platform,
        scope=settings.scope,
        fails=tuple(sorted(set(options["fail"]))),
        seed=options["seed"],
        spread=options["spread"] / 100,
        has_faults=options["faults"],
        limit=limit,
    )
    return rehearse(premise)
