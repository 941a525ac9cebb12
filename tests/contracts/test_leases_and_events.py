"""Leases, by which one of several takes the lead, and events, by which things are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import EVENTS, LEASES, config_map
from tests.contracts.servers import MERGE

if TYPE_CHECKING:
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

NOW = "2030-01-01T00:00:00.000000Z"
LATER = "2030-01-01T00:00:10.123456Z"


@pytest.fixture
def path(namespace: str) -> str:
    return LEASES.in_namespace(namespace).path


@pytest.fixture
async def lease(raw: Raw, path: str) -> RawObject:
    spec = {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": NOW,
        "renewTime": NOW,
        "leaseTransitions": 0,
    }
    item = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lead"}, "spec": spec}
    created: RawObject = await raw.ok("POST", path, item)
    return created


async def test_a_lease_keeps_microseconds(raw: Raw, path: str, lease: RawObject) -> None:
    assert lease["spec"]["renewTime"] == NOW
    renewed = await raw.ok("PUT", f"{path}/lead", {**lease, "spec": {**lease["spec"], "renewTime": LATER}})
    assert renewed["spec"]["renewTime"] == LATER
    assert "generation" not in renewed["metadata"]


async def test_a_lease_goes_to_who_comes_first(raw: Raw, path: str, lease: RawObject) -> None:
    wishes = [{**lease, "spec": {**lease["spec"], "holderIdentity": name}} for name in "bc"]
    assert (await raw("PUT", f"{path}/lead", wishes[0])).status == 200
    assert (await raw("PUT", f"{path}/lead", wishes[1])).status == 409
    assert (await raw.ok("GET", f"{path}/lead"))["spec"]["holderIdentity"] == "b"


async def test_a_lease_is_given_up_by_emptying_its_holder(raw: Raw, path: str, lease: RawObject) -> None:
    assert lease
    given_up = await raw.ok("PATCH", f"{path}/lead", {"spec": {"holderIdentity": None}}, MERGE)
    assert "holderIdentity" not in given_up["spec"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"),
        ({"leaseTransitions": -1}, "spec.leaseTransitions"),
    ],
)
async def test_numbers_of_a_lease_make_sense(
    raw: Raw, path: str, lease: RawObject, spec: RawObject, field: str
) -> None:
    assert lease
    answer = await raw("PATCH", f"{path}/lead", {"spec": spec}, MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert [cause["field"] for cause in answer.causes] == [field]


async def test_a_lease_whose_time_is_no_time_is_refused(raw: Raw, path: str, lease: RawObject) -> None:
    assert lease
    answer = await raw("PUT", f"{path}/lead", {**lease, "spec": {"renewTime": "yesterday"}})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_events_are_created_and_selected_by_what_they_are_about(raw: Raw, namespace: str) -> None:
    path = EVENTS.in_namespace(namespace).path
    for name, kind in (("a", "ConfigMap"), ("b", "Secret")):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name}."},
            "involvedObject": {"apiVersion": "v1", "kind": kind, "name": name, "namespace": namespace},
            "type": "Warning",
            "reason": "Odd",
            "message": "something is odd",
            "source": {"component": "contracts"},
            "firstTimestamp": "2030-01-01T00:00:00Z",
            "lastTimestamp": "2030-01-01T00:00:00Z",
            "count": 1,
        }
        await raw.ok("POST", path, event)
    for selector in (
        "involvedObject.name%3Da",
        "involvedObject.kind%3DConfigMap",
        "reason%3DOdd,involvedObject.name%3Da",
    ):
        found = await raw.ok("GET", f"{path}?fieldSelector={selector}")
        assert [item["involvedObject"]["name"] for item in found["items"]] == ["a"]
    assert len((await raw.ok("GET", f"{path}?fieldSelector=type%3DWarning"))["items"]) == 2


async def test_an_event_is_seen_in_both_groups(raw: Raw, namespace: str) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a.1"},
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": namespace},
        "reason": "Odd",
        "message": "something is odd",
        "type": "Normal",
    }
    await raw.ok("POST", EVENTS.in_namespace(namespace).path, event)
    found = await raw.ok("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/a.1")
    assert found["regarding"]["name"] == "a"
    assert (found["note"], found["reason"]) == ("something is odd", "Odd")


async def test_an_event_is_about_something_in_its_namespace(raw: Raw, namespace: str) -> None:
    event = {
        **config_map("a"),
        "kind": "Event",
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": "other"},
    }
    answer = await raw("POST", EVENTS.in_namespace(namespace).path, event)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "involvedObject.namespace" in [cause["field"] for cause in answer.causes]
