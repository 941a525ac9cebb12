"""Which claims and volumes a removal means."""

from __future__ import annotations

import pytest

from windlass.core.platform.teardown import volumes
from windlass.core.platform.teardown.volumes import ClaimSelection, ClaimTemplate, Volume, VolumeClaim

DB = ClaimTemplate("data", "db", "own")


@pytest.mark.parametrize(
    ("place", "is_made"),
    [
        (("own", "data-db-0"), True),
        (("own", "data-db-12"), True),
        (("own", "data-db-x"), False),
        (("own", "data-db"), False),
        (("own", "other-data-db-0"), False),
        (("other", "data-db-0"), False),
    ],
)
def test_a_template_makes_claims_with_a_number(place: tuple[str, str], is_made: bool) -> None:
    assert DB.matches(place) is is_made
    claim = VolumeClaim(place, "uid")
    assert volumes.stateful_set_claims([claim], [DB]) == ((claim,) if is_made else ())


def test_a_volume_is_in_danger_with_its_claim_or_its_namespace() -> None:
    places = [("own", "data-db-0"), ("default", "mine"), ("default", "theirs"), ("alone", "any")]
    claims = [VolumeClaim(place, "") for place in places]
    bound = [Volume("/".join(place), place, is_retained=False) for place in places]
    meant = ClaimSelection(frozenset({("default", "mine")}), (DB,), frozenset({"alone"}))
    assert [each.name for each in volumes.affected_volumes(claims, bound, meant)] == [
        "own/data-db-0",
        "default/mine",
        "alone/any",
    ]


@pytest.mark.parametrize(("driver", "name"), [("disk", "default-disk"), ("nfs", "nfs"), ("tape", ""), ("", "")])
def test_the_default_class_of_a_driver_comes_first(driver: str, name: str) -> None:
    classes = [("a-disk", "disk", False), ("default-disk", "disk", True), ("nfs", "nfs", False)]
    assert volumes.snapshot_class(driver, classes) == name
