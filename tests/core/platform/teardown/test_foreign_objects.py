"""What would be destroyed with a namespace or a definition, and is not the platform's."""

from __future__ import annotations

from tests.core.platform.teardown.test_inventory import found, item, leaving
from windlass.core.platform.teardown.foreign_objects import ForeignObjects, PlatformObjects, find_foreign_objects
from windlass.core.platform.teardown.inventory import PresentObjects, Unreadable

UNREADABLE = Unreadable("secrets own", "Forbidden", "", "secrets", is_permanent=True)


def test_foreign_is_what_is_neither_managed_nor_owned_nor_in_every_namespace() -> None:
    platform = PlatformObjects(
        leaving("web"), frozenset({"before"}), frozenset({item("PersistentVolumeClaim own/data-db-0")})
    )
    listed = PresentObjects((
        found("Service own/web", tracking_instance="web"),
        found("Endpoints own/web"),
        found("Endpoints own/guest"),
        found("ConfigMap own/made", owner_uids=("Service own/web",)),
        found("ConfigMap own/made-before", owner_uids=("before",)),
        found("PersistentVolumeClaim own/data-db-0"),
        found("ServiceAccount own/default"),
        found("Lease.coordination.k8s.io own/leader"),
        found("Secret own/guest"),
        found("Secret own/other", tracking_instance="other"),
    ), (UNREADABLE,))  # fmt: skip
    foreign = find_foreign_objects(listed, platform)
    assert foreign.keys == (item("Endpoints own/guest"), item("Secret own/guest"), item("Secret own/other"))
    assert foreign.unreadable == (UNREADABLE,)


def test_what_is_found_twice_is_told_once_and_much_is_counted() -> None:
    few = ForeignObjects((item("Secret own/a"),), (UNREADABLE,))
    assert few + few == few
    assert few.summary == "foreign objects: Secret own/a"
    assert few.lines() == (
        "Secret own/a is not managed by an application that is removed",
        "secrets own may contain objects of others: Forbidden",
    )
    many = ForeignObjects(tuple(item(f"Secret own/{number:02d}") for number in range(12)))
    assert many.summary == "foreign objects: Secret own/00, Secret own/01, Secret own/02 and 9 more"
    assert len(many.lines()) == 11
    assert many.lines()[-1] == "and 2 more"


def test_only_errors_that_pass_are_worth_another_look() -> None:
    passing = Unreadable("secrets own", "Timeout", "", "secrets")
    unknown = ForeignObjects(unreadable=(passing,))
    assert unknown.may_change
    assert unknown.summary == "objects that could not be listed: secrets own"
    assert not (unknown + ForeignObjects(unreadable=(UNREADABLE,))).may_change
    assert not (unknown + ForeignObjects((item("Secret own/a"),))).may_change
    assert not ForeignObjects()
