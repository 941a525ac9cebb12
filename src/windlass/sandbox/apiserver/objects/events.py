"""Conversion of single core/v1 Events to events.k8s.io/v1. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.objects.kinds import Kind

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

VIEW = Kind(group="events.k8s.io", version="v1", plural="events", kind="Event", verbs=("get",))
NAMES = {
    "involvedObject": "regarding", "message": "note", "source": "deprecatedSource", "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
    "reportingComponent": "reportingController",
}  # fmt: skip


def shown(event: Body) -> Body:
    renamed = {NAMES.get(name, name): value for name, value in event.items()}
    return {**VIEW.head, **renamed}
