"""Which claims and volumes a removal means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windlass.core.platform.teardown import volumes
from windlass.core.platform.teardown.volumes import (
    ClaimSelection,
    ClaimTemplate,
    RetentionMark,
    Volume,
    VolumeClaim,
    VolumePolicy,
)

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
    selection = ClaimSelection(templates=(DB,))
    assert selection.owns(claim) is is_made
    assert volumes.abandoned_claims([claim], [selection], ()) == ((claim,) if is_made else ())
    assert volumes.abandoned_claims([claim], [selection], [DB]) == ()
    assert volumes.abandoned_claims([replace(claim, is_kept=True)], [selection], ()) == ()


@pytest.mark.parametrize(
    ("claim", "application", "is_abandoned"),
    [
        (VolumeClaim(("own", "data-db-0"), ""), "web", True),
        (VolumeClaim(("default", "managed"), ""), "web", True),
        (VolumeClaim(("default", "marked"), "tracked"), "web", True),
        (VolumeClaim(("default", "used"), ""), "web", False),
        (VolumeClaim(("default", "owned"), "", ("widget",)), "web", False),
        (VolumeClaim(("default", "deep"), "tracked", ("widget",)), "web", False),
        (VolumeClaim(("alone", "any"), ""), "other", False),
        (VolumeClaim(("default", "theirs"), "", ("stranger",)), "", False),
    ],
)
def test_a_claim_belongs_to_who_owns_it_or_to_who_has_its_namespace(
    claim: VolumeClaim, application: str, is_abandoned: bool
) -> None:
    selections = {
        ("argocd", "other"): ClaimSelection(namespaces=frozenset({"alone"})),
        ("argocd", "web"): ClaimSelection(
            frozenset({("default", "managed")}),
            frozenset({("default", "used")}),
            (DB,),
            frozenset({"widget", "tracked"}),
            frozenset({"own"}),
        ),
    }
    expected = {claim.key: ("argocd", application)} if application else {}
    assert volumes.claim_applications([claim], selections) == expected
    assert bool(volumes.abandoned_claims([claim], selections.values(), ())) is is_abandoned


def test_only_what_we_retained_and_nobody_uses_is_reclaimed() -> None:
    mark = RetentionMark(("argocd", "db"), "uid", "Delete")
    ours = Volume("ours", ("own", "a"), is_retained=True, claim_uid="uid", mark=mark)
    others = [
        replace(ours, name="rebound", claim_uid="other"),
        replace(ours, name="theirs", mark=None),
        replace(ours, name="restored", is_retained=False),
        replace(ours, name="elsewhere", mark=replace(mark, application=("argocd", "web"))),
        replace(ours, name="used", claim=("own", "b")),
    ]
    assert volumes.reclaimable_volumes([ours, *others], [("argocd", "db")], [("own", "b")]) == (ours,)
    told = volumes.volume_notices(VolumePolicy.DELETE, [ours, others[1]])
    assert told == [
        "PersistentVolume ours of claim own/a is deleted with its data",
        "PersistentVolume theirs of claim own/a is kept: its own reclaim policy is Retain",
    ]


@pytest.mark.parametrize(("driver", "name"), [("disk", "default-disk"), ("nfs", "nfs"), ("tape", ""), ("", "")])
def test_the_default_class_of_a_driver_comes_first(driver: str, name: str) -> None:
    classes = [("a-disk", "disk", False), ("default-disk", "disk", True), ("nfs", "nfs", False)]
    assert volumes.snapshot_class(driver, classes) == name
