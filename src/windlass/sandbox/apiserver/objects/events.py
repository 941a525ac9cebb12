"""Conversion of single core/v1 Events to events.k8s.io/v1. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.objects.kinds import ServedKind

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

EVENTS_V1_KIND = ServedKind(group="events.k8s.io", version="v1", plural="events", kind="Event", verbs=("get",))
RENAMED_FIELDS = {
    "involvedObject": "regarding", "message": "note", "source": "deprecatedSource", "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
    "reportingComponent": "reportingController",
}  # fmt: skip


def convert_event(event: Body) -> Body:
    renamed = {RENAMED_FIELDS.get(name, name): value for name, value in event.items()}
    return {**EVENTS_V1_KIND.type_meta, **renamed}
