"""Events of the core group as events.k8s.io shows them, for reading. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windlass.sandbox.asks import Outcome
from windlass.sandbox.kinds import Kind
from windlass.sandbox.stores import Stored

if TYPE_CHECKING:
    from windlass.sandbox.statuses import Body

VIEW = Kind(group="events.k8s.io", version="v1", plural="events", kind="Event", verbs=("get", "list"))
NAMES = {
    "involvedObject": "regarding", "message": "note", "source": "deprecatedSource", "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
    "reportingComponent": "reportingController",
}  # fmt: skip


def shown(outcome: Outcome) -> Outcome:
    head = {"kind": VIEW.kind, "apiVersion": VIEW.api_version}
    if isinstance(outcome.item, Stored):
        return Outcome(outcome.code, {**head, **_renamed(outcome.item.load())})
    assert isinstance(outcome.item, bytes)
    found: Body = msgspec.json.decode(outcome.item)
    items = [_renamed(item) for item in found["items"]]
    return Outcome(outcome.code, {**found, "apiVersion": VIEW.api_version, "items": items})


def _renamed(item: Body) -> Body:
    return {NAMES.get(name, name): value for name, value in item.items()}
