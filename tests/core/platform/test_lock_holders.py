"""Who holds the lock, in words."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.core.platform.lock_holders import HOLDER_ANNOTATION, LockHolder, describe_person, recorded_holder

SPEC = {"holderIdentity": "r1", "acquireTime": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("lease", "text"),
    [
        ({}, "None"),
        ({"spec": None, "metadata": None}, "None"),
        ({"spec": {"holderIdentity": ""}}, "None"),
        ({"spec": {"holderIdentity": "r1"}, "metadata": {"annotations": None}}, "run r1"),
        ({"spec": SPEC}, "run r1, since 2030-01-01T00:00:00Z"),
        ({"spec": {"holderIdentity": "r1\n::error::x", "acquireTime": 7}}, "run r1 ::error::x, since 7"),
        (
            {"spec": SPEC, "metadata": {"annotations": {HOLDER_ANNOTATION: "alice@build-7"}}},
            "run r1 by alice@build-7, since 2030-01-01T00:00:00Z",
        ),
    ],
)
def test_a_lease_in_words(lease: dict[str, Any], text: str) -> None:
    assert str(recorded_holder(lease)) == text


def test_what_others_wrote_is_bounded() -> None:
    found = recorded_holder({"spec": {"holderIdentity": "r" * 10_000}})
    assert found == LockHolder("r" * 300)


def test_a_person() -> None:
    assert describe_person("alice", "build-7", "") == "alice@build-7"
    assert describe_person("alice", "build-7", "https://ci.example/7") == "alice@build-7 (https://ci.example/7)"
