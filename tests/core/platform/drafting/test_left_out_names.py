"""Whatever annotations name in vain, what a draft says of it is bounded."""

from __future__ import annotations

from tests.core.platform.drafting.inventories import app
from windlass.core.platform.drafting.drafts import draft_platform
from windlass.core.platform.drafting.ownership import ArgoInventory, ObservedApplication


def test_what_annotations_say_in_vain_is_bounded() -> None:
    names = [f"n{i:03}" for i in range(60)]
    everything = (*names, *(f"nobody-{i}" for i in range(1000)))
    draft = draft_platform(ArgoInventory(tuple(ObservedApplication(app(n), depends_on=everything) for n in names)))
    assert [len(draft.graph.closure({name})) for name in names] == [60 - number for number in range(60)]
    told = [line.removeprefix("n059: windlass.dev/depends-on") for line in draft.notices if line.startswith("n059: ")]
    assert told[3] == ": 997 more names are left out"
    assert told[4] == " names n000, but dependencies go round in a circle: n059 -> ... -> n059"
    assert told[-1] == ": 57 more names are left out"
    assert len(draft.notices) < 60 * 9
