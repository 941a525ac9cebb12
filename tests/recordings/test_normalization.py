"""What a recording keeps of an object, and what it makes of times, names and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings.normalization import Marks, reduced

if TYPE_CHECKING:
    from windlass.kube.client.objects import RawObject

POD: RawObject = {
    "kind": "Pod",
    "metadata": {
        "name": "web-6f5d-x2x4z",
        "generateName": "web-6f5d-",
        "uid": "5fd0c3a4-0000-4000-8000-000000000001",
        "resourceVersion": "7",
        "labels": {"pod-template-hash": "6f5d"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web-6f5d"}],
    },
    "spec": {"nodeName": "somewhere"},
    "status": {"phase": "Running", "podIP": "10.244.0.3", "startTime": "2030-01-01T00:00:05Z"},
}


def marks(*items: RawObject) -> Marks:
    found = Marks()
    for item in items:
        found.see(item)
    return found


def test_only_the_fields_that_matter_are_kept() -> None:
    assert reduced(POD) == {
        "metadata": {"name": "web-6f5d-x2x4z", "owners": ["ReplicaSet/web-6f5d"]},
        "status": {"phase": "Running", "startTime": "2030-01-01T00:00:05Z"},
    }


def test_generated_names_become_the_same_in_every_run() -> None:
    found = marks(POD).rewritten(reduced(POD))
    assert found["metadata"] == {"name": "web-hash1-suffix1", "owners": ["ReplicaSet/web-hash1"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-01-01T00:00:05Z", "t0"),
        ("created pod: web-6f5d-x2x4z", "created pod: web-hash1-suffix1"),
        ("5fd0c3a4-0000-4000-8000-000000000001", "uid1"),
        ("revision 0123456789012345678901234567890123456789", "revision revision1"),
        ("dial tcp 10.96.0.1:443: refused", "dial tcp address: refused"),
        ("http://198.51.100.2:8090/apps.git", "https://git.invalid/apps.git"),
        ("6f5da", "6f5da"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert marks(POD).rewritten(text) == expected


def test_times_keep_their_order() -> None:
    times = [f"2030-01-01T00:00:{second:02}Z" for second in (9, 3, 7, 3)]
    items: list[Any] = [{"metadata": {"name": "a"}, "status": {"at": time}} for time in times]
    assert marks(*items).rewritten(times) == ["t2", "t0", "t1", "t0"]
